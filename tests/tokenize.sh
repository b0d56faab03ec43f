#!/bin/sh
# tokenize.sh: qkv tokenizer, tokenize and detokenize, as a user types them. usage: tokenize.sh QKV GOLDEN
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") golden=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
tokenizer=$golden/text_tokenizer.json

lines_of() { printf '%b' "$1" >in; }

# ---- training ----
: >in
check "training writes" run 0 "wrote t.json" tokenizer --train "$golden/text.txt" --size 700 --min-count 1 --out t.json
check "the same file as ever" cmp t.json "$tokenizer"
gzip -c "$golden/text.txt" >text.gz
check "--quiet says nothing" run 0 "" tokenizer --train=text.gz --size 700 --min-count 1 -o t2.json --quiet
check "the same file from gzip" cmp t2.json t.json
printf 'one two\none two\n' >small.txt
printf 'zwei drei\nzwei drei\n' >small2.txt
check "more asked for than the text gives is told" run 0 "tokens, not 5000" \
    tokenizer --train small.txt small2.txt --size 5000 --out t3.json
printf 'one two drei' >in
check "both files were read" run 0 "" tokenize --tokenizer t3.json
same "and learned" "one ▁two ▁drei" "$(cat out)"
check "special tokens of one's own" run 0 "wrote" tokenizer --train small.txt --specials '<a>' '<b>' --out t4.json
printf '<b>' >in
check "are known" run 0 "" tokenize --tokenizer t4.json --specials --ids
same "by their ids" 1 "$(cat out)"
printf 'good\nbad \377\n' >bad.txt
check "a line that is not UTF-8 is told" run 0 "bad.txt: line 2 is not UTF-8" \
    tokenizer --train bad.txt --out t5.json
rm -f t5.json
refused "or refused" 4 "bad.txt: line 2: byte 5" tokenizer --train bad.txt --out t5.json --strict
refused "no room for the bytes" 2 "259" tokenizer --train small.txt --size 259 --out t5.json
refused "no files" 2 "--train needs a value" tokenizer --train --out t5.json
refused "files given twice" 2 "twice" tokenizer --train small.txt --train small2.txt --out t5.json
refused "no --train" 2 "--train is missing" tokenizer --out t5.json
refused "a file that is not there" 3 "none.txt" tokenizer --train small.txt none.txt --out t5.json
: >empty.txt
refused "no text at all" 4 "empty.txt" tokenizer --train empty.txt --out t5.json
head -c 40 text.gz >cut.gz
refused "a cut gzip file" 4 "cut.gz: damaged gzip" tokenizer --train cut.gz --out t5.json
refused "output into a folder that is not there" 3 "no/t.json" tokenizer --train small.txt --out no/t.json
check "and none of them wrote" test ! -e t5.json

# ---- there and back ----
cp "$golden/text.txt" in
check "tokenize" run 0 "" tokenize --tokenizer t.json
same "one line in, one line out" "$(wc -l <in)" "$(wc -l <out)"
cp out in
check "detokenize" run 0 "" detokenize --tokenizer t.json
check "gives the text back" cmp out "$golden/text.txt"
cp "$golden/text.txt" in
check "tokenize --ids" run 0 "" tokenize --tokenizer t.json --ids
cp out in
check "detokenize --ids" run 0 "" detokenize --tokenizer t.json --ids
check "gives the text back too" cmp out "$golden/text.txt"
lines_of 'one two\n\none'
check "an empty line and a last line without newline" run 0 "" tokenize --tokenizer t3.json
same "give their lines" "one ▁two||one|" "$(tr '\n' '|' <out)"
cp "$golden/text.txt" in
check "tokenize --raw" run 0 "" tokenize --tokenizer t.json --raw
contains "spells bytes" "$(cat out)" "ĠThe Ġcat"
cp out in
check "detokenize --raw" run 0 "" detokenize --tokenizer t.json --raw
check "gives the text back as well" cmp out "$golden/text.txt"
printf '爱爱爱爱\n爱 爱 爱 爱\n' >hearts.txt
check "a token that is a whole character" run 0 "" tokenizer --train hearts.txt --size 262 -o hearts.json --quiet
lines_of '爱 猫▁<0x41>\n'
check "tokenize" run 0 "" tokenize --tokenizer hearts.json
same "is that character; bytes, the sign of a space and what looks like a byte are spelled" \
    "爱 ▁ <0xE7> <0x8C> <0xAB> <0xE2> <0x96> <0x81> < 0 x 4 1 >" "$(cat out)"
