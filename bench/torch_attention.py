"""Times attention in PyTorch as installed. usage: torch_attention.py THREADS QUICK

Prints best and median milliseconds of each case, in the order of bench/attention.c.
"""
import math
import sys
import time

import torch

threads, quick = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ v


def once(q, k, v, mask, backward):
    begin = time.perf_counter()
    if backward:
        attention(q, k, v, mask).sum().backward()
    else:
        with torch.no_grad():
            attention(q, k, v, mask)
    taken = time.perf_counter() - begin
    for x in (q, k, v):
        x.grad = None
    return taken


for batch, heads, length, dim in (4, 8, 512, 64), (1, 8, 2048, 64):
    q, k, v = (torch.rand(batch, heads, length, dim, requires_grad=True) for _ in range(3))
    causal = torch.full((length, length), -math.inf).triu(1)
    for mask in None, causal:
        for backward in False, True:
            once(q, k, v, mask, backward)
            end = time.perf_counter() + (0.2 if quick else 2.0)
            times = [once(q, k, v, mask, backward)]
            while time.perf_counter() < end or (len(times) < 5 and not quick):
                times.append(once(q, k, v, mask, backward))
            times.sort()
            print(f"{times[0] * 1e3:.4f} {times[len(times) // 2] * 1e3:.4f}", flush=True)
