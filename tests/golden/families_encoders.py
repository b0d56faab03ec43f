#!/usr/bin/python3
"""families_encoders.py: as families.py, the families with an encoder that came later: T5, UMT5, BART with and without classes, mBART,
M2M-100, MPNet, ELECTRA, ALBERT, and ModernBERT with windows.

golden.safetensors has besides: 20 tokens of a decoder, each the likeliest of those that are not there yet ("greedy"), and the gradients
of the mean cross-entropy of the logits with the ids read, or of the classes with 0 and 1, for some weights ("grad." and our name).

Usage: tests/golden/families_encoders.py [NAME...]   (needs PyTorch; the tests do not)
"""
import math
import os
import shutil
import sys

import torch
import torch.nn.functional as F

from families import (ACTIVATIONS, BERT, BERT_NAMES, DIM, HEADS, HERE, INNER, LABELS, LAYERS, LENGTH, LENGTHS, LONGEST, MODERNBERT,
                      VOCABULARY, Weights, keys_seen, modernbert, write_json, write_safetensors)

NARROW = 10  # of the tables of ELECTRA and ALBERT


class Leaves(Weights):
    """Weights whose gradients are kept."""

    def __init__(self, seed):
        super().__init__(seed)
        self.leaf = {}

    def __call__(self, name, *shape):
        if name not in self.leaf:
            self.leaf[name] = super().__call__(name, *shape).clone().requires_grad_()
        assert list(self.leaf[name].shape) == list(shape), name
        return self.leaf[name]

    def norm_of(self, name, width, eps):
        weight, bias = self(name + ".weight", width), self(name + ".bias", width)
        return lambda x: F.layer_norm(x, (width,), weight, bias, eps)


def attend(q, k, v, seen, scale=None, bias=0):
    def split(x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)

    q, k, v = split(q), split(k), split(v)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q @ k.transpose(-1, -2) * scale + bias).masked_fill(~seen, -math.inf)
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


def bias_by_distance(table, queries, keys, farthest, causal):
    """T5, section 2.1: a number for each head and bucket of distances."""
    def bucket(distance):
        n, first = table.shape[0], 0
        if causal:
            distance = max(-distance, 0)
        else:
            n //= 2
            first, distance = (n, distance) if distance > 0 else (0, -distance)
        exact = n // 2
        if distance < exact:
            return first + distance
        far = torch.log(torch.tensor(float(distance)) / exact) / math.log(farthest / exact) * (n - exact)
        return first + min(exact + int(far), n - 1)

    rows = [[bucket(j - i) for j in range(keys)] for i in range(queries)]
    return table[torch.tensor(rows)].permute(2, 0, 1)


# ---- T5 ----

def t5(config, w, g):
    c, inner = config, HEADS * config["d_kv"]
    gated, farthest = c["feed_forward_proj"].startswith("gated-"), c["relative_attention_max_distance"]
    act = ACTIVATIONS["gelu_new" if gated else "relu"]
    table, hidden = w("shared.weight", VOCABULARY, DIM), []

    def rms(name, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + c["layer_norm_epsilon"]) * w(name + ".weight", DIM)

    def attention(name, x, y, seen, bias):
        q, k, v = (w.linear(f"{name}.{part}", DIM, inner, False) for part in "qkv")
        return w.linear(name + ".o", inner, DIM, False)(attend(q(x), k(y), v(y), seen, 1, bias))

    def feed_forward(name, x):
        if gated:
            x = act(w.linear(name + ".wi_0", DIM, INNER, False)(x)) * w.linear(name + ".wi_1", DIM, INNER, False)(x)
        else:
            x = act(w.linear(name + ".wi", DIM, INNER, False)(x))
        return w.linear(name + ".wo", INNER, DIM, False)(x)

    def stack(name, ids, seen, memory=None, memory_seen=None):
        x, n = table[ids], ids.shape[1]
        hidden.append(x)
        for i in range(LAYERS):
            at = f"{name}.block.{i}.layer."
            if i == 0 or c["model_type"] == "umt5":
                buckets = w(at + "0.SelfAttention.relative_attention_bias.weight", c["relative_attention_num_buckets"], HEADS)
                bias = bias_by_distance(buckets, n, n, farthest, memory is not None)
            h = rms(at + "0.layer_norm", x)
            x = x + attention(at + "0.SelfAttention", h, h, seen, bias)
            if memory is not None:
                x = x + attention(at + "1.EncDecAttention", rms(at + "1.layer_norm", x), memory, memory_seen, 0)
            last = at + ("1" if memory is None else "2")
            x = x + feed_forward(last + ".DenseReluDense", rms(last + ".layer_norm", x))
            hidden.append(x)
        x = hidden[-1] = rms(name + ".final_layer_norm", x)
        return x

    def output(x):
        if c["tie_word_embeddings"]:
            return x * DIM ** -0.5 @ table.T
        return x @ w("lm_head.weight", VOCABULARY, DIM).T

    return both(g, stack, output, hidden)


