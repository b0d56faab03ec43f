#!/usr/bin/python3
"""make_transformer.py: writes transformer.f32, what PyTorch says about the models of tests/test_transformer.c.

The models are written here once more, in PyTorch's own operations, with weights that both sides draw from their names. For each model
the file has, as float32: the logits, two numbers for the gradient of each weight (its length, and its product with the numbers that
the weight's name draws next), and the loss of 20 steps of Adam.

Usage: tests/golden/make_transformer.py   (needs PyTorch; the tests do not)
"""
import os

import numpy as np
import torch
import torch.nn.functional as F

BATCH, SOURCE, TARGET, STEPS = 3, 7, 6, 20
SOURCE_LENGTHS, TARGET_LENGTHS = [7, 4, 1], [6, 3, 5]

# The paper's model, BERT's kind, Llama's kind, and the other corners; then BERT, Llama 3 with Qwen's biases, the rest of the options,
# ModernBERT.
MODELS = [
    dict(vocabulary=23, encoder=2, decoder=2, positions="sinusoid"),
    dict(vocabulary=23, encoder=2, decoder=0, positions="learned", pre_norm=True, activation="gelu"),
    dict(vocabulary=23, encoder=0, decoder=2, positions="rotary", pre_norm=True, rms=True, activation="silu_gated", no_bias=True,
         kv_heads=2, untied=True, unscaled=True),
    dict(vocabulary=23, target=19, encoder=1, decoder=2, positions="halves", first=2, activation="gelu_tanh", kv_heads=1, d_k=6),
    dict(vocabulary=23, encoder=2, decoder=0, positions="learned", longest=7, first=2, activation="gelu", unscaled=True, eps=1e-12,
         embed_norm=True, types=2, head=True, output_bias=True, classes=3, pooling="first", pooler="tanh"),
    dict(vocabulary=23, encoder=0, decoder=2, positions="rotary", pre_norm=True, rms=True, activation="silu_gated", no_bias=True,
         kv_heads=2, untied=True, unscaled=True, output_bias=True, qkv_bias=True, base=500.0, scaling=(4.0, 1.0, 4.0, 24)),
    dict(vocabulary=23, encoder=1, decoder=1, positions="learned", activation="silu", embed_norm=True, types=3, head=True, output_bias=True,
         classes=3, pooling="mean", pooler="relu"),
    dict(vocabulary=23, encoder=2, decoder=0, positions="rotary", pre_norm=True, activation="gelu_gated", no_bias=True, unscaled=True,
         embed_norm=True, head=True, output_bias=True, no_norm_bias=True, no_first_norm=True, no_head_bias=True, classes=3, pooling="mean",
         pooler="head"),
]
DIM, HEADS, INNER = 16, 4, 32


class Draw:
    """Numbers that depend on a name alone."""

    def __init__(self, name):
        self.state = 2166136261
        for byte in name.encode():
            self.state = (self.state ^ byte) * 16777619 % 2**32

    def __call__(self, n):
        out = []
        for _ in range(n):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            out.append((self.state >> 8) / 2**23 - 1)
        return torch.tensor(out, dtype=torch.float64)


def ids(name, vocabulary, n):
    return ((Draw(name)(n) + 1) / 2 * vocabulary).long().clamp(max=vocabulary - 1)


