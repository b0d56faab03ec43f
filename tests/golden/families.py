#!/usr/bin/python3
"""families.py: writes families/NAME/, small random models of each published family in the layout of its files, and what they give.

The architectures are written here once more, in PyTorch's own operations, from their papers and published weights' names. Each folder has
config.json and model.safetensors, as a published one has them, and golden.safetensors: ids, lengths (and types) of a batch, and the logits,
classes and hidden states that belong to it; of Pegasus also 20 tokens, each the likeliest of those that are not there yet. Numbers of
padding are not to be compared.

Usage: tests/golden/families.py   (needs PyTorch; the tests do not)
       tests/golden/families.py FOLDER   runs the Marian, Pegasus or ModernBERT in FOLDER, say one that qkv exported, on its
                                         golden.safetensors
"""
import json
import math
import os
import shutil
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
VOCABULARY, DIM, HEADS, INNER, LAYERS, LONGEST = 23, 16, 4, 24, 2, 12
LENGTHS, LENGTH = [7, 4], 7
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}


# ---- files ----

def tensor_bytes(x):
    x = x.contiguous()
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy().tobytes()


def write_safetensors(path, tensors, align=8):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, x in tensors.items():
        raw = tensor_bytes(x)
        header[name] = {"dtype": TYPES[x.dtype], "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    while len(text) % 8 != align % 8:
        text += b" "
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            out[name] = torch.from_numpy(np.frombuffer(data[begin:end], kinds[t["dtype"]]).reshape(t["shape"]).copy())
    return out


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


# ---- weights by name, made the first time they are asked for ----

class Weights:
    def __init__(self, seed, dtype=torch.float32, stored=None):
        self.random, self.dtype, self.stored = torch.Generator().manual_seed(seed), dtype, stored or {}
        self.given = stored is not None

    def __call__(self, name, *shape):
        if not self.given:
            scale = 0.3 if len(shape) == 2 else 0.1
            x = scale * torch.randn(*shape, generator=self.random)
            if name.endswith("weight") and len(shape) == 1:
                x = x + 1
            assert name not in self.stored, name
            self.stored[name] = x.to(self.dtype)
        assert list(self.stored[name].shape) == list(shape), name
        return self.stored[name].double()

    def linear(self, name, fan_in, fan_out, bias=True, turned=False):
        weight = self(name + ".weight", *((fan_in, fan_out) if turned else (fan_out, fan_in)))
        b = self(name + ".bias", fan_out) if bias else None
        return lambda x: F.linear(x, weight.T if turned else weight, b)

    def norm(self, name, eps, rms=False, bias=True):
        weight = self(name + ".weight", DIM)
        if rms:
            return lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
        b = self(name + ".bias", DIM) if bias else None
        return lambda x: F.layer_norm(x, (DIM,), weight, b, eps)


# ---- parts ----

def attend(q, k, v, seen, kv_heads=HEADS, turn=lambda x: x):
    def split(x, n):
        return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2)

    q, k, v = turn(split(q, HEADS)), turn(split(k, kv_heads)), split(v, kv_heads)
    k, v = k.repeat_interleave(HEADS // kv_heads, 1), v.repeat_interleave(HEADS // kv_heads, 1)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


def keys_seen(lengths, length, causal=False):
    seen = (torch.arange(length) < torch.tensor(lengths)[:, None])[:, None, None, :]
    return seen & torch.ones(length, length).tril().bool() if causal else seen


def frequencies(half, base, scaling):
    plain = base ** (-torch.arange(half).double() / half)
    if not scaling:
        return plain
    length, low, high = scaling["original_max_position_embeddings"], scaling["low_freq_factor"], scaling["high_freq_factor"]
    wave = 2 * math.pi / plain
    smooth = (length / wave - low) / (high - low)
    between = (1 - smooth) * plain / scaling["factor"] + smooth * plain
    return torch.where(wave < length / high, plain, torch.where(wave > length / low, plain / scaling["factor"], between))


def rotate(frequency):
    def turn(x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2]).double()[:, None] * frequency
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    return turn


ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_new": lambda x: F.gelu(x, approximate="tanh"), "swish": F.silu, "silu": F.silu}