def both(g, stack, output, hidden, result="logits"):
    """An encoder and a decoder."""
    seen = keys_seen(g["lengths"].tolist(), g["ids"].shape[1])
    memory = stack("encoder", g["ids"], seen)
    x = stack("decoder", g["target"], keys_seen(g["target_lengths"].tolist(), g["target"].shape[1], True), memory, seen)
    g[result] = output(x)
    return hidden


# ---- BART, mBART, M2M-100 ----

def bart(config, w, g):
    c, act, kind = config, ACTIVATIONS[config["activation_function"]], config["model_type"]
    pre, table, hidden = kind != "bart", w("model.shared.weight", VOCABULARY, DIM), []
    factor = math.sqrt(DIM) if c["scale_embedding"] else 1

    def places(name, n):
        if kind != "m2m_100":
            return w(f"model.{name}.embed_positions.weight", c["max_position_embeddings"] + 2, DIM)[2:2 + n]
        half = DIM // 2
        angle = torch.arange(2, 2 + n).double()[:, None] * torch.exp(-math.log(10000) / (half - 1) * torch.arange(half).double())
        return torch.cat([angle.sin(), angle.cos()], 1)

    def attention(name, x, y, seen):
        q, k, v, out = (w.linear(f"{name}.{part}_proj", DIM, DIM) for part in ("q", "k", "v", "out"))
        return out(attend(q(x), k(y), v(y), seen))

    def add(x, norm, part):
        return x + part(norm(x)) if pre else norm(x + part(x))

    def stack(name, ids, seen, memory=None, memory_seen=None):
        x = table[ids] * factor + places(name, ids.shape[1])
        if kind != "m2m_100":
            x = w.norm(f"model.{name}.layernorm_embedding", 1e-5)(x)
        hidden.append(x)
        for i in range(LAYERS):
            at = f"model.{name}.layers.{i}"
            x = add(x, w.norm(at + ".self_attn_layer_norm", 1e-5), lambda y: attention(at + ".self_attn", y, y, seen))
            if memory is not None:
                x = add(x, w.norm(at + ".encoder_attn_layer_norm", 1e-5), lambda y: attention(at + ".encoder_attn", y, memory, memory_seen))
            into, out = w.linear(at + ".fc1", DIM, INNER), w.linear(at + ".fc2", INNER, DIM)
            x = add(x, w.norm(at + ".final_layer_norm", 1e-5), lambda y: out(act(into(y))))
            hidden.append(x)
        if pre:
            x = hidden[-1] = w.norm(f"model.{name}.layer_norm", 1e-5)(x)
        return x

    def output(x):
        if is_classifier(c):  # the state at the last </s> of each text
            x = x[torch.arange(x.shape[0]), g["lengths"] - 1]
            return w.linear("classification_head.out_proj", DIM, 3)(torch.tanh(w.linear("classification_head.dense", DIM, DIM)(x)))
        return x @ table.T + (0 if kind == "m2m_100" else w("final_logits_bias", 1, VOCABULARY))

    return both(g, stack, output, hidden, "classes" if is_classifier(c) else "logits")


# ---- encoders ----