class Model:
    def __init__(self, o):
        self.o, self.w, self.after = o, {}, {}
        if o["encoder"]:
            self.stack("encoder", "embed", o["vocabulary"], o["encoder"], False)
        if o["decoder"]:
            embed = "target_embed" if o.get("target") else "embed"
            self.stack("decoder", embed, o.get("target") or o["vocabulary"], o["decoder"], o["encoder"] > 0)
        if o.get("classes"):
            for name, size in ("pooler", DIM), ("classifier", o["classes"]):
                if name == "pooler" and o["pooler"] == "head":
                    continue
                self.add(name + ".weight", size, DIM)
                self.add(name + ".bias", size)
        if o.get("head"):
            self.add("head.weight", DIM, DIM)
            if not o.get("no_head_bias"):
                self.add("head.bias", DIM)
            self.norm_weights("head.norm")
        if o.get("untied"):
            self.add("output.weight", o.get("target") or o["vocabulary"], DIM)
        if o.get("output_bias"):
            self.add("output.bias", o.get("target") or o["vocabulary"])

    def add(self, name, *shape):
        draw = Draw(name)
        values = draw(int(np.prod(shape)))
        self.after[name] = draw
        if len(shape) == 2:
            values = 0.3 * values
        elif name.endswith("norm.weight"):
            values = 1 + 0.1 * values
        else:
            values = 0.1 * values
        self.w[name] = values.float().double().reshape(shape).requires_grad_()

    def linear_weights(self, name, fan_in, fan_out):
        self.add(name + ".weight", fan_out, fan_in)
        if not self.o.get("no_bias") or (self.o.get("qkv_bias") and name[-2:] in (".q", ".k", ".v")):
            self.add(name + ".bias", fan_out)

    def norm_weights(self, name):
        self.add(name + ".weight", DIM)
        if not self.o.get("rms") and not self.o.get("no_norm_bias"):
            self.add(name + ".bias", DIM)

    def attention_weights(self, name):
        d_k = self.o.get("d_k", DIM // HEADS)
        self.linear_weights(name + ".q", DIM, HEADS * d_k)
        for part in "kv":
            self.linear_weights(name + "." + part, DIM, self.o.get("kv_heads", HEADS) * d_k)
        self.linear_weights(name + ".out", HEADS * d_k, DIM)

    def stack(self, name, embed, vocabulary, layers, crosses):
        if embed + ".weight" not in self.w:
            self.add(embed + ".weight", vocabulary, DIM)
        if name == "encoder" and self.o.get("types"):
            self.add("token_types.weight", self.o["types"], DIM)
        if self.o["positions"] == "learned":
            self.add(name + ".positions.weight", self.o.get("longest", 9) + self.o.get("first", 0), DIM)
        if self.o.get("embed_norm"):
            self.norm_weights(name + ".embed_norm")
        for i in range(layers):
            at = f"{name}.{i}."
            self.attention_weights(at + "self")
            if i or not self.o.get("no_first_norm"):
                self.norm_weights(at + "self_norm")
            if crosses:
                self.attention_weights(at + "cross")
                self.norm_weights(at + "cross_norm")
            self.linear_weights(at + "ffn.in", DIM, INNER)
            if self.o.get("activation", "").endswith("_gated"):
                self.linear_weights(at + "ffn.gate", DIM, INNER)
            self.linear_weights(at + "ffn.out", INNER, DIM)
            self.norm_weights(at + "ffn_norm")
        if self.o.get("pre_norm"):
            self.norm_weights(name + ".norm")

    def linear(self, name, x):
        return F.linear(x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def norm(self, name, x):
        if self.o.get("rms"):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w[name + ".weight"]
        if name + ".weight" not in self.w:  # the first one may be left out
            return x
        return F.layer_norm(x, (DIM,), self.w[name + ".weight"], self.w.get(name + ".bias"), self.o.get("eps", 1e-5))

    def frequencies(self, half):
        plain = self.o.get("base", 10000.0) ** (-torch.arange(half).double() / half)
        if not self.o.get("scaling"):
            return plain
        factor, low, high, length = self.o["scaling"]
        wave = 2 * np.pi / plain
        smooth = (length / wave - low) / (high - low)
        between = (1 - smooth) * plain / factor + smooth * plain
        return torch.where(wave < length / high, plain, torch.where(wave > length / low, plain / factor, between))

    def rotate(self, x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2]).double()[:, None] * self.frequencies(half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def attention(self, name, x, y, seen, turned):
        def heads(z, n):
            return z.reshape(z.shape[0], z.shape[1], n, -1).transpose(1, 2)

        kv = self.o.get("kv_heads", HEADS)
        q, k, v = heads(self.linear(name + ".q", x), HEADS), heads(self.linear(name + ".k", y), kv), heads(self.linear(name + ".v", y), kv)
        if turned:
            q, k = self.rotate(q), self.rotate(k)
        k, v = k.repeat_interleave(HEADS // kv, 1), v.repeat_interleave(HEADS // kv, 1)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~seen, -np.inf)
        return self.linear(name + ".out", (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))

    def activate(self, h):
        kind = self.o.get("activation", "relu").replace("_gated", "")
        return F.gelu(h, approximate="tanh") if kind == "gelu_tanh" else getattr(F, kind)(h)

    def feed_forward(self, name, x):
        h = self.linear(name + ".in", x)
        if self.o.get("activation", "").endswith("_gated"):
            h = self.activate(self.linear(name + ".gate", x)) * h
        else:
            h = self.activate(h)
        return self.linear(name + ".out", h)

    def positions(self, name, length):
        first, kind = self.o.get("first", 0), self.o["positions"]
        if kind == "learned":
            return self.w[name + ".positions.weight"][first:first + length]
        angle = (first + torch.arange(length)).double()[:, None] / 10000.0 ** (2 * torch.arange(DIM // 2).double() / DIM)
        if kind == "halves":
            return torch.cat([angle.sin(), angle.cos()], 1)
        return torch.stack([angle.sin(), angle.cos()], 2).flatten(1) if kind == "sinusoid" else torch.zeros(length, DIM)

    def run(self, name, embed, tokens, seen, memory=None, memory_seen=None):
        x = self.w[embed + ".weight"][tokens]
        if not self.o.get("unscaled"):
            x = x * DIM ** 0.5
        if name == "encoder" and self.o.get("types"):
            x = x + self.w["token_types.weight"][ids("types", self.o["types"], BATCH * SOURCE).reshape(BATCH, SOURCE)]
        x = x + self.positions(name, tokens.shape[1])
        if self.o.get("embed_norm"):
            x = self.norm(name + ".embed_norm", x)
        pre = self.o.get("pre_norm")

        def sub(norm, f, x):
            return x + f(self.norm(norm, x)) if pre else self.norm(norm, x + f(x))

        for i in range(self.o[name]):
            at = f"{name}.{i}."
            x = sub(at + "self_norm", lambda z: self.attention(at + "self", z, z, seen, self.o["positions"] == "rotary"), x)
            if memory is not None:
                x = sub(at + "cross_norm", lambda z: self.attention(at + "cross", z, memory, memory_seen, False), x)
            x = sub(at + "ffn_norm", lambda z: self.feed_forward(at + "ffn", z), x)
        return self.norm(name + ".norm", x) if pre else x

    def head(self, x):
        return self.norm("head.norm", self.activate(self.linear("head", x)))

    def logits(self):
        o = self.o
        source = ids("source", o["vocabulary"], BATCH * SOURCE).reshape(BATCH, SOURCE)
        target = ids("target", o.get("target") or o["vocabulary"], BATCH * TARGET).reshape(BATCH, TARGET)

        def keys(lengths, length):
            return (torch.arange(length) < torch.tensor(lengths)[:, None])[:, None, None, :]

        x = memory = memory_seen = None
        if o["encoder"]:
            memory_seen = keys(SOURCE_LENGTHS, SOURCE)
            x = memory = self.run("encoder", "embed", source, memory_seen)
        if o["decoder"]:
            seen = keys(TARGET_LENGTHS, TARGET) & torch.ones(TARGET, TARGET).tril().bool()
            x = self.run("decoder", "target_embed" if o.get("target") else "embed", target, seen, memory, memory_seen)
        table = "output" if o.get("untied") else "target_embed" if o.get("target") else "embed"
        if o.get("head"):
            x = self.head(x)
        self.memory = memory
        return F.linear(x, self.w[table + ".weight"], self.w.get("output.bias"))

    def class_loss(self):
        if not self.o.get("classes"):
            return 0
        seen = (torch.arange(SOURCE) < torch.tensor(SOURCE_LENGTHS)[:, None]).double()[:, :, None]
        x = self.memory[:, 0] if self.o["pooling"] == "first" else (self.memory * seen).sum(1) / seen.sum(1)
        x = self.head(x) if self.o["pooler"] == "head" else getattr(torch, self.o["pooler"])(self.linear("pooler", x))
        return F.cross_entropy(self.linear("classifier", x), torch.arange(BATCH))

    def loss(self, logits):
        size, length = logits.shape[-1], logits.shape[1]
        lengths = TARGET_LENGTHS if self.o["decoder"] else SOURCE_LENGTHS
        labels = ids("labels", size, BATCH * length).reshape(BATCH, length)
        labels[torch.arange(length) >= torch.tensor(lengths)[:, None]] = -100
        return F.cross_entropy(logits.reshape(-1, size), labels.reshape(-1), label_smoothing=0.1) + self.class_loss()


def main():
    out = []
    for o in MODELS:
        m = Model(o)
        logits = m.logits()
        m.loss(logits).backward()
        out.append(logits.detach().reshape(-1))
        for name, w in m.w.items():
            grad = w.grad.reshape(-1)
            out.append(torch.stack([grad.norm(), (grad * m.after[name](len(grad))).sum()]))
        adam, losses = torch.optim.Adam(m.w.values(), lr=3e-3), []
        for _ in range(STEPS):
            adam.zero_grad()
            loss = m.loss(m.logits())
            loss.backward()
            adam.step()
            losses.append(loss.detach())
        out.append(torch.stack(losses))
    values = torch.cat([x.double() for x in out]).numpy().astype(np.float32)
    values.tofile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformer.f32"))


if __name__ == "__main__":
    main()
