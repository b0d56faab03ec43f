#!/usr/bin/python3
"""make_explain.py: writes explain.txt, what PyTorch's MultiheadAttention says of small arrays that "qkv explain" is given as text.

A line is a name and its numbers, as they are typed. W are (in, out), as in Q = X W_Q; PyTorch has them the other way round.

Usage: tests/golden/make_explain.py   (needs PyTorch; the tests do not)
"""
import os

import torch

TOKENS, DIM, HEADS, PADDING = 5, 4, 2, [3, 4]


def typed(x):
    return "; ".join(" ".join("%.9g" % v for v in row) for row in x.reshape(-1, x.shape[-1]).tolist())


def main():
    torch.manual_seed(15)
    draw = lambda *shape: (torch.randn(*shape, dtype=torch.float64) * 100).round() / 100
    x = draw(TOKENS, DIM)
    w = {name: draw(DIM, DIM) for name in "qkvo"}
    b = {name: draw(DIM) for name in "qkvo"}
    attention = torch.nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.cat([w[n].T for n in "qkv"]))
        attention.in_proj_bias.copy_(torch.cat([b[n] for n in "qkv"]))
        attention.out_proj.weight.copy_(w["o"].T)
        attention.out_proj.bias.copy_(b["o"])
    hidden = torch.tensor([[i in PADDING for i in range(TOKENS)]])
    lines = [("x", x)] + [("w" + n, w[n]) for n in "qkvo"] + [("b" + n, b[n].reshape(1, -1)) for n in "qkvo"]
    for name, causal in (("padding", None), ("both", torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))):
        out, weights = attention(x[None], x[None], x[None], key_padding_mask=hidden, attn_mask=causal, average_attn_weights=False)
        lines += [("weights_" + name, weights[0].detach()), ("output_" + name, out[0].detach())]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "explain.txt"), "w") as file:
        for name, values in lines:
            file.write("%s: %s\n" % (name, typed(values)))


main()