MPNET_NAMES = dict(q="attention.attn.q", k="attention.attn.k", v="attention.attn.v", out="attention.attn.o", norm1="attention.LayerNorm",
                   ffn1="intermediate.dense", ffn2="output.dense", norm2="output.LayerNorm")
ALBERT_NAMES = dict(q="attention.query", k="attention.key", v="attention.value", out="attention.dense", norm1="attention.LayerNorm",
                    ffn1="ffn", ffn2="ffn_output", norm2="full_layer_layer_norm")


def layers(w, x, names, eps, act, bias=0):
    """names["layer"] has a # for the number of the layer, or none where all are one."""
    hidden, seen = [x], keys_seen(LENGTHS, LENGTH)
    for i in range(LAYERS):
        def part(key):
            return names["layer"].replace("#", str(i)) + names[key]

        q, k, v = (w.linear(part(key), DIM, DIM) for key in "qkv")
        x = w.norm(part("norm1"), eps)(x + w.linear(part("out"), DIM, DIM)(attend(q(x), k(x), v(x), seen, None, bias)))
        x = w.norm(part("norm2"), eps)(x + w.linear(part("ffn2"), INNER, DIM)(act(w.linear(part("ffn1"), DIM, INNER)(x))))
        hidden.append(x)
    return hidden


def is_classifier(config):
    return config["architectures"][0].endswith("ForSequenceClassification")


def mpnet(config, w, g):
    act, eps = ACTIVATIONS[config["hidden_act"]], config["layer_norm_eps"]
    table = w("mpnet.embeddings.word_embeddings.weight", VOCABULARY, DIM)
    places = w("mpnet.embeddings.position_embeddings.weight", config["max_position_embeddings"], DIM)
    x = w.norm("mpnet.embeddings.LayerNorm", eps)(table[g["ids"]] + places[2:2 + LENGTH])
    buckets = w("mpnet.encoder.relative_attention_bias.weight", config["relative_attention_num_buckets"], HEADS)
    bias = bias_by_distance(buckets, LENGTH, LENGTH, 128, False)
    hidden = layers(w, x, dict(MPNET_NAMES, layer="mpnet.encoder.layer.#."), eps, act, bias)
    x = hidden[-1]
    if is_classifier(config):
        x = torch.tanh(w.linear("classifier.dense", DIM, DIM)(x[:, 0]))
        g["classes"] = w.linear("classifier.out_proj", DIM, 3)(x)
    else:
        x = w.norm("lm_head.layer_norm", eps)(F.gelu(w.linear("lm_head.dense", DIM, DIM)(x)))
        g["logits"] = x @ table.T + w("lm_head.bias", VOCABULARY)
    return hidden


def narrow_embeddings(config, w, g, prefix, project):
    table = w(prefix + "embeddings.word_embeddings.weight", VOCABULARY, NARROW)
    places = w(prefix + "embeddings.position_embeddings.weight", config["max_position_embeddings"], NARROW)
    types = w(prefix + "embeddings.token_type_embeddings.weight", config["type_vocab_size"], NARROW)
    x = table[g["ids"]] + types[g["types"]] + places[:LENGTH]
    x = w.norm_of(prefix + "embeddings.LayerNorm", NARROW, config["layer_norm_eps"])(x)
    return table, w.linear(project, NARROW, DIM)(x)


def electra(config, w, g):
    act, eps = ACTIVATIONS[config["hidden_act"]], config["layer_norm_eps"]
    table, x = narrow_embeddings(config, w, g, "electra.", "electra.embeddings_project")
    hidden = layers(w, x, dict(BERT_NAMES, layer="electra.encoder.layer.#."), eps, act)
    x = hidden[-1]
    if is_classifier(config):
        x = F.gelu(w.linear("classifier.dense", DIM, DIM)(x[:, 0]))
        g["classes"] = w.linear("classifier.out_proj", DIM, 3)(x)
    else:
        x = w.norm_of("generator_predictions.LayerNorm", NARROW, eps)(F.gelu(w.linear("generator_predictions.dense", DIM, NARROW)(x)))
        g["logits"] = x @ table.T + w("generator_lm_head.bias", VOCABULARY)
    return hidden