cp out in
check "and back" run 0 "" detokenize --tokenizer hearts.json
same "the same" "爱 猫▁<0x41>" "$(cat out)"
lines_of 'a <s>'
check "a special token in the text" run 0 "" tokenize --tokenizer t.json --ids
check "is text" sh -c '! grep -qw 1 out'
check "or its id" run 0 "" tokenize --tokenizer t.json --ids --specials
check "when asked for" grep -qw 1 out
cp out in
check "and back" run 0 "" detokenize --tokenizer t.json --ids --skip-specials
same "without it" "a " "$(cat out)"
lines_of 'I x\n'
check "--json" run 0 "" tokenize --tokenizer t3.json --json
same "has ids, tokens and spans" \
    '{"ids": [44, 224, 91], "tokens": ["I", "Ġ", "x"], "shown": ["I", "▁", "x"], "spans": [[0, 1], [1, 2], [2, 3]]}' "$(cat out)"
printf '"\\' >in
check "quotes and backslashes" run 0 "" tokenize --tokenizer t3.json --json
contains "are escaped" "$(cat out)" '["\"", "\\"]'
printf 'a\000b\n' >in
check "a NUL" run 0 "" tokenize --tokenizer t.json --ids
cp out in
check "comes back" run 0 "" detokenize --tokenizer t.json --ids
same "as it was" "$(printf 'a\000b\n' | od -c)" "$(od -c <out)"
head -c 1000000 /dev/zero | tr '\0' a >in
check "a line of 1 MB" run 0 "" tokenize --tokenizer t.json --ids
cp out in
check "and back again" run 0 "" detokenize --tokenizer t.json --ids
same "whole" 1000001 "$(wc -c <out)"

# ---- words and characters ----
check "words" run 0 "wrote" tokenizer --kind words --train "$golden/text.txt" --size 160 --min-count 1 --out w.json
check "the same file as ever" cmp w.json "$golden/text_words.json"
check "characters" run 0 "tokens, not 8000" tokenizer --kind characters --train "$golden/text.txt" --out c.json
check "the same file as ever" cmp c.json "$golden/text_characters.json"
lines_of 'The  CAT\tsat, on\n\n'
check "tokenize gives words" run 0 "" tokenize --tokenizer w.json
same "in lower case" "the cat <unk> on||" "$(tr '\n' '|' <out)"
cp out in
check "detokenize" run 0 "" detokenize --tokenizer w.json --skip-specials
same "has one space between them" "the cat on||" "$(tr '\n' '|' <out)"
lines_of ' The  cat @x \n'
check "tokenize gives characters" run 0 "" tokenize --tokenizer c.json
same "with a sign for each space" "▁ T h e ▁ ▁ c a t ▁ @ x ▁|" "$(tr '\n' '|' <out)"
cp out in
check "detokenize" run 0 "" detokenize --tokenizer c.json
same "gives every space back" " The  cat @x |" "$(tr '\n' '|' <out)"
cp out in
check "tokenize --raw" run 0 "" tokenize --tokenizer c.json --raw
same "has a space after each but the last" "  T h e     c a t   @ x  |" "$(tr '\n' '|' <out)"
cp out in
check "detokenize --raw" run 0 "" detokenize --tokenizer c.json --raw
same "gives every space back too" " The  cat @x |" "$(tr '\n' '|' <out)"
lines_of 'zebra café\n'
check "--json" run 0 "" tokenize --tokenizer w.json --json
same "has the spans of words" '{"ids": [3, 3], "tokens": ["<unk>", "<unk>"], "shown": ["<unk>", "<unk>"], "spans": [[0, 5], [6, 11]]}' "$(cat out)"
lines_of 'Refund!\n(refund)\nI want a refund, "REFUND"\n'
check "tokenizer --kind wordpunct" run 0 "tokens, not 8000" tokenizer --kind wordpunct --min-count 1 --train in --out p.json
check "tokenize gives words and their punctuation" run 0 "" tokenize --tokenizer p.json
same "apart" 'refund !|( refund )|i want a refund , " refund "|' "$(tr '\n' '|' <out)"
cp out in
check "detokenize" run 0 "" detokenize --tokenizer p.json
same "has one space between them too" 'refund !|( refund )|i want a refund , " refund "|' "$(tr '\n' '|' <out)"
# The same vocabulary as a published tokenizer, whose steps are taken one by one.
check "wordpunct of a text" run 0 "tokens, not 8000" tokenizer --kind wordpunct --train "$golden/text.txt" --out p.json
sed 's/"pre_tokenizer": \(.*\),$/"pre_tokenizer": { "type": "Sequence", "pretokenizers": [\1] },/' p.json >steps.json
refuse "two files" cmp -s p.json steps.json
{ cat "$golden/text.txt"; printf "don't \302\277qu\303\251? \342\200\234x\342\200\235 $5.99 a_b\302\240c \304\260 \344\275\240\345\245\275\343\200\202\n"; } >in
"$qkv" tokenize --tokenizer p.json --json <in >own.json
"$qkv" tokenize --tokenizer steps.json --json <in >steps.out
same "the ids, tokens and spans of BertPreTokenizer" "$(sed 's/, "shown.*"spans/, "spans/' steps.out | cksum)" "$(sed 's/, "shown.*"spans/, "spans/' own.json | cksum)"
lines_of 'the zebra'
refused "a word that is not known" 4 '"zebra" is no token' detokenize --tokenizer w.json
refused "no <unk>" 2 "<unk>" tokenizer --kind words --train small.txt --specials '<a>' --out t6.json
refused "no such kind" 2 "bpe, words, characters, wordpunct" tokenizer --kind pieces --train small.txt --out t6.json
check "and none of them wrote" test ! -e t6.json

