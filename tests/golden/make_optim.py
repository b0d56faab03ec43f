"""Writes optim.inc: weights after 100 steps of PyTorch's optimizers. Weights and gradients come from a generator that
tests/lcg.h has too, in numbers that float32 holds exactly. Run: python3 tests/golden/make_optim.py > tests/golden/optim.inc"""
import torch
from torch.optim import SGD, Adagrad as ADAGRAD, RMSprop as RMSPROP, Adam as ADAM, AdamW as ADAMW

from lcg import Lcg

CASES = [  # options in C, PyTorch's class, its options, decay of the matrix, of the vector
    (".rule = QKV_OPTIMIZER_SGD", SGD, dict(lr=0.01), 0, 0),
    (".rule = QKV_OPTIMIZER_SGD, .lr = 0.1f, .weight_decay = 0.05f", SGD, dict(lr=0.1), 0.05, 0),
    (".rule = QKV_OPTIMIZER_SGD, .momentum = 0.9f", SGD, dict(lr=0.01, momentum=0.9), 0, 0),
    (".rule = QKV_OPTIMIZER_SGD, .momentum = 0.8f, .nesterov = 1, .weight_decay = 0.1f, .decay_all = 1", SGD,
     dict(lr=0.01, momentum=0.8, nesterov=True), 0.1, 0.1),
    (".rule = QKV_OPTIMIZER_ADAGRAD", ADAGRAD, dict(), 0, 0),
    (".rule = QKV_OPTIMIZER_ADAGRAD, .lr = 0.1f, .eps = 1e-3f, .weight_decay = 0.1f", ADAGRAD, dict(lr=0.1, eps=1e-3), 0.1, 0),
    (".rule = QKV_OPTIMIZER_RMSPROP", RMSPROP, dict(), 0, 0),
    (".rule = QKV_OPTIMIZER_RMSPROP, .lr = 0.002f, .alpha = 0.95f, .momentum = 0.5f, .eps = 0.05f, .weight_decay = 0.01f", RMSPROP,
     dict(lr=0.002, alpha=0.95, momentum=0.5, eps=0.05), 0.01, 0),
    (".rule = QKV_OPTIMIZER_ADAM", ADAM, dict(), 0, 0),
    (".rule = QKV_OPTIMIZER_ADAM, .lr = 0.01f, .beta1 = 0.8f, .beta2 = 0.98f, .eps = 0.05f, .weight_decay = 0.1f", ADAM,
     dict(lr=0.01, betas=(0.8, 0.98), eps=0.05), 0.1, 0),
    (".rule = QKV_OPTIMIZER_ADAMW", ADAMW, dict(), 0.01, 0),
    (".rule = QKV_OPTIMIZER_ADAMW, .lr = 0.01f, .weight_decay = 0.5f, .decay_all = 1", ADAMW, dict(lr=0.01), 0.5, 0.5),
    (".rule = QKV_OPTIMIZER_ADAMW, .lr = 0.01f, .eps = 0.05f, .weight_decay = -1", ADAMW, dict(lr=0.01, eps=0.05), 0, 0),
]

print("/* Made by make_optim.py: { options, the 9 weights after 100 steps }. */")
for options, rule, arguments, decay_matrix, decay_vector in CASES:
    lcg = Lcg()
    matrix, vector = (torch.nn.Parameter(lcg.tensor(*shape)) for shape in ((2, 3), (3,)))
    groups = [dict(params=[matrix], weight_decay=decay_matrix), dict(params=[vector], weight_decay=decay_vector)]
    optimizer = rule(groups, **arguments)
    for _ in range(100):
        matrix.grad, vector.grad = lcg.tensor(2, 3), lcg.tensor(3)
        optimizer.step()
    numbers = ", ".join(f"{x:.9g}" for x in torch.cat([matrix.reshape(-1), vector]).tolist())
    print(f"{{ {{ {options} }},\n  {{ {numbers} }} }},")