def albert(config, w, g):
    act, eps = ACTIVATIONS[config["hidden_act"]], config["layer_norm_eps"]
    table, x = narrow_embeddings(config, w, g, "albert.", "albert.encoder.embedding_hidden_mapping_in")
    hidden = layers(w, x, dict(ALBERT_NAMES, layer="albert.encoder.albert_layer_groups.0.albert_layers.0."), eps, act)
    x = hidden[-1]
    pooler = w.linear("albert.pooler", DIM, DIM)
    if is_classifier(config):
        g["classes"] = w.linear("classifier", DIM, 3)(torch.tanh(pooler(x[:, 0])))
    else:
        x = w.norm_of("predictions.LayerNorm", NARROW, eps)(act(w.linear("predictions.dense", DIM, NARROW)(x)))
        g["logits"] = x @ table.T + w("predictions.bias", VOCABULARY)
    return hidden


# ---- the models ----

T5 = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], vocab_size=VOCABULARY, d_model=DIM, d_kv=6, d_ff=INNER,
          num_layers=LAYERS, num_decoder_layers=LAYERS, num_heads=HEADS, relative_attention_num_buckets=8,
          relative_attention_max_distance=12, dropout_rate=0.1, layer_norm_epsilon=1e-6, initializer_factor=1.0, feed_forward_proj="relu",
          is_encoder_decoder=True, use_cache=True, tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
          n_positions=512, task_specific_params=dict(summarization=dict(early_stopping=True, length_penalty=2.0, max_length=200, min_length=30,
                                                                        no_repeat_ngram_size=3, num_beams=4, prefix="summarize: ")))
BART = dict(model_type="bart", architectures=["BartForConditionalGeneration"], vocab_size=VOCABULARY, d_model=DIM, encoder_layers=LAYERS,
            decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=INNER,
            decoder_ffn_dim=INNER, activation_function="gelu", dropout=0.1, attention_dropout=0.0, activation_dropout=0.0,
            scale_embedding=False, normalize_before=False, normalize_embedding=True, add_final_layer_norm=False, add_bias_logits=False,
            static_position_embeddings=False, is_encoder_decoder=True, max_position_embeddings=32, bos_token_id=0, pad_token_id=1,
            eos_token_id=2, decoder_start_token_id=2, forced_bos_token_id=0, forced_eos_token_id=2, num_beams=4, max_length=24,
            early_stopping=True, no_repeat_ngram_size=3)
MBART = dict(BART, model_type="mbart", architectures=["MBartForConditionalGeneration"], activation_function="relu", scale_embedding=True,
             normalize_before=True, add_final_layer_norm=True, forced_bos_token_id=None)
M2M = dict(MBART, model_type="m2m_100", architectures=["M2M100ForConditionalGeneration"])
del M2M["normalize_before"], M2M["normalize_embedding"], M2M["add_final_layer_norm"], M2M["static_position_embeddings"]
MPNET = dict(model_type="mpnet", vocab_size=VOCABULARY, hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
             intermediate_size=INNER, max_position_embeddings=LONGEST, hidden_act="gelu", layer_norm_eps=1e-5, hidden_dropout_prob=0.1,
             attention_probs_dropout_prob=0.1, relative_attention_num_buckets=8, pad_token_id=1, bos_token_id=0, eos_token_id=2,
             initializer_range=0.02)
ELECTRA = dict(BERT, model_type="electra", embedding_size=NARROW, summary_activation="gelu", summary_last_dropout=0.1,
               summary_type="first", summary_use_proj=True)
ALBERT = dict(BERT, model_type="albert", embedding_size=NARROW, hidden_act="gelu_new", num_hidden_groups=1, inner_group_num=1,
              net_structure_type=0, gap_size=0, down_scale_factor=1, num_memory_blocks=0, classifier_dropout_prob=0.1, bos_token_id=2,
              eos_token_id=3)


def classifier(config, name):
    return dict(config, architectures=[name + "ForSequenceClassification"], **LABELS)


