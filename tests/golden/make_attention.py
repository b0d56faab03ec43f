#!/usr/bin/python3
"""make_attention.py: writes attention.f32, what PyTorch says about the random attentions of tests/test_attention.c.

Each case draws its shapes, masks and inputs from a whole-number generator that the test has too, so only results are stored, one after
the other as float32: y, then the gradients of sum(y * weights) by q, k and v.

Usage: tests/golden/make_attention.py   (needs PyTorch; the tests do not)
"""
import os

import numpy as np
import torch

CASES = 240


class Draw:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 16) % n

    def values(self, *shape):
        n = int(np.prod(shape))
        return torch.tensor([self.below(65536) / 16384 - 2 for _ in range(n)], dtype=torch.float64).reshape(shape)


def stretched(draw, full):
    return [1 if draw.below(2) else n for n in full]


def case(number):
    d = Draw(number * 7919 + 1)
    batch, kv_heads, group = 1 + d.below(2), 1 + d.below(2), 1 + d.below(2)
    heads, tq, tk, dk, dv = kv_heads * group, 1 + d.below(7), 1 + d.below(7), 1 + d.below(6), 1 + d.below(6)
    masks = d.below(16)
    full = [batch, heads, tq, tk]
    seen = torch.ones(full, dtype=torch.bool)
    bias = torch.zeros(full, dtype=torch.float64)
    if masks & 1:
        seen &= torch.arange(tk)[None, :] <= torch.arange(tq)[:, None] + tk - tq
    if masks & 2:
        lengths = torch.tensor([d.below(tk + 1) for _ in range(batch)])
        seen &= (torch.arange(tk)[None, :] < lengths[:, None])[:, None, None, :]
    if masks & 4:
        shape = stretched(d, full)
        keep = [d.below(4) != 0 for _ in range(int(np.prod(shape)))]
        seen &= torch.tensor(keep).reshape(shape)
    if masks & 8:
        shape = stretched(d, full)
        values = []
        for _ in range(int(np.prod(shape))):
            hidden = d.below(8) == 0
            value = d.below(65536) / 16384 - 2
            values.append(-np.inf if hidden else value)
        bias = bias + torch.tensor(values, dtype=torch.float64).reshape(shape)
        seen &= bias > -np.inf
    q = d.values(batch, heads, tq, dk).requires_grad_()
    k = d.values(batch, kv_heads, tk, dk).requires_grad_()
    v = d.values(batch, kv_heads, tk, dv).requires_grad_()
    weights = d.values(batch, heads, tq, dv)
    return q, k, v, seen, torch.where(seen, bias, torch.zeros_like(bias)), weights, group


def attention(q, k, v, seen, bias, group):
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias).masked_fill(~seen, -np.inf)
    empty = ~seen.any(-1, keepdim=True)
    # PyTorch's softmax of a row of -inf alone is NaN; such a row is defined as zeros, so it is computed on zeros and then hidden.
    p = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    return p @ v


def main():
    out = []
    for number in range(CASES):
        q, k, v, seen, bias, weights, group = case(number)
        y = attention(q, k, v, seen, bias, group)
        (y * weights).sum().backward()
        out += [x.detach().numpy().astype(np.float32).ravel() for x in (y, q.grad, k.grad, v.grad)]
    np.concatenate(out).tofile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "attention.f32"))


main()