# ---- published tokenizers ----
mkdir bert
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n,\n' >bert/vocab.txt
lines_of 'The CATS, zebra\n'
check "vocab.txt" run 0 "" tokenize --tokenizer bert/vocab.txt
same "gives word pieces" "the cat ##s , [UNK]" "$(cat out)"
check "a folder" run 0 "" tokenize --tokenizer bert --ids --framed
same "with a frame" "2 5 6 7 8 1 3" "$(cat out)"
cp out in
check "detokenize" run 0 "" detokenize --tokenizer bert --ids --skip-specials
same "as its decoder has it" "the cats," "$(cat out)"
lines_of 'the [MASK]\n'
check "a special token" run 0 "" tokenize --tokenizer bert --ids --specials
same "when asked for" "5 4" "$(cat out)"
printf '{"do_lower_case": false}' >bert/tokenizer_config.json
lines_of 'The the\n'
check "tokenizer_config.json" run 0 "" tokenize --tokenizer bert
same "keeps capitals" "[UNK] the" "$(cat out)"
lines_of 'the cat\n'
check "a SentencePiece model" run 0 "" tokenize --tokenizer "$golden/spm_bytes.model" --json
contains "has spans" "$(cat out)" '"spans": [[0, 3], [3, 7]]' '▁cat'
mkdir opus
cp "$golden/spm_unigram.model" opus/source.spm
cp "$golden/spm_suffix.model" opus/target.spm
printf '{"</s>": 0, "<unk>": 1, "▁the": 2, "the▁": 3}' >opus/vocab.json
lines_of 'the\n'
check "OPUS-MT's files" run 0 "" tokenize --tokenizer opus --framed
same "are the source's" "▁the </s>" "$(cat out)"
check "--target" run 0 "" tokenize --tokenizer opus --target
same "is the other side" "the▁" "$(cat out)"
mkdir none
refused "a folder without a tokenizer" 3 "none holds no tokenizer" tokenize --tokenizer none
refused "--target with a file" 2 "--target is for a folder" tokenize --tokenizer t.json --target
printf 'a\n' >bert/vocab.txt
refused "a vocab.txt without [UNK]" 4 "bert/vocab.txt: model.unk_token" tokenize --tokenizer bert
head -c 100 "$golden/spm_bytes.model" >cut.model
refused "a cut model" 4 "cut.model: byte" tokenize --tokenizer cut.model