T5_GRADIENTS = {"embed.weight": "shared.weight", "decoder.norm.weight": "decoder.final_layer_norm.weight",
                "encoder.relative_positions.weight": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                "decoder.relative_positions.weight": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                "encoder.0.self.q.weight": "encoder.block.0.layer.0.SelfAttention.q.weight",
                "decoder.1.cross.k.weight": "decoder.block.1.layer.1.EncDecAttention.k.weight"}
UMT5_GRADIENTS = {"embed.weight": "shared.weight",
                  "encoder.1.relative_positions.weight": "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight",
                  "decoder.0.relative_positions.weight": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                  "decoder.1.relative_positions.weight": "decoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"}
BART_GRADIENTS = {"embed.weight": "model.shared.weight", "encoder.0.self.q.weight": "model.encoder.layers.0.self_attn.q_proj.weight",
                  "decoder.1.cross.k.weight": "model.decoder.layers.1.encoder_attn.k_proj.weight"}
PLACED = {"encoder.positions.weight": "model.encoder.embed_positions.weight", "decoder.embed_norm.bias": "model.decoder.layernorm_embedding.bias"}
ELECTRA_GRADIENTS = {"embed.weight": "electra.embeddings.word_embeddings.weight", "encoder.widen.weight": "electra.embeddings_project.weight",
                     "encoder.0.self.q.weight": "electra.encoder.layer.0.attention.self.query.weight"}
ONE = "albert.encoder.albert_layer_groups.0.albert_layers.0."
ALBERT_GRADIENTS = {"embed.weight": "albert.embeddings.word_embeddings.weight", "encoder.0.self.q.weight": ONE + "attention.query.weight",
                    "encoder.0.ffn_norm.bias": ONE + "full_layer_layer_norm.bias"}
MPNET_GRADIENTS = {"encoder.relative_positions.weight": "mpnet.encoder.relative_attention_bias.weight",
                   "embed.weight": "mpnet.embeddings.word_embeddings.weight"}
MODERNBERT_GRADIENTS = {"embed.weight": "model.embeddings.tok_embeddings.weight", "encoder.0.self.out.weight": "model.layers.0.attn.Wo.weight",
                        "encoder.1.self.out.weight": "model.layers.1.attn.Wo.weight", "encoder.1.self_norm.weight": "model.layers.1.attn_norm.weight"}

MODELS = {
    "t5": (t5, T5, T5_GRADIENTS),
    "flan_t5": (t5, dict(T5, feed_forward_proj="gated-gelu", dense_act_fn="gelu_new", is_gated_act=True, tie_word_embeddings=False),
                dict(T5_GRADIENTS, **{"decoder.0.ffn.gate.weight": "decoder.block.0.layer.2.DenseReluDense.wi_0.weight"})),
    "bart": (bart, BART, dict(BART_GRADIENTS, **PLACED)),
    "mbart": (bart, MBART, dict(BART_GRADIENTS, **PLACED)),
    "m2m_100": (bart, M2M, BART_GRADIENTS),
    "mpnet_mlm": (mpnet, dict(MPNET, architectures=["MPNetForMaskedLM"]), MPNET_GRADIENTS),
    "mpnet_classify": (mpnet, classifier(MPNET, "MPNet"), MPNET_GRADIENTS),
    "electra_mlm": (electra, dict(ELECTRA, architectures=["ElectraForMaskedLM"]),
                    dict(ELECTRA_GRADIENTS, **{"head.weight": "generator_predictions.dense.weight"})),
    "electra_classify": (electra, classifier(ELECTRA, "Electra"), dict(ELECTRA_GRADIENTS, **{"pooler.weight": "classifier.dense.weight"})),
    "albert_mlm": (albert, dict(ALBERT, architectures=["AlbertForMaskedLM"]), ALBERT_GRADIENTS),
    "albert_classify": (albert, classifier(ALBERT, "Albert"), ALBERT_GRADIENTS),
    # layers 0 and 3 see everything, the others 2 tokens to either side
    "modernbert_window": (modernbert, dict(MODERNBERT, architectures=["ModernBertForMaskedLM"], num_hidden_layers=5, local_attention=4,
                                           global_attn_every_n_layers=3, local_rope_theta=100.0), MODERNBERT_GRADIENTS),
    "umt5": (t5, dict(T5, model_type="umt5", architectures=["UMT5ForConditionalGeneration"], feed_forward_proj="gated-gelu",
                      dense_act_fn="gelu_new", is_gated_act=True, tie_word_embeddings=False), UMT5_GRADIENTS),
    "bart_classify": (bart, classifier(BART, "Bart"), dict(BART_GRADIENTS, **PLACED, **{"pooler.weight": "classification_head.dense.weight"})),
}


