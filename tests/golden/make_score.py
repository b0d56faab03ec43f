"""Writes score.inc: what BLEU, chrF and their words are by definition, with counters and exact fractions. The texts are random
and full of what tokenizers trip over. Run: python3 tests/golden/make_score.py > tests/golden/score.inc"""
import random
import re
import string
import unicodedata
from collections import Counter
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 40
TOKENIZERS = ["13a", "zh", "char", "intl", "none"]


# ---- words ----

def is_a(char, kind):
    return unicodedata.category(char)[0] == kind


def western(line):
    line = re.sub(r"([!-&(-+/:-@\[-`{-~])", r" \1 ", line)
    line = re.sub(r"([^0-9])([.,])", r"\1 \2 ", line)
    line = re.sub(r"([.,])([^0-9])", r" \1 \2", line)
    return re.sub(r"([0-9])-", r"\1 - ", line)


def is_chinese(char):
    blocks = "2001-2a6d 2e80-2eff 2f00-2fdf 2ff0-2fff 3000-303f 3100-312f 31a0-31bf 31c0-31ef 3200-32ff 3300-33ff 3400-4db5 " \
             "4e00-9fa5 9fa6-9fbb f900-fa2d fa30-fa6a fa70-fad9 fe10-fe1f fe30-fe4f ff00-ffef"
    ends = (block.split("-") for block in blocks.split())
    return any(int(first, 16) <= ord(char) <= int(last, 16) for first, last in ends)


def international(line):
    out, i = "", 0
    while i < len(line):
        if i + 1 < len(line) and not is_a(line[i], "N") and is_a(line[i + 1], "P"):
            out, i = out + line[i] + " " + line[i + 1] + " ", i + 2
        else:
            out, i = out + line[i], i + 1
    line, out, i = out, "", 0
    while i < len(line):
        if i + 1 < len(line) and is_a(line[i], "P") and not is_a(line[i + 1], "N"):
            out, i = out + " " + line[i] + " " + line[i + 1], i + 2
        else:
            out, i = out + line[i], i + 1
    return "".join(" " + char + " " if is_a(char, "S") else char for char in out)


