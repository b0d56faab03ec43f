#!/usr/bin/python3
"""decoders.py: writes decoders/NAME/, small random models of published families that are decoders alone, and what they give.

As families.py does, in PyTorch's own operations and from papers, configs and the names of published weights: one decoder with what
differs as arguments. golden.safetensors has ids and lengths of a batch, hidden states and logits that belong to it; `prompt` and 20
tokens that follow it, `greedy`, each the likeliest of those that are not there yet; and the gradients of the mean cross-entropy of
`prompt`'s next tokens, grad.NAME (of a tensor in parts grad.NAME#0, ...), as halves of the largest in size, grad_scale.NAME.

Usage: tests/golden/decoders.py [NAME...]   (needs PyTorch; the tests do not)
"""
import math
import os
import shutil
import sys

import torch
import torch.nn.functional as F

import families

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "decoders")
VOCABULARY, DIM, HEADS, KV_HEADS, INNER = 31, 16, 4, 2, 20
LENGTHS, LENGTH, PROMPT = [11, 6], 11, 6


# ---- positions ----

def frequencies(width, base, scaling):
    half = width // 2
    plain = base ** (-torch.arange(half).double() / half)
    kind = (scaling or {}).get("rope_type") or (scaling or {}).get("type", "default")
    if kind == "linear":
        return plain / scaling["factor"], 1.0
    if kind == "yarn":
        length, factor = scaling["original_max_position_embeddings"], scaling["factor"]

        def number(turns):
            return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(math.floor(number(scaling.get("beta_fast", 32))), 0), min(math.ceil(number(scaling.get("beta_slow", 1))), width - 1)
        ramp = ((torch.arange(half).double() - low) / (high - low if high > low else 0.001)).clamp(0, 1)
        return plain / factor * ramp + plain * (1 - ramp), scaling.get("attention_factor", 0.1 * math.log(factor) + 1)
    if kind == "longrope":
        return plain / torch.tensor(scaling["short_factor"]).double(), math.sqrt(1 + math.log(64 / 32) / math.log(32))
    assert kind in ("default", "dynamic"), kind
    return plain, 1.0


def rotate(x, frequency, scale, width):
    half = width // 2
    angle = torch.arange(x.shape[-2]).double()[:, None] * frequency
    cos, sin = scale * angle.cos(), scale * angle.sin()
    a, b, rest = x[..., :half], x[..., half:width], x[..., width:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


# ---- parts ----

class Weights(families.Weights):
    """Norms whose gains are stored less 1 have numbers around 0; gradients go to what is stored."""

    def __init__(self, seed, dtype, less_one):
        super().__init__(seed, dtype)
        self.less_one, self.leaves = less_one, {}

    def __call__(self, name, *shape):
        if name not in self.leaves:
            super().__call__(name, *shape)
            if self.less_one and len(shape) == 1 and name.endswith("norm.weight"):
                self.stored[name] = (self.stored[name].double() - 1).to(self.dtype)
            self.leaves[name] = self.stored[name].double().requires_grad_()
        return self.leaves[name]

    def rms(self, name, eps, width):
        gain = self(name + ".weight", width) + (1 if self.less_one else 0)
        return lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def cap(x, at):
    return at * torch.tanh(x / at) if at else x


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, window, scale, score_cap):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    n = q.shape[2]
    seen = torch.ones(n, n).tril().bool()
    if window:
        seen = seen & ~torch.ones(n, n).tril(-window).bool()
    scores = cap(q @ k.transpose(-1, -2) * scale, score_cap).masked_fill(~seen, -math.inf)
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


# ---- families ----

