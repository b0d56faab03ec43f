#!/usr/bin/python3
"""heads.py: as families.py, encoders whose heads label tokens (NAME_tag) and find answers (NAME_answer), of one layer each; and a sentence
encoder with all poolings and two Dense modules (bert_dense).

golden.safetensors has besides "tags", the logits of every token, and of bert_dense "embedding", what sentence-transformers computes.

Usage: tests/golden/heads.py   (needs PyTorch; the tests do not)
"""
import os
import shutil

import torch

import families
import families_encoders
from families import BERT, DISTILBERT, DIM, HERE, LENGTH, LENGTHS, MODERNBERT, ROBERTA, Weights, batch, write_json, write_safetensors
from families_encoders import ALBERT, ELECTRA, MPNET, Leaves

families.LAYERS = families_encoders.LAYERS = 1
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
LABELS = {"id2label": {str(i): name for i, name in enumerate(NAMES)}, "label2id": {name: i for i, name in enumerate(NAMES)}}

# its name in architectures, the encoder, the config, and what the encoder needs besides
FAMILIES = {
    "bert": ("Bert", families.bert, BERT, {}),
    "roberta": ("Roberta", families.bert, ROBERTA, dict(prefix="roberta.")),
    "distilbert": ("DistilBert", families.distilbert, DISTILBERT, {}),
    "modernbert": ("ModernBert", families.modernbert, MODERNBERT, {}),
    "electra": ("Electra", families_encoders.electra, ELECTRA, {}),
    "albert": ("Albert", families_encoders.albert, ALBERT, {}),
    "mpnet": ("MPNet", families_encoders.mpnet, MPNET, {}),
}


def one_layer(config):
    return dict(config, **{key: 1 for key in ("num_hidden_layers", "n_layers") if key in config})


def encode(name, w):
    """The batch and the hidden states: those of a classifier, whose own weights are taken away again."""
    title, family, config, more = FAMILIES[name]
    config, g = one_layer(config), batch(config)
    hidden = family(dict(config, architectures=[title + "ForSequenceClassification"], **families.LABELS), w, g, **more)
    del g["classes"]
    own = ("classifier.", "pre_classifier.", "bert.pooler.", "albert.pooler.", "head.")
    w.stored = {key: x for key, x in w.stored.items() if not key.startswith(own)}
    return config, g, hidden


def add_head(name, is_tagger, config, w, hidden):
    x = hidden[-1]
    if name == "modernbert":
        x = w.norm("head.norm", config["norm_eps"], bias=config["norm_bias"])(
            families.ACTIVATIONS["gelu"](w.linear("head.dense", DIM, DIM, config["classifier_bias"])(x)))
    head = "classifier" if is_tagger or name == "modernbert" else "qa_outputs"
    getattr(w, "leaf", {}).clear()
    return w.linear(head, DIM, len(NAMES) if is_tagger else 2)(x)


def write(folder, config, w, g, hidden):
    for i, x in enumerate(hidden):
        g[f"hidden.{i}"] = x
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_json(folder, "config.json", config)
    write_safetensors(os.path.join(folder, "model.safetensors"), w.stored)
    write_safetensors(os.path.join(folder, "golden.safetensors"), {key: x.detach().float() for key, x in g.items()})


def make(seed, name, is_tagger):
    w = (Leaves if FAMILIES[name][1].__module__ == "families_encoders" else Weights)(seed)
    config, g, hidden = encode(name, w)
    g["tags"] = add_head(name, is_tagger, config, w, hidden)
    title = FAMILIES[name][0] + ("ForTokenClassification" if is_tagger else "ForQuestionAnswering")
    config = dict(config, architectures=[title], **(LABELS if is_tagger else {}))
    write(os.path.join(HERE, name + ("_tag" if is_tagger else "_answer")), config, w, g, hidden)


# ---- sentence-transformers ----

def pool(x, real):
    """What Pooling gives with all its modes, in its order: cls, max, mean, mean by sqrt, weighted mean, last token."""
    n, places = real.sum(1, keepdim=True), torch.arange(1, x.shape[1] + 1)[None, :, None] * real[:, :, None]
    total = (x * real[:, :, None]).sum(1)
    return torch.cat([x[:, 0], x.masked_fill(real[:, :, None] == 0, -torch.inf).max(1).values, total / n, total / n.sqrt(),
                      (x * places).sum(1) / places.sum(1), torch.stack([row[int(k) - 1] for row, k in zip(x, n)])], 1)


def dense(folder, number, x, width, bias, activation):
    random, inputs = torch.Generator().manual_seed(number), x.shape[1]
    stored = {"linear.weight": torch.randn(width, inputs, generator=random) * 0.3}
    if bias:
        stored["linear.bias"] = torch.randn(width, generator=random) * 0.1
    write_json(folder, f"{number}_Dense/config.json", dict(in_features=inputs, out_features=width, bias=bias,
                                                           activation_function="torch.nn.modules." + activation))
    write_safetensors(os.path.join(folder, f"{number}_Dense", "model.safetensors"), stored)
    x = x @ stored["linear.weight"].T + stored.get("linear.bias", 0)
    return torch.tanh(x) if activation.endswith("Tanh") else x


def make_sentence():
    """Of texts between [CLS] (2) and [SEP] (3)."""
    folder, w = os.path.join(HERE, "bert_dense"), Weights(77)
    config = dict(one_layer(BERT), architectures=["BertModel"])
    g = {"ids": torch.tensor([[2, 5, 6, 7, 8, 9, 3], [2, 10, 11, 3, 0, 0, 0]]), "lengths": torch.tensor(LENGTHS)}
    g["types"] = torch.zeros(2, LENGTH)
    hidden = families.bert(config, w, g, prefix="")
    w.stored = {key: x for key, x in w.stored.items() if not key.startswith("pooler.")}
    write(folder, config, w, g, hidden)
    real = (torch.arange(LENGTH)[None] < torch.tensor(LENGTHS)[:, None]).float()
    x = dense(folder, 2, pool(hidden[-1], real).float(), 8, True, "activation.Tanh")
    x = dense(folder, 3, x, 5, False, "linear.Identity")
    g["embedding"] = x / x.norm(dim=1, keepdim=True)
    write_safetensors(os.path.join(folder, "golden.safetensors"), {key: x.detach().float() for key, x in g.items()})
    kind, paths = "sentence_transformers.models.", ["", "1_Pooling", "2_Dense", "3_Dense", "4_Normalize"]
    write_json(folder, "modules.json", [dict(idx=i, name=str(i), path=path, type=kind + (path[2:] or "Transformer"))
                                        for i, path in enumerate(paths)])
    write_json(folder, "1_Pooling/config.json", dict(word_embedding_dimension=DIM, **{
        f"pooling_mode_{mode}": True for mode in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens",
                                                  "lasttoken")}, include_prompt=True))


if __name__ == "__main__":
    for number, name in enumerate(FAMILIES):
        make(200 + number, name, True)
        make(220 + number, name, False)
    make_sentence()
