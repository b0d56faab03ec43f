"""The generator of tests/lcg.h: numbers in -1000/1024 .. 1000/1024 that float32 holds exactly."""
import torch


class Lcg:
    def __init__(self, dtype=torch.float32):
        self.x, self.dtype = 1, dtype

    def __call__(self):
        self.x = (self.x * 1664525 + 1013904223) % 2**32
        return ((self.x >> 16) % 2001 - 1000) / 1024

    def tensor(self, *shape):
        return torch.tensor([self() for _ in range(torch.Size(shape).numel())], dtype=self.dtype).reshape(shape)
