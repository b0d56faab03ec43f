#!/usr/bin/env python3
"""make_lines.py: lines of many scripts, emoji, odd spaces, special tokens and bytes that are not UTF-8, and a number for what
the reference implementations make of each with published tokenizers: lines.txt and lines_ids.txt, for test_spm.c. Needs the npm
package "tokenizers" and Debian's sentencepiece; the tests do not. usage, in this folder:
  NODE_PATH=.../node_modules ./make_lines.py FOLDER    where FOLDER has bert/, gpt2/, opus-mt-fr-en/ and spm/
Each number is FNV-1a over the ids of the line, as text with a space between them: 32 bits, as 8 hexadecimal digits."""
import json
import os
import random
import subprocess
import sys
import tempfile

random.seed(6)
WORDS = {
    "english": "The quick brown fox jumps over lazy dogs, doesn't it? I'll we've DON'T they're 1234567 3.14 http://a.b/c?d=e",
    "french": "L’été à l'École était très œuvre garçon naïve où ça Noël «bonjour» aujourd’hui coûte 12,50 € déjà-vu",
    "german": "Straße Übergröße Äpfel schön GRÖẞE Fußgänger Donaudampfschifffahrt",
    "polish": "Zażółć gęślą jaźń ŁÓDŹ", "turkish": "İSTANBUL ığdır şöyle Türkçe", "vietnamese": "Tiếng Việt đường phố ộ ữ ấ",
    "greek": "Ὀδυσσεύς ΣΊΣΥΦΟΣ άλφα βήτα", "russian": "Съешь ещё этих мягких французских булок ЁЖ Київ їжак",
    "hebrew": "שָׁלוֹם עולם", "arabic": "السَّلَامُ عَلَيْكُم مرحبا ٣٤٥", "hindi": "नमस्ते दुनिया क्षत्रिय १२३",
    "thai": "สวัสดีชาวโลก ภาษาไทย", "tamil": "வணக்கம் உலகம்", "chinese": "我爱你 中文分词 繁體字 你好，世界！ 。？「」 㐀 𠀀 龍",
    "japanese": "吾輩は猫である。 カタカナ ｶﾀｶﾅ ガギグ がぎぐ ㍿ ㌔ ①②③", "korean": "안녕하세요 세계 각 한국어",
    "emoji": "😀 👩‍👩‍👧‍👦 🇫🇷 👍🏽 ❤️ ✈︎ 🤷🏿‍♀️ 🧑‍💻", "signs": "∑ ∫ √2 ≠ ½ ² ₃ Ⅷ ﬁn ﬀ ｆｕｌｌ ＡＢＣ１２３ ™ ℃ № ㎏ Å Ω",
    "marks": "e\u0301 n\u0303 o\u0302\u0331 a\u0323\u0302 x\u0304\u0302 \u1ed9",
    "code": "if(x>=10){return a[i]+=2;} <b>&amp;</b> foo_bar fooBar __init__ #include<x.h> \\n $x %d @y ~/a ^b `c`",
    "special": "<s> </s> <unk> <pad> [CLS] [SEP] [MASK] [PAD] [UNK] <|endoftext|> <mask> ▁ ▁▁ <0x41> ⁇ Ġ Ċ",
    "short": "it's IT'S we'LL I'M can't 'tis y'all o'clock 'S don’t",
}
WORDS = {name: words.split() for name, words in WORDS.items()}
GAPS = [" "] * 12 + ["  ", "   ", "\t", "\u00a0", "\u3000", "\u2009", "\u200b", "\u2028", "\u0085", "\ufeff", "\u202f",
                     "", "-", ",", ". ", "\r", "\x0b", "\x0c", "\x1c", "\u2060", "\u00ad", "\x01"]
BLOCKS = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x3FF), (0x400, 0x460), (0x5D0, 0x5EB), (0x620, 0x650), (0x905, 0x940),
          (0xE01, 0xE3B), (0x1E00, 0x1F00), (0x2000, 0x2065), (0x2100, 0x2190), (0x2460, 0x2500), (0x3041, 0x3097),
          (0x3300, 0x3400), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xFA2E), (0xFF01, 0xFFBF), (0x1F600, 0x1F650),
          (0x1D400, 0x1D455), (0x300, 0x34E)]
