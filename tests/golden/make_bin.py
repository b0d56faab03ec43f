#!/usr/bin/python3
# make_bin.py: files as PyTorch writes them, for test_pytorch.c. Needs PyTorch; the tests do not. usage, here: ./make_bin.py
#   bin/dtypes.bin        number i of each tensor is i / 2 - 1 (of whole numbers i, of booleans i % 2), in every type; then
#                         tensors that share a storage, lie apart in it, are parameters, are empty, or have no dimensions
#   bin/protocol4.bin     the same, by another protocol of pickle
#   bin/old.bin           the same, as PyTorch before 1.6 wrote it
#   bin/bert_classify     families/bert_classify as pytorch_model.bin, with a buffer of positions as older files have it
#   bin/qwen2             families/qwen2 in two files and their index
import collections
import json
import os
import struct

import torch

here = os.path.dirname(os.path.abspath(__file__))


def read_safetensors(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    tensors = collections.OrderedDict()
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = {"F32": torch.float32, "BF16": torch.bfloat16}[entry["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype).reshape(entry["shape"])
    return tensors


def save(name, value, **options):
    path = os.path.join(here, "bin", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(value, path, **options)


def every_type():
    numbers = torch.arange(6, dtype=torch.float64)
    made = collections.OrderedDict()
    for name, dtype in [("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16), ("f64", torch.float64)]:
        made[name] = (numbers / 2 - 1).to(dtype).reshape(2, 3)
    for name, dtype in [("i64", torch.int64), ("i32", torch.int32), ("i16", torch.int16), ("i8", torch.int8),
                        ("u8", torch.uint8)]:
        made[name] = numbers.to(dtype)
    made["bool"] = numbers % 2 == 1
    made["turned"] = made["f32"].t()
    made["tied"] = made["f32"]
    made["row"] = made["f32"][1]
    made["column"] = made["f32"][:, 1]
    made["repeated"] = torch.tensor([7.0]).expand(3)
    made["swapped"] = torch.arange(24, dtype=torch.float16).reshape(2, 3, 4).permute(2, 0, 1)
    made["parameter"] = torch.nn.Parameter(torch.ones(3))
    made["scalar"] = torch.tensor(5.0)
    made["empty"] = torch.empty(0, 4)
    made["narrow"] = torch.arange(4, dtype=torch.float32).reshape(4, 1)
    return made


types = every_type()
save("dtypes.bin", types)
save("protocol4.bin", dict(types), pickle_protocol=4)
save("old.bin", collections.OrderedDict(f32=types["f32"]), _use_new_zipfile_serialization=False)

bert = read_safetensors(os.path.join(here, "families", "bert_classify", "model.safetensors"))
bert["bert.embeddings.position_ids"] = torch.arange(16).expand((1, -1))
module = torch.nn.Module()
bert._metadata = module.state_dict()._metadata
save("bert_classify/pytorch_model.bin", bert)

qwen = read_safetensors(os.path.join(here, "families", "qwen2", "model.safetensors"))
files = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
parts = [collections.OrderedDict(), collections.OrderedDict()]
index = {"metadata": {"total_size": sum(t.element_size() * t.numel() for t in qwen.values())}, "weight_map": {}}
for i, (name, tensor) in enumerate(qwen.items()):
    parts[i % 2][name] = tensor
    index["weight_map"][name] = files[i % 2]
for name, part in zip(files, parts):
    save("qwen2/" + name, part)
with open(os.path.join(here, "bin", "qwen2", "pytorch_model.bin.index.json"), "w") as f:
    json.dump(index, f, indent=2)
    f.write("\n")
