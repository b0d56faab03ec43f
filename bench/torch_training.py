"""Times training steps of an encoder-decoder in PyTorch as installed. usage: torch_training.py small|base THREADS QUICK

Prints best and median seconds of a step and the peak of the process's memory in MB. The models are those of bench/training.c.
"""
import math
import resource
import sys
import time

import torch
from torch import nn

name, threads, quick = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
dim, heads, inner, layers, vocabulary, pairs, length = {
    "small": (256, 4, 1024, 3, 8000, 64, 24), "base": (512, 8, 2048, 6, 32000, 32, 32)}[name]


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.transformer = nn.Transformer(dim, heads, layers, layers, inner, 0.1, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], 2).flatten(1))
        self.register_buffer("mask", torch.full((length, length), -math.inf).triu(1))

    def forward(self, source, target):
        source, target = (self.dropout(self.embed(x) * dim ** 0.5 + self.positions) for x in (source, target))
        return self.transformer(source, target, tgt_mask=self.mask) @ self.embed.weight.T


model = Translator()
adam = torch.optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
source, target, labels = (torch.randint(vocabulary, (pairs, length)) for _ in range(3))


def step():
    begin = time.perf_counter()
    adam.zero_grad()
    criterion(model(source, target).reshape(-1, vocabulary), labels.reshape(-1)).backward()
    adam.step()
    return time.perf_counter() - begin


for _ in range(2):
    step()
end, times = time.perf_counter() + (1 if quick else 15), []
while time.perf_counter() < end or len(times) < 2:
    times.append(step())
times.sort()
print(times[0], times[len(times) // 2], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