BAD = [b"\xff", b"\xc0\xaf", b"\xe4\xbd", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\x80", b"\xf5\x80"]


def words_line():
    names = random.sample(sorted(WORDS), random.choice([1, 1, 2, 4]))
    line = random.choice(["", "", "", " ", "\t", "\u3000"])
    for _ in range(random.randint(1, 8)):
        line += random.choice(WORDS[random.choice(names)]) + random.choice(GAPS)
    return line.encode()


def letters_line():
    chars = [chr(random.randrange(*random.choice(BLOCKS))) for _ in range(random.randint(1, 16))]
    return "".join(chars).encode()


def bad_line():
    return b" ".join(words_line() + random.choice(BAD) for _ in range(random.randint(1, 3)))


def make_lines():
    with open("text.txt", "rb") as f:
        lines = f.read().split(b"\n")[:-1]
    lines += [words_line() for _ in range(700)] + [letters_line() for _ in range(250)] + [bad_line() for _ in range(60)]
    for n in (1, 2, 3, 70):
        lines += [(c * n).encode() for c in ("a", " ", "我", "!", "é", "1", "😀", "ab ")]
    return lines


def digest(ids):
    h = 2166136261
    for byte in " ".join(map(str, ids)).encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return f"{h:08x}"


JS = """const { Tokenizer } = require('tokenizers'); const fs = require('fs');
(async () => { const t = Tokenizer.fromString(fs.readFileSync(process.argv[2], 'utf8'));
for (const l of fs.readFileSync(process.argv[3], 'utf8').split('\\n').slice(0, -1))
  console.log((await t.encode(l, null, { addSpecialTokens: true })).getIds().join(' ')); })();"""


def hugging_face(tokenizer, lines, folder):
    names = [os.path.join(folder, name) for name in ("run.js", "tokenizer.json", "lines")]
    for name, text in zip(names, (JS, json.dumps(tokenizer), "".join(l + "\n" for l in lines))):
        with open(name, "w", encoding="utf8", newline="") as f:
            f.write(text)
    out = subprocess.run(["node"] + names, check=True, capture_output=True).stdout.decode()
    return [line.split() for line in out.split("\n")[:-1]]


def sentence_piece(model, lines, kind):
    text = "".join(l + "\n" for l in lines).encode()
    command = ["spm_encode", f"--model={model}", f"--output_format={kind}"]
    out = subprocess.run(command, input=text, check=True, capture_output=True)
    return [[p for p in line.split(" ") if p] for line in out.stdout.decode().split("\n")[:-1]]


def bert(path):
    with open(path, encoding="utf8") as f:
        vocab = {line.rstrip("\n"): i for i, line in enumerate(f)}
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": vocab[n], "content": n, **off} for n in names],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", vocab["[SEP]"]], "cls": ["[CLS]", vocab["[CLS]"]]},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
    }


def opus(folder, side, lines):
    with open(os.path.join(folder, "vocab.json"), encoding="utf8") as f:
        vocab = json.load(f)
    pieces = sentence_piece(os.path.join(folder, side + ".spm"), lines, "piece")
    return [[vocab.get(p, vocab["<unk>"]) for p in line] + [vocab["</s>"]] for line in pieces]


def main():
    root = sys.argv[1]
    lines = make_lines()
    with open("lines.txt", "wb") as f:
        f.write(b"".join(line + b"\n" for line in lines))
    lines = [line.decode("utf8", "replace") for line in lines]
    columns = {}
    with tempfile.TemporaryDirectory() as folder:
        columns["bert"] = hugging_face(bert(os.path.join(root, "bert/bert-base-uncased-vocab.txt")), lines, folder)
        with open(os.path.join(root, "gpt2/tokenizer.json"), encoding="utf8") as f:
            columns["gpt2"] = hugging_face(json.load(f), lines, folder)
    for side in ("source", "target"):
        columns["opus-" + side] = opus(os.path.join(root, "opus-mt-fr-en"), side, lines)
    for name in ("test_model", "test_ja_model", "test_sentencepiece_with_bytefallback"):
        columns[name] = sentence_piece(os.path.join(root, "spm", name + ".model"), lines, "id")
    columns["tok512"] = sentence_piece(os.path.join(root, "../stories260K/tok512.model"), lines, "id")
    with open("lines_ids.txt", "w", encoding="utf8") as f:
        f.write(" ".join(columns) + "\n")
        for row in zip(*columns.values(), strict=True):
            f.write(" ".join(map(digest, row)) + "\n")


main()
