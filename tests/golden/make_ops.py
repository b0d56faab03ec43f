#!/usr/bin/python3
"""make_ops.py: writes ops.safetensors, what PyTorch says about every operation of tests/ops.def.

Inputs are not stored: both sides draw them from the same whole-number generator. For each operation the file has its result
(NAME.y) and the gradient of sum(result * weights) for every input (NAME.g0, NAME.g1, ...).

Usage: tests/golden/make_ops.py   (needs PyTorch; the tests do not)
"""
import json
import math
import os
import re
import struct

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))


def lcg(seed, shape):
    s, values = seed, []
    for _ in range(int(np.prod(shape, dtype=np.int64))):
        s = (s * 1664525 + 1013904223) % 2**32
        values.append((s >> 8) / 2**24 * 4 - 2)
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def like(x):
    return lcg(99, list(x.shape))


def ids(n, limit):
    return torch.tensor([(i * 7 + 3) % limit for i in range(n)], dtype=torch.long)


def harmonic(n):
    return torch.tensor([np.float32(1) / np.float32(1 + i) for i in range(n)], dtype=torch.float64)


# ---- dropout: Threefry-2x32, 20 rounds ----

def threefry(key, counter):
    turns = [13, 15, 26, 6, 17, 29, 16, 24]
    mask = 0xffffffff
    k = [key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1]]
    a, b = (counter[0] + k[0]) & mask, (counter[1] + k[1]) & mask
    for r in range(20):
        a = (a + b) & mask
        t = turns[r % 8]
        b = ((b << t | b >> (32 - t)) & mask) ^ a
        if r % 4 == 3:
            j = r // 4 + 1
            a, b = (a + k[j % 3]) & mask, (b + k[(j + 1) % 3] + j) & mask
    return a, b


def drop(x, p, stream, seed=5, step=0):
    key = (seed & 0xffffffff, seed >> 32)
    for part in (step, stream):
        key = threefry(key, (part & 0xffffffff, part >> 32))
    below = int((1 - float(np.float32(p))) * 2**32)
    keep = [threefry(key, (e // 32 * 16 + e % 16, 0))[e % 32 // 16] < below for e in range(x.numel())]
    return x * torch.tensor(keep, dtype=torch.float64).reshape(x.shape) / (1 - float(np.float32(p)))


# ---- positions ----

def rotary(x, heads=1, base=10000.0, pairs=False, positions=None, frequencies=None):
    b, t, n = x.shape
    half = n // heads // 2
    f = frequencies if frequencies is not None else base ** (-torch.arange(half, dtype=torch.float64) / half)
    pos = torch.arange(t).repeat(b) if positions is None else positions
    angle = (pos.double().reshape(b, t, 1) * f).unsqueeze(2)
    x = x.reshape(b, t, heads, 2 * half)
    u, v = (x[..., 0::2], x[..., 1::2]) if pairs else (x[..., :half], x[..., half:])
    u, v = u * angle.cos() - v * angle.sin(), v * angle.cos() + u * angle.sin()
    y = torch.stack([u, v], -1).flatten(-2) if pairs else torch.cat([u, v], -1)
    return y.reshape(b, t, n)


def rotary_part(x, heads, width, scale):
    x = x.unflatten(-1, (heads, -1))
    turned = rotary(x[..., :width].flatten(-2), heads).unflatten(-1, (heads, -1))
    return torch.cat([scale * turned, x[..., width:]], -1).flatten(-2)


# ---- attention ----

def causal(q, k):
    return torch.ones(q, k, dtype=torch.bool).tril(k - q)


def window(q, k, width=3):
    """Keys less than width places from a query, the last of which stands at the last key."""
    return (torch.arange(q)[:, None] + k - q - torch.arange(k)).abs() < width


def all_masks(a, b):
    """The keep map and bias of tests/test_ops.c, with key lengths and the causal mask: (keep, bias)."""
    B, H, q, k = a.shape[0], a.shape[1], a.shape[2], b.shape[2]
    keep = torch.tensor([(i * 7 + 3) % 5 != 0 for i in range(B * q * k)]).reshape(B, 1, q, k)
    bias = torch.tensor([(i % 3) * 0.5 for i in range(H * k)], dtype=torch.float64).reshape(1, H, 1, k)
    lengths = torch.tensor([max(0, k - 2 * i) for i in range(B)])
    keep = keep & (torch.arange(k) < lengths.reshape(B, 1, 1, 1)) & causal(q, k)
    return keep.expand(B, H, q, k), bias


def weigh(scores, v, keep=None, bias=None):
    if bias is not None:
        scores = scores + bias
    if keep is None:
        return scores.softmax(-1) @ v
    scores = scores.masked_fill(~keep, -1e30)
    return scores.softmax(-1) * keep @ v


def attention(q, k, v, keep=None, bias=None, scale=None, cap=None):
    k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) if x.dim() == 4 else x for x in (k, v))
    scale = scale or 1 / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-1, -2) * scale
    return weigh(cap * torch.tanh(scores / cap) if cap else scores, v, keep, bias)