def words(line, tokenizer, lowercase):
    line = (line.lower() if lowercase else line).rstrip()
    if tokenizer == "13a":
        for old, new in [("<skipped>", ""), ("-\n", ""), ("\n", " "),
                         ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")]:
            line = line.replace(old, new)
        line = western(" " + line + " ")
    elif tokenizer == "zh":
        line = western("".join(" " + char + " " if is_chinese(char) else char for char in line.strip()))
    elif tokenizer == "intl":
        line = international(line)
    elif tokenizer == "char":
        line = " ".join(line)
    return line.split()


# ---- scores ----

def grams(sequence, n):
    return Counter(tuple(sequence[i:i + n]) for i in range(len(sequence) - n + 1))


def bleu(hyps, refs, tokenizer, lowercase):
    matches, totals, hyp_len, ref_len = [0] * 4, [0] * 4, 0, 0
    for i, hyp in enumerate(hyps):
        hyp = words(hyp, tokenizer, lowercase)
        each = [words(ref[i], tokenizer, lowercase) for ref in refs]
        hyp_len += len(hyp)
        ref_len += min((abs(len(ref) - len(hyp)), len(ref)) for ref in each)[1]
        for n in range(4):
            best = Counter()
            for ref in each:
                best |= grams(ref, n + 1)
            matches[n] += sum((grams(hyp, n + 1) & best).values())
            totals[n] += sum(grams(hyp, n + 1).values())
    precisions, without = [Fraction(0)] * 4, 0
    if any(matches):
        for n in range(4):
            if totals[n] == 0:
                break
            without += matches[n] == 0
            precisions[n] = 100 * (Fraction(matches[n], totals[n]) if matches[n] else Fraction(1, 2 ** without * totals[n]))
    product = precisions[0] * precisions[1] * precisions[2] * precisions[3]
    score = (Decimal(product.numerator) / Decimal(product.denominator)).sqrt().sqrt()
    penalty = Decimal(1)
    if hyp_len < ref_len:
        penalty = (1 - Decimal(ref_len) / Decimal(hyp_len)).exp() if hyp_len else Decimal(0)
    return matches, totals, hyp_len, ref_len, precisions, penalty, score * penalty


def chrf_words(line):
    out = []
    for word in line.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            out += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            out += [word[0], word[1:]]
        else:
            out.append(word)
    return out


def f_score(stats):
    both = [(m, h, r) for m, h, r in stats if h and r]
    precision = sum((Fraction(m, h) for m, h, r in both), Fraction(0)) / max(1, len(both))
    recall = sum((Fraction(m, r) for m, h, r in both), Fraction(0)) / max(1, len(both))
    return 500 * precision * recall / (4 * precision + recall) if precision + recall else Fraction(0)


def chrf(hyps, refs, word_order, lowercase):
    total = [(0, 0, 0)] * (6 + word_order)
    for i, hyp in enumerate(hyps):
        best, best_score = None, -1
        for ref in (ref[i] for ref in refs):
            texts = [text.lower() if lowercase else text for text in (hyp, ref)]
            pairs = [[grams("".join(text.split()), n) for text in texts] for n in range(1, 7)]
            pairs += [[grams(chrf_words(text), n) for text in texts] for n in range(1, word_order + 1)]
            stats = [(sum((h & r).values()), sum(h.values()) if r else 0, sum(r.values())) for h, r in pairs]
            if f_score(stats) > best_score:
                best, best_score = stats, f_score(stats)
        total = [tuple(a + b for a, b in zip(x, y)) for x, y in zip(total, best)]
    return f_score(total)


# ---- texts ----

PIECES = list("aaabbbcABC") + list("  .,--0123456789'\"!?()/%$&<>_") + [
    "the ", "cat ", "sat ", "Cat ", "1,000.5", "3.14", "2-3", "x-y", "...", ",,", "&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;",
    "<skipped>", "小", "明", "去", "商店", "。", "，", "“", "”", "…", "—", "é", "ß", "İ", "ΟΔΟΣ ", "Σ", "ς", "Ώ", "\u0301", "\u00a0",
    "\u3000", "\t", "€", "½", "²", "٣", "«", "»", "¿", "’", "ª", "㍿", "😀", "\U00020000", "\u9fbb", "\u9fbc", "\u2000",
    "\u2001", "\u2a6d", "\u2a6e", "ｱ", "\u2e7f", "\u2e80", "\u4db5", "\u4db6", "\u4dff", "\u4e00", "\uff00", "\uffef",
    "\ufff0", "한", "я", "Я"]


def text(rng, length):
    return "".join(rng.choice(PIECES) for _ in range(length))


def changed(rng, line):
    chars = [char for char in line if rng.random() > 0.08]
    return "".join(chars) + (rng.choice(PIECES) if rng.random() < 0.5 else "")


# ---- C ----

def quoted(line):
    escapes = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "?": "\\?"}
    return '"' + "".join(escapes.get(char, char) for char in line) + '"'


def row(values):
    return "{ " + ", ".join(str(value) for value in values) + " }"


def number(x):
    return repr(float(x))


def main():
    rng = random.Random(1)
    print("/* Made by make_score.py: WORDS(tokenizer, lowercase, text, words) and SCORE(tokenizer, lowercase, references,\n"
          " * sentences, hypotheses, references, matches, totals, lengths, precisions, brevity penalty, BLEU, chrF, chrF++). */")
    print("/* clang-format off */")
    for tokenizer in range(5):
        for length in [1, 2, 3, 5, 8, 12, 16, 20, 24, 28] * 2:
            line, lowercase = text(rng, length), rng.randrange(2)
            found = " ".join(words(line, TOKENIZERS[tokenizer], lowercase))
            print(f"WORDS({tokenizer}, {lowercase}, {quoted(line)},\n      {quoted(found)})")
    for case in range(40):
        tokenizer, lowercase, n, n_refs = case % 5, rng.randrange(2), rng.randrange(1, 4), rng.choice([1, 1, 2, 3])
        short = rng.random() < 0.3
        refs = [[text(rng, rng.randrange(0, 6) if short else rng.randrange(4, 30)) for _ in range(n)]]
        refs += [[changed(rng, line) for line in refs[0]] for _ in range(n_refs - 1)]
        hyps = [changed(rng, rng.choice(refs)[i]) for i in range(n)]
        matches, totals, hyp_len, ref_len, precisions, penalty, score = bleu(hyps, refs, TOKENIZERS[tokenizer], lowercase)
        print(f"SCORE({tokenizer}, {lowercase}, {n_refs}, {n}, {row(map(quoted, hyps))},")
        print("      { " + ",\n        ".join(row(map(quoted, ref)) for ref in refs) + " },")
        print(f"      {row(matches)}, {row(totals)}, {hyp_len}, {ref_len}, {row(map(number, precisions))},")
        chrfs = row(number(chrf(hyps, refs, order, lowercase)) for order in (0, 2))
        print(f"      {number(penalty)}, {number(score)}, {chrfs})")


if __name__ == "__main__":
    main()