# ---- families ----

def marian(config, w, g):
    """Pegasus too, which has its norms before each sub-layer and one at the end of each stack."""
    c, act, pre = config, ACTIVATIONS[config["activation_function"]], config["model_type"] == "pegasus"
    table = w("model.shared.weight", VOCABULARY, DIM)
    length = max(g["ids"].shape[1], g["target"].shape[1])
    angle = torch.arange(length).double()[:, None] / 10000.0 ** (2 * torch.arange(DIM // 2).double() / DIM)
    places = torch.cat([angle.sin(), angle.cos()], 1)
    hidden = []

    def attention(name, x, y, seen):
        q, k, v, out = (w.linear(f"{name}.{part}_proj", DIM, DIM) for part in ("q", "k", "v", "out"))
        return out(attend(q(x), k(y), v(y), seen))

    def add(x, norm, part):
        return x + part(norm(x)) if pre else norm(x + part(x))

    def stack(name, ids, seen, memory=None, memory_seen=None):
        x = table[ids] * (math.sqrt(DIM) if c["scale_embedding"] else 1) + places[:ids.shape[1]]
        hidden.append(x)
        for i in range(c[name + "_layers"]):
            at = f"model.{name}.layers.{i}"
            x = add(x, w.norm(at + ".self_attn_layer_norm", 1e-5), lambda y: attention(at + ".self_attn", y, y, seen))
            if memory is not None:
                x = add(x, w.norm(at + ".encoder_attn_layer_norm", 1e-5),
                        lambda y: attention(at + ".encoder_attn", y, memory, memory_seen))
            into, norm = w.linear(at + ".fc1", DIM, c["encoder_ffn_dim"]), w.norm(at + ".final_layer_norm", 1e-5)
            out = w.linear(at + ".fc2", c["encoder_ffn_dim"], DIM)
            x = add(x, norm, lambda y: out(act(into(y))))
            hidden.append(x)
        if pre:
            x = hidden[-1] = w.norm(f"model.{name}.layer_norm", 1e-5)(x)
        return x

    lengths, target = g["lengths"].int().tolist(), g["target_lengths"].int().tolist()
    seen = keys_seen(lengths, g["ids"].shape[1])
    memory = stack("encoder", g["ids"].long(), seen)
    x = stack("decoder", g["target"].long(), keys_seen(target, g["target"].shape[1], True), memory, seen)
    bias = w("final_logits_bias", 1, VOCABULARY) if "final_logits_bias" in w.stored or not w.given else 0
    g["logits"] = x @ table.T + bias
    return hidden


def pegasus(config, w, g):
    hidden = marian(config, w, g)
    stored, so_far = Weights(0, stored=w.stored), dict(g, target=torch.full((2, 1), config["decoder_start_token_id"]))
    for n in range(1, 21):
        so_far["target_lengths"] = torch.full((2,), n)
        marian(config, stored, so_far)
        new = so_far["logits"][:, -1].scatter(1, so_far["target"], -math.inf)
        so_far["target"] = torch.cat([so_far["target"], new.argmax(1, keepdim=True)], 1)
    g["greedy"] = so_far["target"][:, 1:]
    return hidden


def bert_layers(config, w, x, seen, names, eps, inner, act):
    hidden = [x]
    for i in range(LAYERS):
        def part(key):
            return names["layer"] + f".{i}." + names[key]

        q, k, v = (w.linear(part(key), DIM, DIM) for key in "qkv")
        found = w.linear(part("out"), DIM, DIM)(attend(q(x), k(x), v(x), seen))
        x = w.norm(part("norm1"), eps)(x + found)
        found = w.linear(part("ffn2"), inner, DIM)(act(w.linear(part("ffn1"), DIM, inner)(x)))
        x = w.norm(part("norm2"), eps)(x + found)
        hidden.append(x)
    return hidden


BERT_NAMES = dict(q="attention.self.query", k="attention.self.key", v="attention.self.value", out="attention.output.dense",
                  norm1="attention.output.LayerNorm", ffn1="intermediate.dense", ffn2="output.dense", norm2="output.LayerNorm")
DISTILBERT_NAMES = dict(q="attention.q_lin", k="attention.k_lin", v="attention.v_lin", out="attention.out_lin", norm1="sa_layer_norm",
                        ffn1="ffn.lin1", ffn2="ffn.lin2", norm2="output_layer_norm")


def bert(config, w, g, prefix="bert."):
    kind, eps = config["architectures"][0], config["layer_norm_eps"]
    is_roberta, act = config["model_type"] == "roberta", ACTIVATIONS[config["hidden_act"]]
    table = w(prefix + "embeddings.word_embeddings.weight", VOCABULARY, DIM)
    places = w(prefix + "embeddings.position_embeddings.weight", config["max_position_embeddings"], DIM)
    types = w(prefix + "embeddings.token_type_embeddings.weight", config["type_vocab_size"], DIM)
    first = config["pad_token_id"] + 1 if is_roberta else 0
    x = table[g["ids"].long()] + types[g["types"].long()] + places[first:first + LENGTH]
    x = w.norm(prefix + "embeddings.LayerNorm", eps)(x)
    names = dict(BERT_NAMES, layer=prefix + "encoder.layer")
    hidden = bert_layers(config, w, x, keys_seen(LENGTHS, LENGTH), names, eps, INNER, act)
    x = hidden[-1]
    if kind.endswith("ForMaskedLM") and not is_roberta:
        x = w.norm("cls.predictions.transform.LayerNorm", eps)(act(w.linear("cls.predictions.transform.dense", DIM, DIM)(x)))
        g["logits"] = x @ table.T + w("cls.predictions.bias", VOCABULARY)
        if not w.given:
            w.linear("cls.seq_relationship", DIM, 2)
            w.linear("bert.pooler.dense", DIM, DIM)
    elif kind.endswith("ForMaskedLM"):
        x = w.norm("lm_head.layer_norm", eps)(F.gelu(w.linear("lm_head.dense", DIM, DIM)(x)))
        g["logits"] = x @ table.T + w("lm_head.bias", VOCABULARY)
    elif is_roberta:
        x = torch.tanh(w.linear("classifier.dense", DIM, DIM)(x[:, 0]))
        g["classes"] = w.linear("classifier.out_proj", DIM, len(config["id2label"]))(x)
    elif kind == "BertForSequenceClassification":
        x = torch.tanh(w.linear("bert.pooler.dense", DIM, DIM)(x[:, 0]))
        g["classes"] = w.linear("classifier", DIM, len(config["id2label"]))(x)
    else:
        w.linear(prefix + "pooler.dense", DIM, DIM)
    return hidden


def distilbert(config, w, g):
    act = ACTIVATIONS[config["activation"]]
    table = w("distilbert.embeddings.word_embeddings.weight", VOCABULARY, DIM)
    places = w("distilbert.embeddings.position_embeddings.weight", config["max_position_embeddings"], DIM)
    x = w.norm("distilbert.embeddings.LayerNorm", 1e-12)(table[g["ids"].long()] + places[:LENGTH])
    names = dict(DISTILBERT_NAMES, layer="distilbert.transformer.layer")
    hidden = bert_layers(config, w, x, keys_seen(LENGTHS, LENGTH), names, 1e-12, INNER, act)
    x = hidden[-1]
    if config["architectures"][0] == "DistilBertForMaskedLM":
        x = w.norm("vocab_layer_norm", 1e-12)(act(w.linear("vocab_transform", DIM, DIM)(x)))
        g["logits"] = x @ table.T + w("vocab_projector.bias", VOCABULARY)
    else:
        x = F.relu(w.linear("pre_classifier", DIM, DIM)(x[:, 0]))
        g["classes"] = w.linear("classifier", DIM, len(config["id2label"]))(x)
    return hidden


def gpt2(config, w, g):
    act, eps = ACTIVATIONS[config["activation_function"]], config["layer_norm_epsilon"]
    inner, seen = config["n_inner"] or 4 * DIM, keys_seen(LENGTHS, LENGTH, True)
    table = w("wte.weight", VOCABULARY, DIM)
    x = table[g["ids"].long()] + w("wpe.weight", config["n_positions"], DIM)[:LENGTH]
    hidden = [x]
    for i in range(config["n_layer"]):
        at = f"h.{i}."
        q, k, v = w.linear(at + "attn.c_attn", DIM, 3 * DIM, turned=True)(w.norm(at + "ln_1", eps)(x)).split(DIM, 2)
        x = x + w.linear(at + "attn.c_proj", DIM, DIM, turned=True)(attend(q, k, v, seen))
        h = act(w.linear(at + "mlp.c_fc", DIM, inner, turned=True)(w.norm(at + "ln_2", eps)(x)))
        x = x + w.linear(at + "mlp.c_proj", inner, DIM, turned=True)(h)
        hidden.append(x)
    hidden[-1] = w.norm("ln_f", eps)(x)
    g["logits"] = hidden[-1] @ table.T
    return hidden


def llama(config, w, g):
    eps, seen, kv = config["rms_norm_eps"], keys_seen(LENGTHS, LENGTH, True), config["num_key_value_heads"]
    width = config.get("head_dim", DIM // HEADS)
    turn = rotate(frequencies(width // 2, config["rope_theta"], config.get("rope_scaling")))
    bias = config["model_type"] == "qwen2"
    table = w("model.embed_tokens.weight", VOCABULARY, DIM)
    x = table[g["ids"].long()]
    hidden = [x]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        h = w.norm(at + "input_layernorm", eps, True)(x)
        q = w.linear(at + "self_attn.q_proj", DIM, HEADS * width, bias)(h)
        k, v = (w.linear(at + f"self_attn.{part}_proj", DIM, kv * width, bias)(h) for part in "kv")
        x = x + w.linear(at + "self_attn.o_proj", HEADS * width, DIM, False)(attend(q, k, v, seen, kv, turn))
        h = w.norm(at + "post_attention_layernorm", eps, True)(x)
        h = F.silu(w.linear(at + "mlp.gate_proj", DIM, INNER, False)(h)) * w.linear(at + "mlp.up_proj", DIM, INNER, False)(h)
        x = x + w.linear(at + "mlp.down_proj", INNER, DIM, False)(h)
        hidden.append(x)
    hidden[-1] = w.norm("model.norm", eps, True)(x)
    g["logits"] = hidden[-1] @ (table if config["tie_word_embeddings"] else w("lm_head.weight", VOCABULARY, DIM)).T
    return hidden


def modernbert(config, w, g):
    act, eps, inner, length = ACTIVATIONS[config["hidden_activation"]], config["norm_eps"], config["intermediate_size"], g["ids"].shape[1]
    seen, newer = keys_seen(g["lengths"].int().tolist(), length), config.get("rope_parameters", {})
    turn, local_turn = (rotate(frequencies(DIM // HEADS // 2, newer.get(kind, {}).get("rope_theta", config[key]), None))
                        for kind, key in (("full_attention", "global_rope_theta"), ("sliding_attention", "local_rope_theta")))
    near = (torch.arange(length)[:, None] - torch.arange(length)).abs() <= config["local_attention"] // 2
    near = seen & near
    near = near | ~near.any(-1, keepdim=True) & torch.eye(length).bool()  # far behind a text, itself instead of nothing: no NaN

    def is_local(i):
        types = config.get("layer_types")
        return types[i] == "sliding_attention" if types else i % config["global_attn_every_n_layers"] != 0

    def norm(name):
        return w.norm(name, eps, bias=config["norm_bias"])

    table = w("model.embeddings.tok_embeddings.weight", VOCABULARY, DIM)
    x = norm("model.embeddings.norm")(table[g["ids"].long()])
    hidden = [x]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        q, k, v = w.linear(at + "attn.Wqkv", DIM, 3 * DIM, config["attention_bias"])(norm(at + "attn_norm")(x) if i else x).split(DIM, 2)
        x = x + w.linear(at + "attn.Wo", DIM, DIM, config["attention_bias"])(
            attend(q, k, v, near if is_local(i) else seen, turn=local_turn if is_local(i) else turn))
        into, gate = w.linear(at + "mlp.Wi", DIM, 2 * inner, config["mlp_bias"])(norm(at + "mlp_norm")(x)).split(inner, 2)
        x = x + w.linear(at + "mlp.Wo", inner, DIM, config["mlp_bias"])(act(into) * gate)
        hidden.append(x)
    x = hidden[-1] = norm("model.final_norm")(x)
    is_classifier = config["architectures"][0] == "ModernBertForSequenceClassification"
    if is_classifier:
        real = seen[:, 0, 0, :, None].double()
        x = (x * real).sum(1) / real.sum(1) if config["classifier_pooling"] == "mean" else x[:, 0]
    x = norm("head.norm")(act(w.linear("head.dense", DIM, DIM, config["classifier_bias"])(x)))
    if is_classifier:
        g["classes"] = w.linear("classifier", DIM, len(config["id2label"]))(x)
    else:
        g["logits"] = x @ table.T + (w("decoder.bias", VOCABULARY) if config.get("decoder_bias", True) else 0)
    return hidden


# ---- the models ----

LABELS = {"id2label": {"0": "bad", "1": "neither", "2": "good"}, "label2id": {"bad": 0, "neither": 1, "good": 2}}
BERT = dict(model_type="bert", vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=INNER, max_position_embeddings=LONGEST, type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12,
            hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, pad_token_id=0, position_embedding_type="absolute",
            initializer_range=0.02)
ROBERTA = dict(BERT, model_type="roberta", type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
DISTILBERT = dict(model_type="distilbert", vocab_size=VOCABULARY, dim=DIM, n_layers=LAYERS, n_heads=HEADS, hidden_dim=INNER,
                  max_position_embeddings=LONGEST, activation="gelu", sinusoidal_pos_embds=False, tie_weights_=True, pad_token_id=0)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=2,
             intermediate_size=INNER, max_position_embeddings=64, hidden_act="silu", rms_norm_eps=1e-5, bos_token_id=1)
SCALING = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, rope_type="llama3")

PEGASUS = dict(model_type="pegasus", architectures=["PegasusForConditionalGeneration"], vocab_size=VOCABULARY, d_model=DIM,
               encoder_layers=2, decoder_layers=2, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
               encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, activation_function="relu", scale_embedding=True,
               static_position_embeddings=True, normalize_before=True, normalize_embedding=False, add_final_layer_norm=True,
               add_bias_logits=False, is_encoder_decoder=True, extra_pos_embeddings=1, max_position_embeddings=32, bos_token_id=0, pad_token_id=0, eos_token_id=1,
               decoder_start_token_id=0, forced_eos_token_id=1, num_beams=8, max_length=24, length_penalty=0.8)

MODERNBERT = dict(model_type="modernbert", vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=3, num_attention_heads=HEADS,
                  intermediate_size=INNER, max_position_embeddings=LONGEST, hidden_activation="gelu", norm_eps=1e-5, norm_bias=False,
                  attention_bias=False, mlp_bias=False, classifier_activation="gelu", classifier_bias=False, decoder_bias=True,
                  global_rope_theta=160000.0, local_rope_theta=10000.0, local_attention=128, global_attn_every_n_layers=1,
                  classifier_pooling="mean", pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3,
                  tie_word_embeddings=True, position_embedding_type="absolute", layer_norm_eps=1e-5)

MODELS = {
    "marian": (marian, dict(model_type="marian", architectures=["MarianMTModel"], vocab_size=VOCABULARY, d_model=DIM, encoder_layers=2,
                            decoder_layers=2, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=INNER,
                            decoder_ffn_dim=INNER, activation_function="swish", scale_embedding=True, static_position_embeddings=True,
                            normalize_before=False, normalize_embedding=False, add_final_layer_norm=False, is_encoder_decoder=True,
                            max_position_embeddings=LONGEST, eos_token_id=0, pad_token_id=22, decoder_start_token_id=22,
                            decoder_vocab_size=VOCABULARY, num_beams=6, max_length=12, bad_words_ids=[[22]],
                            share_encoder_decoder_embeddings=True), {}),
    "bert_mlm": (bert, dict(BERT, architectures=["BertForMaskedLM"]), {}),
    "bert_classify": (bert, dict(BERT, architectures=["BertForSequenceClassification"], **LABELS), {}),
    "bert_sentence": (bert, dict(BERT, architectures=["BertModel"], hidden_act="relu"), dict(prefix="")),
    "distilbert_mlm": (distilbert, dict(DISTILBERT, architectures=["DistilBertForMaskedLM"]), {}),
    "distilbert_classify": (distilbert, dict(DISTILBERT, architectures=["DistilBertForSequenceClassification"], **LABELS), {}),
    "roberta_mlm": (bert, dict(ROBERTA, architectures=["RobertaForMaskedLM"]), dict(prefix="roberta.")),
    "roberta_classify": (bert, dict(ROBERTA, architectures=["RobertaForSequenceClassification"], **LABELS), dict(prefix="roberta.")),
    "gpt2": (gpt2, dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=VOCABULARY, n_embd=DIM, n_layer=LAYERS,
                        n_head=HEADS, n_positions=LONGEST, n_ctx=LONGEST, n_inner=None, activation_function="gelu_new",
                        layer_norm_epsilon=1e-5, resid_pdrop=0.1, attn_pdrop=0.1, embd_pdrop=0.1, bos_token_id=22, eos_token_id=22), {}),
    "llama": (llama, dict(LLAMA, model_type="llama", architectures=["LlamaForCausalLM"], rope_theta=500.0, rope_scaling=SCALING,
                          tie_word_embeddings=False, eos_token_id=[2, 3], attention_bias=False, mlp_bias=False), {}),
    "qwen2": (llama, dict(LLAMA, model_type="qwen2", architectures=["Qwen2ForCausalLM"], rope_theta=1000000.0, tie_word_embeddings=True,
                          use_sliding_window=False, sliding_window=8, eos_token_id=2), {}),
    "mistral": (llama, dict(LLAMA, model_type="mistral", architectures=["MistralForCausalLM"], rope_theta=10000.0, head_dim=6,
                            tie_word_embeddings=False, sliding_window=32, eos_token_id=2), {}),
    "pegasus": (pegasus, PEGASUS, {}),
    "modernbert_mlm": (modernbert, dict(MODERNBERT, architectures=["ModernBertForMaskedLM"]), {}),
    # with biases everywhere, and as newer files say the base and which layers see a window: one that never bites
    "modernbert_classify": (modernbert, dict(MODERNBERT, architectures=["ModernBertForSequenceClassification"], norm_bias=True,
                                             attention_bias=True, mlp_bias=True, classifier_bias=True,
                                             layer_types=["full_attention", "sliding_attention", "full_attention"],
                                             rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=500.0),
                                                                  sliding_attention=dict(rope_type="default", rope_theta=500.0)),
                                             **LABELS), {}),
}
STORED = {"qwen2": torch.bfloat16, "mistral": torch.float16, "distilbert_mlm": torch.float64}


def older_names(stored):
    """As the first published BERT has its norms."""
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x for name, x in stored.items()}


def add_what_files_have_besides(name, stored):
    if name in ("marian", "pegasus"):
        stored["model.encoder.embed_positions.weight"] = torch.zeros(LONGEST, DIM)
        stored["model.decoder.embed_positions.weight"] = torch.zeros(LONGEST, DIM)
    elif name == "bert_mlm":
        stored["bert.embeddings.position_ids"] = torch.arange(LONGEST)[None]
        stored["cls.predictions.decoder.weight"] = stored["bert.embeddings.word_embeddings.weight"].clone()
        stored["cls.predictions.decoder.bias"] = stored["cls.predictions.bias"].clone()
        return older_names(stored)
    elif name == "modernbert_mlm":
        stored["decoder.weight"] = stored["model.embeddings.tok_embeddings.weight"].clone()
    elif name == "gpt2":
        for i in range(LAYERS):
            stored[f"h.{i}.attn.bias"] = torch.ones(1, 1, LONGEST, LONGEST).tril().bool()
    return stored


def batch(config):
    random = torch.Generator().manual_seed(5)
    g = {"ids": torch.randint(0, VOCABULARY, (2, LENGTH), generator=random), "lengths": torch.tensor(LENGTHS)}
    g["types"] = torch.randint(0, config.get("type_vocab_size", 1), (2, LENGTH), generator=random)
    if config["model_type"] in ("marian", "pegasus"):
        g["target"] = torch.randint(0, VOCABULARY, (2, 5), generator=random)
        g["target_lengths"] = torch.tensor([3, 5])
    return g


def make(number, name):
    family, config, more = MODELS[name]
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    w, g = Weights(number, STORED.get(name, torch.float32)), batch(config)
    for i, x in enumerate(family(config, w, g, **more)):
        g[f"hidden.{i}"] = x
    write_json(folder, "config.json", config)
    # gpt2's numbers lie at odd places: the format allows it
    write_safetensors(os.path.join(folder, "model.safetensors"), add_what_files_have_besides(name, w.stored), 3 if name == "gpt2" else 8)
    write_safetensors(os.path.join(folder, "golden.safetensors"), {key: x.float() for key, x in g.items()})
    return folder


def main():
    for number, name in enumerate(MODELS):
        folder = make(number, name)
        if name == "marian":
            write_json(folder, "generation_config.json", dict(num_beams=4, length_penalty=0.8, max_length=11, bad_words_ids=[[22], [5]]))
        if name == "bert_sentence":
            kind = "sentence_transformers.models."
            write_json(folder, "modules.json", [dict(idx=0, name="0", path="", type=kind + "Transformer"),
                                                dict(idx=1, name="1", path="1_Pooling", type=kind + "Pooling"),
                                                dict(idx=2, name="2", path="2_Normalize", type=kind + "Normalize")])
            write_json(folder, "1_Pooling/config.json", dict(word_embedding_dimension=DIM, pooling_mode_cls_token=False,
                                                             pooling_mode_mean_tokens=True, pooling_mode_max_tokens=False))
            write_json(folder, "sentence_bert_config.json", dict(max_seq_length=10, do_lower_case=False))


def check(folder):
    """The logits of an exported model against what golden.safetensors in its folder says."""
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    global VOCABULARY, DIM, HEADS
    is_marian = "d_model" in config
    VOCABULARY, DIM = config["vocab_size"], config["d_model" if is_marian else "hidden_size"]
    HEADS = config["encoder_attention_heads" if is_marian else "num_attention_heads"]
    g = read_safetensors(os.path.join(folder, "golden.safetensors"))
    expected = g["logits"].double()
    (marian if is_marian else modernbert)(config, Weights(0, stored=read_safetensors(os.path.join(folder, "model.safetensors"))), g)
    lengths = g["target_lengths" if is_marian else "lengths"]
    worst = max((g["logits"][i, :int(n)] - expected[i, :int(n)]).abs().max().item() for i, n in enumerate(lengths))
    print(f"largest difference {worst:.3g}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    check(sys.argv[1]) if len(sys.argv) > 1 else main()