def by_distance(r, q, k):
    return r[:, torch.arange(k)[None, :] - torch.arange(q)[:, None] + q - 1]


def additive(q, k, w, v, keep=None, bias=None, scale=1.0):
    k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = (torch.tanh(q.unsqueeze(-2) + k.unsqueeze(-3)) * w).sum(-1)
    return weigh(scores * scale, v, keep, bias)


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def join(x):
    return x.transpose(1, 2).flatten(2)


def rms(x, gain, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain


def f32(x):
    return float(np.float32(x))


OPS = {
    "add": lambda a, b: a + b,
    "add_bias": lambda a, b: a + b,
    "add_positions": lambda a, b: a + b,
    "add_outer": lambda a, b: a + b,
    "add_itself": lambda a: a + a,
    "sub": lambda a, b: a - b,
    "sub_bias": lambda a, b: a - b,
    "sub_from_one": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mul_bias": lambda a, b: a * b,
    "mul_rows": lambda a, b: a * b,
    "mul_middle": lambda a, b: a * b,
    "mul_first": lambda a, b: a * b,
    "mul_outer": lambda a, b: a * b,
    "mul_scalar": lambda a, b: a * b,
    "mul_itself": lambda a: a * a,
    "scale": lambda a: f32(0.7) * a,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda a: F.gelu(a, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu_gated": lambda a, b: F.silu(a) * b,
    "silu_gated_itself": lambda a: F.silu(a) * a,
    "gelu_gated": lambda a, b: F.gelu(a) * b,
    "softmax": lambda a: a.softmax(-1),
    "softmax_wide": lambda a: a.softmax(-1),
    "log_softmax": lambda a: a.log_softmax(-1),
    "layernorm": lambda a, b, c: F.layer_norm(a, a.shape[-1:], b, c, f32(1e-5)),
    "layernorm_no_bias": lambda a, b: F.layer_norm(a, a.shape[-1:], b, None, f32(1e-3)),
    "rmsnorm": lambda a, b: rms(a, b, f32(1e-6)),
    "rotary": lambda a: rotary(a, heads=2),
    "rotary_pairs": lambda a: rotary(a, heads=2, base=500.0, pairs=True, positions=ids(a.shape[0] * a.shape[1], 50)),
    "rotary_given": lambda a: rotary(a, positions=ids(a.shape[0] * a.shape[1], 50), frequencies=harmonic(a.shape[2] // 2)),
    "rotary_part": lambda a: rotary_part(a, 2, 4, 1.25),
    "dropout": lambda a: drop(a, 0.3, 0),
    "dropout_twice": lambda a: drop(drop(a, 0.3, 0), 0.5, 1),
    "reshape": lambda a: a.reshape(2, -1, 3) * like(a.reshape(2, -1, 3)),
    "permute": lambda a: a.permute(0, 2, 1, 3),
    "permute_all": lambda a: a.permute(2, 0, 1),
    "swap": lambda a: a.transpose(0, -1),
    "slice": lambda a: a[:, 1:4],
    "slice_last": lambda a: a[:, 2:5],
    "concat": lambda a, b: torch.cat([a, b], 1),
    "concat_thrice": lambda a, b: torch.cat([a, b, a], 0),
    "sum": torch.sum,
    "mean": torch.mean,
    "sum_first": lambda a: a.sum(0),
    "sum_middle": lambda a: a.sum(1),
    "sum_last": lambda a: a.sum(-1),
    "mean_first": lambda a: a.mean(0),
    "mean_last": lambda a: a.mean(1),
    "cross_entropy": lambda a: F.cross_entropy(a.flatten(0, -2), ids(a[..., 0].numel(), a.shape[-1])),
    "cross_entropy_smooth": lambda a: F.cross_entropy(a, ids(a.shape[0], a.shape[1]), ignore_index=3, label_smoothing=f32(0.1)),
    "cross_entropy_weighted": lambda a: (F.cross_entropy(a, ids(a.shape[0], a.shape[1]), reduction="none")
                                         * harmonic(a.shape[0])).sum() / harmonic(a.shape[0]).sum(),
    "binary_cross_entropy": lambda a: F.binary_cross_entropy_with_logits(a, like(a).sigmoid()),
    "mean_squared_error": F.mse_loss,
    "mean_squared_error_half": lambda a: F.mse_loss(a, like(a)),
    "gather": lambda a: a[ids(2 * a.shape[0], a.shape[0] - 1)].reshape(2, a.shape[0], -1),
    "affine": F.linear,
    "affine_no_bias": F.linear,
    "matmul": torch.matmul,
    "matmul_batched": torch.matmul,
    "matmul_shared": torch.matmul,
    "matmul_ta": lambda a, b: a.transpose(-1, -2) @ b,
    "matmul_tb": lambda a, b: a @ b.transpose(-1, -2),
    "matmul_ta_tb": lambda a, b: a.transpose(-1, -2) @ b.transpose(-1, -2),
    "matmul_shared_ta_tb": lambda a, b: a.transpose(-1, -2) @ b.transpose(-1, -2),
    "attention": attention,
    "attention_2d": attention,
    "attention_causal": lambda q, k, v: attention(q, k, v, causal(q.shape[1], k.shape[1])),
    "attention_grouped": lambda q, k, v: attention(q, k, v, causal(q.shape[2], k.shape[2])),
    "attention_masked": lambda q, k, v: attention(q, k, v, *all_masks(q, k)),
    "attention_relative": lambda q, k, v, r: attention(q, k, v, causal(q.shape[2], k.shape[2]), by_distance(r, q.shape[2], k.shape[2]), f32(0.3)),
    "attention_heads": lambda q, k, v: join(attention(split(q, 4), split(k, 2), split(v, 2), scale=f32(0.3))),
    "attention_window": lambda q, k, v: attention(q, k, v, causal(q.shape[2], k.shape[2]) & window(q.shape[2], k.shape[2])),
    "attention_local": lambda q, k, v: attention(q, k, v, window(q.shape[1], k.shape[1])),
    "attention_capped": lambda q, k, v: attention(q, k, v, causal(q.shape[2], k.shape[2]), cap=f32(0.4)),
    "attention_masked_local": lambda q, k, v: attention(
        q, k, v, all_masks(q, k)[0] & window(q.shape[2], k.shape[2]), all_masks(q, k)[1]),
    "additive": additive,
    "additive_masked": lambda q, k, w, v: additive(q, k, w, v, *all_masks(q, k)),
    "additive_heads": lambda q, k, w, v: join(additive(split(q, 4), split(k, 2), w, split(v, 2),
                                                       causal(q.shape[1], k.shape[1]), scale=f32(0.3))),
}


def small_inputs():
    """Name and small input shapes of every row of ops.def."""
    text = open(os.path.join(HERE, "..", "ops.def"), encoding="utf-8").read()
    for name, shapes in re.findall(r"^OP\((\w+),\s*((?:(?:IN\([\d,]+\)|SCALAR)\s*)+),", text, re.M):
        yield name, [[int(n) for n in s.split(",")] if s else [] for s in re.findall(r"IN\(([\d,]+)\)|SCALAR", shapes)]


def main():
    tensors = {}
    for name, shapes in small_inputs():
        inputs = [lcg(12345 + 1000 * i, s).requires_grad_() for i, s in enumerate(shapes)]
        y = OPS[name](*inputs)
        (y * lcg(777, list(y.shape))).sum().backward()
        tensors[name + ".y"] = y.detach()
        for i, x in enumerate(inputs):
            tensors[f"{name}.g{i}"] = x.grad
    header, data = {}, b""
    for name, x in tensors.items():
        raw = x.contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, "ops.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    print(f"{len(tensors)} tensors, {8 + len(text) + len(data)} bytes")


main()
