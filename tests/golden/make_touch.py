#!/usr/bin/python3
"""make_touch.py: writes touch.f32, what PyTorch says about the models of tests/test_touch.c when parts of them are changed.

The models are those of make_transformer.py, of one row, with every change written out: for each query its own values and weights.
For each model the file has, as float32: the logits under each list of changes; the logit lens; the attributions of each method; and
gradient x input of a model with changes.

Usage: tests/golden/make_touch.py   (needs PyTorch; the tests do not)
"""
import os

import numpy as np
import torch
import torch.nn.functional as F

import make_transformer
from make_transformer import DIM, HEADS

VOCABULARY, STEPS, AT = 14, 8, 2
SOURCE, READ, NEXT = [5, 6, 4, 7, 6, 2], [1, 6, 5, 7, 4], [6, 5, 7, 4, 2]
TEXT = [1, 5, 6, 4, 7, 6, 2]  # as an encoder alone reads it, and a decoder alone without its end

ROW = [0.25, 0.0, 0.5, 0.5]


def head(kind, layer, number):
    return dict(what="head", kind=kind, layer=layer, head=number)


def change(what, kind, layer=-1, place=0, other=0):
    return dict(what=what, kind=kind, layer=layer, place=place, other=other)


def edit(kind, layer, number, place, row):
    return dict(what="edit", kind=kind, layer=layer, head=number, place=place, row=row)


PAIR = [
    [],
    [head("encoder", 1, 1)],
    [head("decoder", 0, 3)],
    [head("cross", 1, 0), head("cross", 1, 2)],
    [change("layer", "encoder", 0)],
    [change("layer", "decoder", 1)],
    [change("hide", "encoder", place=1), change("hide", "cross", place=1)],
    [change("hide", "decoder", place=1)],
    [change("hide", "decoder", place=0)],  # the first query sees nothing then
    [change("move", "encoder", place=1, other=4)],
    [change("move", "decoder", place=2, other=9)],
    [edit("encoder", 0, 2, 3, ROW)],
    [edit("decoder", 1, 1, 3, ROW)],
    [edit("cross", 1, 3, 2, ROW)],
    [change("swap", "encoder", place=0, other=3)],
    [change("swap", "decoder", place=3, other=1)],
    [change("swap", "cross", layer=1, place=2, other=4)],
    [change("zero", "decoder", layer=0, place=1), change("swap", "decoder", layer=0, place=1, other=2)],
    [change("swap", "decoder", place=3, other=0), edit("decoder", 0, 0, 3, ROW), head("decoder", 0, 0), change("swap", "decoder", place=1, other=2)],
]
ENCODER = [
    [],
    [head("encoder", 0, 2)],
    [change("layer", "encoder", 1)],
    [change("hide", "encoder", place=2)],
    [change("move", "encoder", place=2, other=8)],
    [edit("encoder", 1, 0, 5, ROW)],
    [change("swap", "encoder", layer=0, place=1, other=5)],
]
DECODER = [
    [],
    [head("decoder", 1, 1)],
    [change("layer", "decoder", 0)],
    [change("hide", "decoder", place=2)],
    [change("move", "decoder", place=1, other=30)],
    [edit("decoder", 1, 3, 4, ROW)],
    [change("swap", "decoder", layer=1, place=3, other=1)],
]
MODELS = [
    (dict(vocabulary=VOCABULARY, encoder=2, decoder=2, positions="sinusoid"), PAIR, SOURCE, READ, NEXT,
     [head("cross", 0, 1), edit("decoder", 1, 1, 2, ROW[:3]), change("swap", "decoder", place=2, other=1), change("hide", "encoder", place=2)]),
    (dict(vocabulary=VOCABULARY, encoder=2, decoder=0, positions="learned", pre_norm=True, activation="gelu", classes=3, pooling="mean",
          pooler="tanh"), ENCODER, TEXT, [], [], [head("encoder", 1, 1), change("move", "encoder", place=2, other=4)]),
    (dict(vocabulary=VOCABULARY, encoder=0, decoder=2, positions="rotary", pre_norm=True, rms=True, activation="silu_gated", no_bias=True,
          kv_heads=2, untied=True, unscaled=True), DECODER, [], TEXT[:-1], TEXT[1:-1],
     [head("decoder", 0, 1), edit("decoder", 1, 2, 2, ROW[:3]), change("zero", "decoder", place=1)]),
]