# ---- bad input ----
printf 'good\nb\377d\ngood\n' >in
check "bad bytes are replaced and the line is named" run 0 "qkv: standard input: line 2: byte 2" tokenize --tokenizer t.json
same "in three lines" 3 "$(wc -l <out)"
cp out in
check "which come back" run 0 "" detokenize --tokenizer t.json
same "repaired" "good b�d good" "$(tr '\n' ' ' <out | sed 's/ $//')"
printf 'good\nb\377d\ngood\n' >in
check "--quiet does not name it" run 0 "" tokenize --tokenizer t.json --quiet
check "--strict refuses it" run 4 "line 2: byte 2" tokenize --tokenizer t.json --strict
same "after the lines before" 1 "$(wc -l <out)"
lines_of '231\n70'
check "half a character is replaced and the line is named" run 0 "line 1: byte 1" detokenize --tokenizer t.json --ids
same "in its line" "�|c|" "$(tr '\n' '|' <out)"
refused "or refused" 4 "line 1: byte 1" detokenize --tokenizer t.json --ids --strict
printf '\357\273\277one\n\357\273\277two\n' >in
check "a byte order mark at the start" run 0 "" tokenize --tokenizer c.json
same "is no part of the first line alone" "o n e|<unk> t w o|" "$(tr '\n' '|' <out)"
iconv -f UTF-8 -t UTF-16 >in <<END
one
END
refused "UTF-16" 5 'standard input: it is UTF-16, not text in UTF-8: convert it first, as in "iconv -f UTF-16 -t UTF-8 FILE' \
    tokenize --tokenizer t.json
printf 'one\n' | iconv -f UTF-8 -t UTF-16LE >in
refused "UTF-16 without a mark" 5 "iconv -f UTF-16LE" tokenize --tokenizer t.json
printf '\3757zXZ\000\000\004\346' >in
refused "xz" 5 'standard input: it is xz, not text in UTF-8: decompress it first, as in "xz -dc FILE' tokenize --tokenizer t.json
refused "xz under another name" 5 "in: it is xz" tokenizer --train small.txt in --out t5.json
cp small.txt plain.gz
check "plain text with the name of a gzip file" run 0 "wrote" tokenizer --train plain.gz --out t7.json
gzip -c "$golden/text.txt" >in
refused "gzip where only lines are read" 5 'it is gzip, not text in UTF-8: decompress it first, as in "gzip -dc FILE' \
    tokenize --tokenizer t.json
printf '' >in
check "nothing in" run 0 "" tokenize --tokenizer t.json
same "nothing out" 0 "$(wc -c <out)"
lines_of 'nonsense-token'
refused "an unknown token" 4 'line 1: "nonsense-token" is no token' detokenize --tokenizer t.json
lines_of '1 2 x3'
refused "no id" 4 'line 1: "x3" is no id' detokenize --tokenizer t.json --ids
lines_of '1 700'
refused "an id too large" 4 '"700"' detokenize --tokenizer t.json --ids
lines_of '99999999999999999999'
refused "a number too large" 4 '"99999999999999999999"' detokenize --tokenizer t.json --ids
lines_of '-1'
refused "a negative id" 4 '"-1"' detokenize --tokenizer t.json --ids
lines_of 'x'
refused "no tokenizer" 2 "--tokenizer is missing" tokenize
refused "a tokenizer that is not there" 3 "none.json" tokenize --tokenizer none.json
refused "a tokenizer that is none" 4 "in" tokenize --tokenizer in
sed 's/"normalizer": null/"normalizer": {"type": "Other"}/' t.json >other.json
refused "a tokenizer of another kind" 5 'other.json: normalizer.type: "Other"' tokenize --tokenizer other.json
refused "--ids and --raw" 2 "choose one" tokenize --tokenizer t.json --ids --raw
refused "--ids and --json" 2 "choose one" tokenize --tokenizer t.json --ids --json
if [ -e /dev/full ]; then
    "$qkv" tokenize --tokenizer t.json <"$golden/text.txt" >/dev/full 2>err
    same "a full disk" 3 $?
fi
"$qkv" tokenize --tokenizer t.json <. >/dev/null 2>err
same "a folder for input" 3 $?

# ---- help ----
contains "qkv tokenizer --help" "$("$qkv" tokenizer --help --all)" "--train FILE.." --kind --size --specials --min-count --strict --quiet -o
contains "qkv tokenize --help" "$("$qkv" tokenize --help --all)" \
    --tokenizer --target --ids --json --specials --framed --strict --quiet
contains "qkv detokenize --help" "$("$qkv" detokenize --help --all)" --tokenizer --ids --skip-specials --strict --quiet
finish