def add_what_files_have_besides(name, stored):
    if name == "t5":
        for table in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
            stored[table] = stored["shared.weight"].clone()
        stored["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.zeros(8, HEADS)
    elif name == "electra_mlm":
        stored["electra.embeddings.position_ids"] = torch.arange(LONGEST)[None]
        stored["generator_lm_head.weight"] = stored["electra.embeddings.word_embeddings.weight"].clone()
    elif name == "albert_mlm":
        stored["predictions.decoder.weight"] = stored["albert.embeddings.word_embeddings.weight"].clone()
        stored["predictions.decoder.bias"] = stored["predictions.bias"].clone()
        stored["sop_classifier.classifier.weight"] = torch.zeros(2, DIM)
    elif name == "m2m_100":
        stored["lm_head.weight"] = stored["model.shared.weight"].clone()


def batch(config):
    random = torch.Generator().manual_seed(6)
    g = {"ids": torch.randint(0, VOCABULARY, (2, LENGTH), generator=random), "lengths": torch.tensor(LENGTHS)}
    g["types"] = torch.randint(0, config.get("type_vocab_size", 1), (2, LENGTH), generator=random)
    if config.get("is_encoder_decoder"):
        g["target"] = torch.randint(0, VOCABULARY, (2, 5), generator=random)
        g["target_lengths"] = torch.tensor([3, 5])
    if config.get("is_encoder_decoder") and is_classifier(config):
        start = torch.full((2, 1), config["decoder_start_token_id"])
        g["target"], g["target_lengths"] = torch.cat([start, g["ids"][:, :-1]], 1), g["lengths"]
    return g


def add_gradients(w, g, names):
    if "classes" in g:
        loss = F.cross_entropy(g["classes"], torch.tensor([0, 1]))
    else:
        ids, lengths = (g["target"], g["target_lengths"]) if "target" in g else (g["ids"], g["lengths"])
        real = torch.arange(ids.shape[1]) < lengths[:, None]
        loss = F.cross_entropy(g["logits"][real], ids[real])
    for ours, gradient in zip(names, torch.autograd.grad(loss, [w.leaf[theirs] for theirs in names.values()])):
        g["grad." + ours] = gradient


def add_greedy(family, config, w, g):
    so_far = dict(g, target=torch.full((2, 1), config["decoder_start_token_id"]))
    for n in range(1, 21):
        so_far["target_lengths"] = torch.full((2,), n)
        family(config, w, so_far)
        new = so_far["logits"][:, -1].scatter(1, so_far["target"], -math.inf)
        so_far["target"] = torch.cat([so_far["target"], new.argmax(1, keepdim=True)], 1)
    g["greedy"] = so_far["target"][:, 1:]


def make(number, name):
    family, config, names = MODELS[name]
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    w, g = Leaves(100 + number), batch(config)
    for i, x in enumerate(family(config, w, g)):
        g[f"hidden.{i}"] = x
    add_gradients(w, g, names)
    if "logits" in g and "target" in g:
        add_greedy(family, config, w, g)
    write_json(folder, "config.json", config)
    add_what_files_have_besides(name, w.stored)
    write_safetensors(os.path.join(folder, "model.safetensors"), w.stored)
    write_safetensors(os.path.join(folder, "golden.safetensors"), {key: x.detach().float() for key, x in g.items()})


if __name__ == "__main__":
    for number, name in enumerate(MODELS):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(number, name)