def llama(c, w, ids):
    """Llama, Mistral, Qwen2 and 3, Gemma 1 to 3, Phi-3. Rows are causal: padding at their end changes nothing before it."""
    kind, eps, hidden = c["model_type"], c["rms_norm_eps"], []
    width = c.get("head_dim", DIM // HEADS)
    gemma, newer_gemma = kind.startswith("gemma"), kind in ("gemma2", "gemma3_text")
    act = (lambda x: F.gelu(x, approximate="tanh")) if gemma else F.silu
    turned = int(width * c.get("partial_rotary_factor", 1))
    kv, bias = c["num_key_value_heads"], kind == "qwen2"
    scale = c.get("query_pre_attn_scalar", width) ** -0.5
    table = w("model.embed_tokens.weight", VOCABULARY, DIM)
    x = table[ids] * (math.sqrt(DIM) if gemma else 1)
    for i in range(c["num_hidden_layers"]):
        at, local = f"model.layers.{i}.", layer_window(c, i)
        hidden.append(x)
        h = w.rms(at + "input_layernorm", eps, DIM)(x)
        if kind == "phi3":
            both = w.linear(at + "self_attn.qkv_proj", DIM, (HEADS + 2 * kv) * width, False)(h)
            q, k, v = both.split([HEADS * width, kv * width, kv * width], -1)
        else:
            q = w.linear(at + "self_attn.q_proj", DIM, HEADS * width, bias)(h)
            k, v = (w.linear(at + f"self_attn.{part}_proj", DIM, kv * width, bias)(h) for part in "kv")
        q, k, v = split(q, HEADS), split(k, kv), split(v, kv)
        if kind in ("qwen3", "gemma3_text"):
            q, k = w.rms(at + "self_attn.q_norm", eps, width)(q), w.rms(at + "self_attn.k_norm", eps, width)(k)
        other = kind == "gemma3_text" and local
        frequency, by = frequencies(turned, c["rope_local_base_freq" if other else "rope_theta"], None if other else c.get("rope_scaling"))
        q, k = rotate(q, frequency, by, turned), rotate(k, frequency, by, turned)
        found = w.linear(at + "self_attn.o_proj", HEADS * width, DIM, False)(attend(q, k, v, local, scale, c.get("attn_logit_softcapping")))
        if newer_gemma:
            found = w.rms(at + "post_attention_layernorm", eps, DIM)(found)
        x = x + found
        h = w.rms(at + ("pre_feedforward_layernorm" if newer_gemma else "post_attention_layernorm"), eps, DIM)(x)
        if kind == "phi3":
            gate, up = w.linear(at + "mlp.gate_up_proj", DIM, 2 * INNER, False)(h).chunk(2, -1)
        else:
            gate, up = (w.linear(at + f"mlp.{part}_proj", DIM, INNER, False)(h) for part in ("gate", "up"))
        found = w.linear(at + "mlp.down_proj", INNER, DIM, False)(act(gate) * up)
        if newer_gemma:
            found = w.rms(at + "post_feedforward_layernorm", eps, DIM)(found)
        x = x + found
    hidden.append(w.rms("model.norm", eps, DIM)(x))
    output = table if c["tie_word_embeddings"] else w("lm_head.weight", VOCABULARY, DIM)
    return hidden, cap(hidden[-1] @ output.T, c.get("final_logit_softcapping"))


def layer_window(c, i):
    kind, window = c["model_type"], c.get("sliding_window")
    if kind == "qwen2":
        return window if c["use_sliding_window"] and i >= c["max_window_layers"] else None
    if kind == "gemma2":
        return window if i % 2 == 0 else None
    if kind == "gemma3_text":
        return window if (i + 1) % c["sliding_window_pattern"] else None
    return window if kind in ("mistral", "phi3") else None


def opt(c, w, ids):
    def norm(name):
        weight, bias = w(name + ".weight", DIM), w(name + ".bias", DIM)
        return lambda x: F.layer_norm(x, (DIM,), weight, bias, 1e-5)

    hidden, top = [], "model.decoder."
    table = w(top + "embed_tokens.weight", VOCABULARY, DIM)
    places = w(top + "embed_positions.weight", c["max_position_embeddings"] + 2, DIM)
    x = table[ids] + places[2:2 + ids.shape[1]]
    for i in range(c["num_hidden_layers"]):
        at = f"{top}layers.{i}."
        hidden.append(x)
        h = norm(at + "self_attn_layer_norm")(x)
        q, k, v = (split(w.linear(at + f"self_attn.{part}_proj", DIM, DIM)(h), HEADS) for part in "qkv")
        x = x + w.linear(at + "self_attn.out_proj", DIM, DIM)(attend(q, k, v, None, (DIM // HEADS) ** -0.5, None))
        h = F.relu(w.linear(at + "fc1", DIM, INNER)(norm(at + "final_layer_norm")(x)))
        x = x + w.linear(at + "fc2", INNER, DIM)(h)
    hidden.append(norm(top + "final_layer_norm")(x))
    return hidden, hidden[-1] @ table.T


def gpt_neox(c, w, ids):
    def norm(name):
        weight, bias = w(name + ".weight", DIM), w(name + ".bias", DIM)
        return lambda x: F.layer_norm(x, (DIM,), weight, bias, c["layer_norm_eps"])

    hidden, width = [], DIM // HEADS
    turned = int(width * c["rotary_pct"])
    frequency, _ = frequencies(turned, c["rotary_emb_base"], None)
    x = w("gpt_neox.embed_in.weight", VOCABULARY, DIM)[ids]
    for i in range(c["num_hidden_layers"]):
        at = f"gpt_neox.layers.{i}."
        hidden.append(x)
        both = w.linear(at + "attention.query_key_value", DIM, 3 * DIM)(norm(at + "input_layernorm")(x))
        q, k, v = (part.transpose(1, 2) for part in both.unflatten(-1, (HEADS, 3, width)).unbind(-2))
        q, k = rotate(q, frequency, 1, turned), rotate(k, frequency, 1, turned)
        found = w.linear(at + "attention.dense", DIM, DIM)(attend(q, k, v, None, width ** -0.5, None))
        h = norm(at + "post_attention_layernorm")(x if c["use_parallel_residual"] else x + found)
        x = x + found + w.linear(at + "mlp.dense_4h_to_h", INNER, DIM)(F.gelu(w.linear(at + "mlp.dense_h_to_4h", DIM, INNER)(h)))
    hidden.append(norm("gpt_neox.final_layer_norm")(x))
    return hidden, hidden[-1] @ w("embed_out.weight", VOCABULARY, DIM).T


# ---- models ----

def base(kind, name, **more):
    return dict(dict(model_type=kind, architectures=[name], vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=2,
                     num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, intermediate_size=INNER, max_position_embeddings=64,
                     hidden_act="silu", rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=True, attention_bias=False,
                     attention_dropout=0.0, bos_token_id=1, eos_token_id=2), **more)


GEMMA = dict(hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", head_dim=6, pad_token_id=0)
MODELS = {
    "qwen3": (llama, base("qwen3", "Qwen3ForCausalLM", head_dim=6, rope_theta=1000000.0, use_sliding_window=False, sliding_window=None,
                          max_window_layers=2,
                          rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0))),
    "qwen2_window": (llama, base("qwen2", "Qwen2ForCausalLM", num_hidden_layers=3, use_sliding_window=True, sliding_window=4,
                                 max_window_layers=1, rope_scaling=dict(rope_type="linear", factor=2.0))),
    "mistral_window": (llama, base("mistral", "MistralForCausalLM", sliding_window=5, tie_word_embeddings=False)),
    "gemma": (llama, base("gemma", "GemmaForCausalLM", **dict(GEMMA, hidden_act="gelu", hidden_activation=None))),
    "gemma2": (llama, base("gemma2", "Gemma2ForCausalLM", **GEMMA, num_hidden_layers=3, sliding_window=4, query_pre_attn_scalar=9,
                           attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
    "gemma3_text": (llama, base("gemma3_text", "Gemma3ForCausalLM", **GEMMA, num_hidden_layers=3, sliding_window=4,
                                sliding_window_pattern=2, query_pre_attn_scalar=6, attn_logit_softcapping=None,
                                final_logit_softcapping=None, rope_theta=1000000.0, rope_local_base_freq=100.0,
                                rope_scaling=dict(rope_type="linear", factor=8.0))),
    "phi3": (llama, base("phi3", "Phi3ForCausalLM", sliding_window=6, tie_word_embeddings=False, resid_pdrop=0.0, embd_pdrop=0.0,
                         partial_rotary_factor=0.5, original_max_position_embeddings=64, rope_scaling=None, rms_norm_eps=1e-5)),
    "phi3_long": (llama, base("phi3", "Phi3ForCausalLM", tie_word_embeddings=True, resid_pdrop=0.0, embd_pdrop=0.0,
                              num_key_value_heads=HEADS, original_max_position_embeddings=32, sliding_window=262144,
                              rope_scaling=dict(type="longrope", short_factor=[1.05, 2.5], long_factor=[1.5, 20.0]), rms_norm_eps=1e-5)),
    "opt": (opt, dict(model_type="opt", architectures=["OPTForCausalLM"], vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=2,
                      num_attention_heads=HEADS, ffn_dim=INNER, max_position_embeddings=32, activation_function="relu",
                      do_layer_norm_before=True, word_embed_proj_dim=DIM, dropout=0.1, attention_dropout=0.0, bos_token_id=2,
                      eos_token_id=2, pad_token_id=1, _remove_final_layer_norm=False)),
    "gpt_neox": (gpt_neox, dict(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], vocab_size=VOCABULARY, hidden_size=DIM,
                                num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=INNER, hidden_act="gelu",
                                max_position_embeddings=64, layer_norm_eps=1e-5, rotary_emb_base=10000, rotary_pct=0.5,
                                use_parallel_residual=True, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0)),
}


def put_gradients(c, w, g):
    kv = c.get("num_key_value_heads", HEADS) * DIM // HEADS
    parts = {"qkv_proj": [DIM, kv, kv], "gate_up_proj": [INNER, INNER]}
    for name, leaf in w.leaves.items():
        sizes = next((s for part, s in parts.items() if part in name), None)
        pieces = leaf.grad.split(sizes) if sizes else [leaf.grad]
        if "query_key_value" in name:
            sizes, pieces = True, [x.flatten(0, 1) for x in leaf.grad.unflatten(0, (HEADS, 3, -1)).unbind(1)]
        for i, piece in enumerate(pieces):
            most = piece.abs().max().clamp_min(1e-30)
            at = f"{name}#{i}" if sizes else name
            g["grad." + at], g["grad_scale." + at] = (piece / most).half(), most.reshape(1).float()


def write_on(family, c, w, ids):
    """20 more tokens, none twice."""
    new = []
    for _ in range(20):
        logits = family(c, w, torch.cat([ids, torch.tensor([new], dtype=torch.long)], 1))[1][0, -1].detach().clone()
        logits[torch.cat([ids[0], torch.tensor(new, dtype=torch.long)])] = -math.inf
        best = logits.topk(2)
        assert best.values[0] - best.values[1] > 1e-3, "too close to tell"
        new.append(int(best.indices[0]))
    return torch.tensor([new])


def make(number, name):
    family, c = MODELS[name]
    random = torch.Generator().manual_seed(9)
    w = Weights(40 + number, torch.bfloat16, c["model_type"].startswith("gemma"))
    ids = torch.randint(0, VOCABULARY, (2, LENGTH), generator=random)
    prompt = torch.randperm(VOCABULARY, generator=random)[:PROMPT][None]
    hidden, logits = family(c, w, ids)
    g = {"ids": ids, "lengths": torch.tensor(LENGTHS), "logits": logits, "prompt": prompt}
    g.update({f"hidden.{i}": x for i, x in enumerate(hidden)})
    g["greedy"] = write_on(family, c, w, prompt)
    F.cross_entropy(family(c, w, ids[:1])[1][0, :-1], ids[0, 1:]).backward()
    g = {key: x.detach().float() for key, x in g.items()}
    put_gradients(c, w, g)
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    families.write_json(folder, "config.json", c)
    families.write_safetensors(os.path.join(folder, "model.safetensors"), w.stored)
    families.write_safetensors(os.path.join(folder, "golden.safetensors"), g)


for i, name in enumerate(MODELS):
    if len(sys.argv) < 2 or name in sys.argv[1:]:
        make(i, name)