def path(steps):
    """Points of 0..1 and their weights: half of them over 1/16..1, half over the logarithms from e^-40/16 to 1/16."""
    points, weights = np.polynomial.legendre.leggauss(4)
    out, panels = [], steps // 8
    for panel in range(panels):
        for x, w in zip(points, weights):
            t, part = (panel + (x + 1) / 2) / panels, w / 2 / panels
            low = np.exp(40 * (t - 1)) / 16
            out += [(1 / 16 + 15 / 16 * t, 15 / 16 * part), (low, 40 * low * part)]
    return out


class Model(make_transformer.Model):
    def changes(self, what, kind, layer=None):
        return [c for c in self.touches if c["what"] == what and c["kind"] == kind and (layer is None or c["layer"] in (-1, layer))]

    def places(self, name, n):
        places = list(range(n))
        for c in self.changes("move", name):
            if c["place"] < n:
                places[c["place"]] = c["other"]
        return torch.tensor(places)

    def turn(self, x, places):
        half = x.shape[-1] // 2
        angle = places.double()[:, None] * self.frequencies(half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def values(self, v, kind, layer, query):
        """v (heads, keys, width) as a query has it."""
        source = list(range(v.shape[1]))
        for c in self.touches:
            if c["what"] not in ("swap", "zero") or c["kind"] != kind or c["layer"] not in (-1, layer):
                continue
            if c["what"] == "zero":
                source[c["place"]] = None
            elif kind != "decoder" or query >= max(c["place"], c["other"]):
                a, b = c["place"], c["other"]
                source[a], source[b] = source[b], source[a]
        return torch.stack([torch.zeros_like(v[:, 0]) if s is None else v[:, s] for s in source], 1)

    def attend(self, kind, name, layer, x, y, places):
        kv = self.o.get("kv_heads", HEADS)
        q, k, v = (self.linear(f"{name}.{p}", z).reshape(len(z), n, -1).transpose(0, 1) for p, z, n in (("q", x, HEADS), ("k", y, kv), ("v", y, kv)))
        if self.o["positions"] == "rotary":
            q, k = self.turn(q, places), self.turn(k, places)
        k, v = k.repeat_interleave(HEADS // kv, 0), v.repeat_interleave(HEADS // kv, 0)
        seen = torch.ones(len(x), len(y)).bool()
        if kind == "decoder":
            seen = seen.tril()
        for c in self.changes("hide", kind):
            if c["place"] < len(y):
                seen[:, c["place"]] = False
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~seen, -1e30)
        weights = torch.softmax(scores, -1) * seen.any(-1)[:, None]
        rows = []
        for i in range(len(x)):
            w = weights[:, i]
            for c in self.changes("edit", kind, layer):
                if c["place"] == i:
                    row = torch.tensor(c["row"] + [0.0] * len(y), dtype=torch.float64)[:len(y)]
                    w = torch.stack([row if h == c["head"] else w[h] for h in range(HEADS)])
            out = torch.einsum("hk,hkd->hd", w, self.values(v, kind, layer, i))
            off = [c["head"] for c in self.changes("head", kind, layer)]
            rows.append(torch.stack([torch.zeros_like(out[h]) if h in off else out[h] for h in range(HEADS)]).flatten())
        self.weights.append(weights.mean(0))
        return self.linear(name + ".out", torch.stack(rows))

    def layer(self, name, i, x, memory, places):
        at, pre = f"{name}.{i}.", self.o.get("pre_norm")

        def sub(norm, f, x):
            return x + f(self.norm(norm, x)) if pre else self.norm(norm, x + f(x))

        y = sub(at + "self_norm", lambda z: self.attend(name, at + "self", i, z, z, places), x)
        if memory is not None:
            y = sub(at + "cross_norm", lambda z: self.attend("cross", at + "cross", i, z, memory, None), y)
        y = sub(at + "ffn_norm", lambda z: self.feed_forward(at + "ffn", z), y)
        return x if self.changes("layer", name, i) else y

    def embed(self, tokens):
        return self.w["embed.weight"][torch.tensor(tokens)] * (1 if self.o.get("unscaled") else DIM ** 0.5)

    def stack_over(self, name, e, memory=None):
        places = self.places(name, len(e))
        x = e
        if self.o["positions"] != "rotary":
            x = x + self.positions(name, int(places.max()) + 1)[places]
        states = [x]
        for i in range(self.o[name]):
            states.append(self.layer(name, i, states[-1], memory, places))
        return states

    def final(self, name, x):
        return self.norm(name + ".norm", x) if self.o.get("pre_norm") else x

    def say(self, x):
        return F.linear(x, self.w["output.weight" if self.o.get("untied") else "embed.weight"])

    def full(self, source, read, touches):
        """From embeddings to logits: (read, vocabulary), or (classes)."""
        self.touches, self.weights, memory = touches, [], None
        if source is not None:
            self.encoder_states = self.stack_over("encoder", source)
            memory = self.final("encoder", self.encoder_states[-1])
        self.memory = memory
        if read is not None:
            self.decoder_states = self.stack_over("decoder", read, memory)
            return self.say(self.final("decoder", self.decoder_states[-1]))
        return self.linear("classifier", torch.tanh(self.linear("pooler", memory.mean(0))))

    def lens(self, following):
        out = []
        for state in self.decoder_states:
            p = torch.softmax(self.say(self.final("decoder", state)), -1)
            out.append(torch.stack([p[i, t] for i, t in enumerate(following)]))
        return torch.stack(out)

    def mixed(self, name, memory_mixed, layer_mix):
        n, s = (len(self.decoder_states[0]), len(self.memory) if self.memory is not None else 0) if name == "decoder" else (len(self.memory), 0)
        total = torch.cat([torch.eye(n), torch.zeros(n, s)], 1).double()
        for i in range(self.o[name]):
            mix = layer_mix(name, i, n, s)
            mix = mix / mix.sum(1, keepdim=True)
            below = torch.cat([torch.zeros(s, n).double(), memory_mixed], 1) if s else torch.zeros(0, n + s).double()
            total = mix[:, :n] @ total + mix[:, n:] @ below
        return total

    def rollout_layer(self, name, i, n, s):
        encoder = self.o["encoder"]
        if s:
            return torch.cat([(self.weights[encoder + 2 * i] + torch.eye(n)) / 4, self.weights[encoder + 2 * i + 1] / 2], 1)
        return (self.weights[i] + torch.eye(n)) / 2

    def zeroing_layer(self, name, i, n, s):
        states, memory = (self.decoder_states, self.memory) if name == "decoder" else (self.encoder_states, None)
        places = self.places(name, n)
        plain = self.layer(name, i, states[i], memory, places)
        columns = []
        for j in range(n + s):
            self.touches = [change("zero", name if j < n else "cross", i, j if j < n else j - n)]
            moved = self.layer(name, i, states[i], memory, places)
            columns.append(1 - F.cosine_similarity(plain, moved, dim=-1))
        self.touches = []
        return torch.stack(columns, 1).clamp(min=0)

    def shares(self, layer_mix):
        encoder = self.mixed("encoder", None, layer_mix) if self.o["encoder"] else None
        if not self.o["decoder"]:
            return encoder.mean(0)
        row = self.mixed("decoder", encoder, layer_mix)[AT]
        n = len(self.decoder_states[0])
        return torch.cat([row[n:], row[:n]])

    def gradient(self, e, touches, output):
        e = [None if x is None else x.detach().requires_grad_() for x in e]
        logits = self.full(*e, touches)
        f = logits[output] if logits.dim() == 1 else logits[AT, output]
        f.backward()
        return f.item(), [None if x is None else x.grad for x in e]

    def products(self, e, grads):
        return torch.cat([(x * g).sum(-1) for x, g in zip(e, grads) if x is not None])

    def why(self, source, read, following, touched):
        """Attributions of the source, then of what is read up to AT."""
        e = [self.embed(source).detach() if source else None, self.embed(read[:AT + 1]).detach() if read else None]
        with torch.no_grad():
            logits = self.full(*e, [])
        output = following[AT] if read else int(logits.argmax())
        f, grads = self.gradient(e, [], output)
        total = 0
        for a, weight in path(STEPS):
            _, at = self.gradient([None if x is None else x * a for x in e], [], output)
            total = total + self.products(e, at) * weight
        base, _ = self.gradient([None if x is None else torch.zeros_like(x) for x in e], [], output)
        with torch.no_grad():
            self.full(*e, [])
            weights = list(self.weights)
            zeroing = self.shares(self.zeroing_layer)
            self.weights = weights
            rollout = self.shares(self.rollout_layer)
        changed, at = self.gradient(e, touched, output)
        return [torch.tensor([output, f, base]), self.products(e, grads), total, zeroing, rollout, torch.tensor([changed]), self.products(e, at)]


def main():
    out = []
    for options, lists, source, read, following, touched in MODELS:
        model = Model(options)
        with torch.no_grad():
            e = model.embed(source) if source else None, model.embed(read) if read else None
            out += [model.full(*e, touches) for touches in lists]
            model.full(*e, [])
            if read:
                out.append(model.lens(following))
        out += model.why(source, read, following, touched)
    numbers = torch.cat([x.detach().double().flatten() for x in out]).numpy().astype("<f4")
    numbers.tofile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "touch.f32"))
    print(len(numbers), "numbers")


if __name__ == "__main__":
    main()
