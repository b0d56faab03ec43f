#!/usr/bin/python3
"""exported.py: a folder that "qkv export" wrote, run by the architectures of families.py, against numbers that qkv computed.

Usage: tests/golden/exported.py LIST   (needs PyTorch)
A line of LIST is "FOLDER NUMBERS.npy IDS [TARGET_IDS]": NUMBERS are the logits (tokens, vocabulary) or the classes (1, classes) of one
sequence, IDS such as 5,6,2. Prints the largest difference of each, as a part of the largest number where that is above 1; fails where one
is more than 1e-5.
"""
import json
import os
import sys

import numpy as np
import torch

import families


def first(config, *names):
    return next(config[name] for name in names if config.get(name) is not None)


def difference(folder, numbers, ids, target=None):
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    stored = families.read_safetensors(os.path.join(folder, "model.safetensors"))
    stored = {name.removeprefix("transformer."): x for name, x in stored.items()}
    families.VOCABULARY, families.DIM = config["vocab_size"], first(config, "d_model", "hidden_size", "n_embd")
    families.HEADS = first(config, "encoder_attention_heads", "num_attention_heads", "n_head")
    families.LAYERS = first(config, "encoder_layers", "num_hidden_layers", "n_layer")
    families.INNER = first(config, "encoder_ffn_dim", "intermediate_size", "n_inner")
    g = {"ids": torch.tensor([[int(i) for i in ids.split(",")]])}
    families.LENGTH = g["ids"].shape[1]
    families.LENGTHS = [families.LENGTH]
    g["lengths"], g["types"] = torch.tensor(families.LENGTHS), torch.zeros_like(g["ids"])
    if target:
        g["target"] = torch.tensor([[int(i) for i in target.split(",")]])
        g["target_lengths"] = torch.tensor([g["target"].shape[1]])
    architecture = {"pegasus": "marian"}.get(config["model_type"], config["model_type"])
    getattr(families, architecture)(config, families.Weights(0, stored=stored), g)
    got = (g["classes"] if "classes" in g else g["logits"][0]).numpy()
    wanted = np.load(numbers)
    assert wanted.shape == got.shape, (wanted.shape, got.shape)
    return np.abs(wanted - got).max() / max(np.abs(wanted).max(), 1)


with open(sys.argv[1]) as f:
    found = [(line.split()[0], difference(*line.split())) for line in f]
for name, worst in found:
    print(f"{name}: {worst:.3g}")
sys.exit(not all(worst <= 1e-5 for _, worst in found))
