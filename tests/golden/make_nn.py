"""Writes nn.inc: PyTorch's multi-head attention, forward and backward, in double. Weights, inputs and the gradient of the
result come from lcg.py in the order test_nn.c takes them. Run: python3 tests/golden/make_nn.py > tests/golden/nn.inc"""
import torch

from lcg import Lcg


def show(name, tensor):
    numbers = [f"{x:.7g}" for x in tensor.reshape(-1).tolist()]
    rows = [", ".join(numbers[i:i + 10]) for i in range(0, len(numbers), 10)]
    print(f"static const double {name}[{len(numbers)}] = {{\n    " + ",\n    ".join(rows) + ",\n};")


def run(name, kv_dim, length, kv_length, **masks):
    lcg = Lcg(torch.float64)
    attention = torch.nn.MultiheadAttention(8, 2, kdim=kv_dim, vdim=kv_dim, batch_first=True, dtype=torch.float64)
    weights = []
    for part, width in (("q", 8), ("k", kv_dim), ("v", kv_dim), ("out", 8)):
        weights += [lcg.tensor(8, width), lcg.tensor(8)]
    with torch.no_grad():
        if kv_dim == 8:
            attention.in_proj_weight.copy_(torch.cat(weights[0:6:2]))
        else:
            for own, weight in zip((attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight), weights[0:6:2]):
                own.copy_(weight)
        attention.in_proj_bias.copy_(torch.cat(weights[1:6:2]))
        attention.out_proj.weight.copy_(weights[6])
        attention.out_proj.bias.copy_(weights[7])
    x = lcg.tensor(2, length, 8).requires_grad_()
    y = x if kv_dim == 8 else lcg.tensor(2, kv_length, kv_dim).requires_grad_()
    result, _ = attention(x, y, y, need_weights=False, **masks)
    (result * lcg.tensor(2, length, 8)).sum().backward()
    show(f"{name}_result", result)
    show(f"{name}_dx", x.grad)
    if y is not x:
        show(f"{name}_dy", y.grad)
        show(f"{name}_dk", attention.k_proj_weight.grad)
    else:
        show(f"{name}_dqkv", attention.in_proj_weight.grad)


print("/* Made by make_nn.py. */")
run("self", 8, 3, 3, attn_mask=torch.ones(3, 3, dtype=torch.bool).triu(1))
run("cross", 6, 3, 4, key_padding_mask=torch.tensor([[False] * 4, [False, False, True, True]]))
