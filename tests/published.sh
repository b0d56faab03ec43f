#!/bin/sh
# published.sh: every command on models as their authors publish them. usage: published.sh QKV GOLDEN MAKE_FORMS MAKE_MODEL EXAMPLE
# TEXT_SESSION [STORIES]
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") golden=$(realpath "$2") make_forms=$(realpath "$3") make_model=$(realpath "$4") example=$(realpath "$5")
text_session=$(realpath "$6") stories=${7:-none}
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
: >in

# ---- models: golden weights, which know 23 ids, and tokenizers for as many tokens ----
# model NAME FAMILY: a copy to add files to
model() { cp -r "$golden/families/$2" "$1" && chmod -R u+w "$1"; }
bert() {
    model "$1" "$1"
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the cat sat on mat a dog ran '##s' . , good bad film is was paris \
        france >"$1/vocab.txt"
}
for name in bert_mlm bert_classify bert_sentence distilbert_mlm distilbert_classify modernbert_mlm modernbert_classify; do bert $name; done
letters='"Ġ": 4, "t": 5, "h": 6, "e": 7, "c": 8, "a": 9, "s": 10, "o": 11, "n": 12, "m": 13, "d": 14, "g": 15, "r": 16, "i": 17, "th": 18,
    "the": 19, "Ġthe": 20, "at": 21'
roberta() {
    model "$1" "$1"
    printf '{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, %s, "<mask>": 22}' "$letters" >"$1/vocab.json"
    printf '#version: 0.2\nt h\nth e\nĠ the\na t\n' >"$1/merges.txt"
}
for name in roberta_mlm roberta_classify; do roberta $name; done
llama() { # NAME [FOLDER]
    cp -r "$golden/${2:-families}/$1" "$1" && chmod -R u+w "$1"
    cat >"$1/tokenizer.json" <<JSON
{"added_tokens": [{"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
 "model": {"type": "BPE", "vocab": {".": 0, "<s>": 1, "</s>": 2, "?": 3, $letters, ",": 22}, "merges": ["t h", "th e", "Ġ the", "a t"]}}
JSON
}
for name in llama mistral qwen2; do llama $name; done
decoders='qwen3 qwen2_window mistral_window gemma gemma2 gemma3_text phi3 phi3_long opt gpt_neox'
for name in $decoders; do llama $name decoders; done
model gpt2 gpt2 # with so few tokens most bytes have none, which a plain vocab.json must not lack
cat >gpt2/tokenizer.json <<JSON
{"added_tokens": [{"id": 22, "content": "<|endoftext|>", "special": true}], "decoder": {"type": "ByteLevel"},
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
 "model": {"type": "BPE", "vocab": {".": 0, "!": 1, ",": 2, "?": 3, $letters, "<|endoftext|>": 22}, "merges": ["t h", "th e", "Ġ the", "a t"]}}
JSON
model marian marian
cp "$golden/spm_unigram.model" marian/source.spm
cp "$golden/spm_unigram.model" marian/target.spm
printf '{"</s>": 0, "<unk>": 1, "▁": 2, "a": 3, "s": 4, ",": 5, ".": 6, "t": 7, "▁a": 8, "▁the": 9, "h": 10, "e": 11, "o": 12, "▁cat": 13,
    "▁s": 14, "at": 15, "▁mat": 16, "on": 17, "r": 18, "m": 19, "n": 20, "▁我爱你": 21, "<pad>": 22}' >marian/vocab.json
model pegasus pegasus # whose ids are those of its pieces, moved behind tokens that are masked or unknown
cat >pegasus/tokenizer.json <<'JSON'
{"added_tokens": [{"id": 0, "content": "<pad>", "special": true}, {"id": 1, "content": "</s>", "special": true},
  {"id": 2, "content": "<mask_1>", "special": true}, {"id": 3, "content": "<unk_2>", "special": true}, {"id": 4, "content": "<unk>", "special": true}],
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}]},
 "decoder": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
 "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
 "model": {"type": "Unigram", "unk_id": 4, "vocab": [["<pad>", 0.0], ["</s>", 0.0], ["<mask_1>", 0.0], ["<unk_2>", -100], ["<unk>", 0.0], ["▁", -2],
  ["▁the", -3], ["▁cat", -5], ["▁mat", -6], ["s", -2.5], ["e", -2.6], ["▁sat", -7], ["▁on", -4], ["▁a", -4], ["t", -3.5], ["a", -3.2], ["▁dog", -7],
  ["o", -3], ["c", -3], ["m", -3], ["n", -3], [".", -3], [",", -3]]}}
JSON
"$make_model" own pair "$golden/text.txt"
all='bert_mlm bert_classify bert_sentence distilbert_mlm distilbert_classify roberta_mlm roberta_classify gpt2 llama mistral qwen2 marian pegasus
    modernbert_mlm modernbert_classify'

# ---- numbers of files ----
# near NAME WANTED GOT TOLERANCE: files of numbers
near() {
    if paste "$2" "$3" | awk -v most="$4" 'NF != 2 || !($1 - $2 <= most && $2 - $1 <= most) { bad++ } END { exit bad || !NR }'; then ok "$1"
    else not_ok "$1" "$(paste "$2" "$3" | head -3)"; fi
}
# row FAMILY NAME N: N ids of the golden's first row, with commas
row() { tensor "$golden/families/$1/golden.safetensors" "$2" | head -"$3" | awk '{ printf (NR > 1 ? ",%d" : "%d"), $1 }'; }

# ---- info ----
for name in $all $decoders; do check "info $name" run 0 "" info $name; done
check "info of a BERT" run 0 "" info bert_mlm
contains "tells what it is" "$(tr -s ' ' <out)" "architecture bert" "parameters 5143" "bytes 27432 in 1 file" "layers 2 of the encoder" "dim 16" \
    "heads 4" "vocabulary 23" "context 12" "tokenizer published, 23 tokens, from vocab.txt" "can fill, embed"
check "info of a classifier" run 0 "" info bert_classify
contains "has labels" "$(cat out)" "classify" "bad, neither, good"
check "info of a translator" run 0 "" info marian
contains "has two sides" "$(tr -s ' ' <out)" "2 of the encoder, 2 of the decoder" "source.spm" "can translate"
check "info of a Llama" run 0 "" info llama
contains "has heads of keys and values" "$(tr -s ' ' <out)" "heads 4, 2 of keys and values" "can generate"
check "info --json" run 0 "" info bert_classify --json
contains "is JSON" "$(cat out)" '"architecture": "bert"' '"labels": [' '"neither"' '"tokens": 23' '"kv_heads": 4' '"can": ['
check "info of our own" run 0 "" info own
contains "is qkv" "$(tr -s ' ' <out)" "architecture qkv" "tokenizer byte pairs"

# ---- tokenize ----
echo 'The cats sat' >in
check "tokenize -m" run 0 "" tokenize -m bert_mlm --framed
same "gives word pieces" "[CLS] the cat ##s sat [SEP]" "$(cat out)"
printf 'the cat\ta dog\n' >in
check "tokenize --pair" run 0 "" tokenize -m bert_mlm --framed --pair --json
contains "has types" "$(cat out)" '"ids": [2, 5, 6, 3, 10, 11, 3]' '"types": [0, 0, 0, 0, 1, 1, 1]'
echo 'the cat' >in
refused "a line without a TAB" 4 "line 1 is not" tokenize -m bert_mlm --pair
refused "two places" 2 "choose one" tokenize -m bert_mlm --tokenizer bert_mlm/vocab.txt
refused "no place" 2 "so is --model" detokenize
: >in

# ---- forward ----
# compared NAME FILE.npy TENSORS...: with the first rows of the golden's tensors
compared() {
    file=$golden/families/$1/golden.safetensors of=$1
    npy "$2" >got
    shift 2
    each=$(($(wc -l <got) / $#))
    for name in "$@"; do tensor "$file" "$name" | head -$each; done >wanted
    near "$of: $*" wanted got 1e-4
}
for model in bert_mlm roberta_mlm distilbert_mlm modernbert_mlm bert_classify roberta_classify distilbert_classify modernbert_classify \
    bert_sentence; do
    types= out=logits
    case $model in distilbert* | modernbert*) ;; *) types="--type-ids $(row $model types 7)" ;; esac
    case $model in *_classify) out=classes ;; bert_sentence) out=encoder ;; esac
    check "forward $model" run 0 "" forward -m $model --source-ids "$(row $model ids 7)" $types --$out y.npy --encoder-all h.npy --quiet
    if [ $out = encoder ]; then compared $model y.npy hidden.2; else compared $model y.npy $out; fi
    case $model in modernbert*) compared $model h.npy hidden.0 hidden.1 hidden.2 hidden.3 ;; *) compared $model h.npy hidden.0 hidden.1 hidden.2 ;; esac
done
for model in gpt2 llama mistral qwen2; do
    check "forward $model" run 0 "" forward -m $model --target-ids "$(row $model ids 7)" --logits y.npy --hidden-all h.npy --quiet
    compared $model y.npy logits
    compared $model h.npy hidden.0 hidden.1 hidden.2
done
for model in marian pegasus; do
    check "forward $model" run 0 "" forward -m $model --source-ids "$(row $model ids 7)" --target-ids "$(row $model target 3)" \
        --logits y.npy --encoder-all e.npy --hidden-all h.npy --quiet
    compared $model y.npy logits
    compared $model e.npy hidden.0 hidden.1 hidden.2
    compared $model h.npy hidden.3 hidden.4 hidden.5
done
# as_ids NAME MODEL IDS OPTIONS...: text is read as these ids
as_ids() {
    case_name=$1 model=$2 ids=$3
    shift 3
    problem=$(run 0 "" forward -m "$model" "$@" --logits text.npy --quiet) && problem=$(run 0 "" forward -m "$model" $ids --logits ids.npy --quiet) &&
        cmp -s text.npy ids.npy && ok "$case_name" || not_ok "$case_name" "$problem"
}
as_ids "text is framed" bert_mlm "--source-ids 2,5,4,3" --source 'the [MASK]'
as_ids "or raw" bert_mlm "--source-ids 5,6" --source 'the cat' --raw
as_ids "as RoBERTa has it" roberta_mlm "--source-ids 0,19,2" --source the
as_ids "as Llama has it" llama "--target-ids 1,19" --target the
as_ids "as GPT-2 has it" gpt2 "--target-ids 19" --target the
as_ids "as Marian has it" marian "--source-ids 9,13,0 --target-ids 22,16" --source 'the cat' --target mat
as_ids "as Pegasus has it" pegasus "--source-ids 6,7,1 --target-ids 0,8" --source 'the cat' --target mat
refused "types of a GPT-2" 2 "has no encoder" forward -m gpt2 --target-ids 3 --source-ids 3 --type-ids 0
refused "types that are none" 2 "have no types" forward -m distilbert_mlm --source-ids 3 --type-ids 0
refused "too few types" 2 "1 types for a source of 2" forward -m bert_mlm --source-ids 3,4 --type-ids 0
refused "logits of a classifier" 2 "--logits: bert_classify says no words" forward -m bert_classify --source-ids 3 --logits y.npy
refused "classes of none" 2 "has no classifier" forward -m bert_mlm --source-ids 3 --classes y.npy

# ---- fill ----
for model in bert_mlm distilbert_mlm roberta_mlm; do
    check "fill with $model" run 0 "" fill -m $model --n-best 3 'the [MASK]'
    same "three tokens" 3 "$(wc -l <out)"
    check "fill --json" run 0 "" fill -m $model --n-best 23 --json 'the [MASK]'
    contains "has them" "$(cat out)" '"text": "the [MASK]"' '"span": [4, 10]' '"id": ' '"token": ' '"p": '
    same "of probability 1 together" 1.000 "$(tr '{' '\n' <out | sed -n 's/.*"p": \([^,]*\),.*/\1/p' | awk '{ s += $1 } END { printf "%.3f", s }')"
done
check "the likeliest by fill" run 0 "" fill -m bert_mlm --n-best 1 --json 'the [MASK] sat'
best=$(sed 's/.*"id": \([0-9]*\).*/\1/' out)
run 0 "" forward -m bert_mlm --source-ids 2,5,4,7,3 --logits y.npy --quiet
same "is forward's" "$best" "$(npy y.npy | sed -n '47,69p' | awk 'NR == 1 || $1 > most { most = $1; at = NR - 1 } END { print at }')"
printf 'the [MASK]\nno mask\n[MASK] [MASK]\n' >in
check "lines" run 2 "line 2: " fill -m bert_mlm --json
same "each" 3 "$(wc -l <out)"
contains "the second tells" "$(sed -n 2p out)" '"error": '
: >in
refused "no mask" 2 "mask" fill -m bert_mlm 'the cat'
refused "a model that cannot" 5 'no head for "fill": it can generate' fill -m gpt2 'the [MASK]'
refused "too long a text" 6 "qkv: fill" fill -m bert_mlm 'the the the the the the the the the the the [MASK]'

# form NAME KIND FROM
form() {
    mkdir "$1" && cp "$3"/*.json "$1" && { cp "$3"/*.txt "$3"/*.model "$1" 2>/dev/null; "$make_forms" "$3" "$1" "$2"; }
}
# ---- tag, answer ----
for name in bert_tag bert_answer bert_dense; do bert $name; done
for name in roberta_tag roberta_answer; do roberta $name; done
check "info of a tagger" run 0 "" info bert_tag
contains "says so" "$(tr -s ' ' <out)" "can tag, embed" "labels O, B-PER, I-PER, B-LOC, I-LOC"
check "info of one that answers" run 0 "" info roberta_answer
contains "says so too" "$(tr -s ' ' <out)" "can answer, embed"
# tagged NAME MODEL TEXT WORDS TOKENS: what tag says of WORDS words is what forward says of their first tokens, TOKENS from 0
tagged() {
    run 0 "" tag -m "$2" --words "$3" || return
    same "$1: words" "$4" "$(cut -f 3 out | tr '\n' '|')"
    cut -f 2 out >got
    "$qkv" forward -m "$2" --source "$3" --classes y.npy --quiet
    npy y.npy | awk -v tokens="$5" '{ e[NR - 1] = exp($1) } END { n = split(tokens, at, " ")
        for (i = 1; i <= n; i++) { s = m = 0
            for (k = 0; k < 5; k++) { x = e[at[i] * 5 + k]; s += x; if (x > m) m = x }
            print m / s } }' >wanted
    near "$1: their scores" wanted got 1e-4
}
tagged "word pieces" bert_tag "The cats sat, on." "The|cats|sat|,|on|.|" "1 2 4 5 6 7"
tagged "byte pairs" roberta_tag "the cat at" "the|cat|at|" "1 2 5"
printf 'the cat sat on the mat. a dog ran, the cats sat on a mat. paris\n\nthe cat\n' >in
check "lines" run 0 "" tag -m bert_tag --words
same "in windows, an empty line for none" "23 21" "$(wc -l <out) $(grep -c . out)"
cp out one
check "batches of one" run 0 "" tag -m bert_tag --words --batch 1
check "give the same" cmp one out
check "as JSON" run 0 "" tag -m bert_tag --words --json
contains "with places" "$(sed -n 3p out)" '{"line": 3, "entities": [' '"words": [{"label": ' '"text": "cat", "span": [4, 7], "characters": [4, 7]}'
: >in
printf 'the cat sat on the mat.\na dog ran, the cats sat on a mat. paris\n' >context
check "an answer" run 0 "" answer -m bert_answer --context context --n-best 3 "the dog" "a cat"
same "three each" 7 "$(wc -l <out)"
contains "from the context" "$(tr '\n' ' ' <context)" "$(sed -n '1s/^[0-9.]*\t//p' out)"
check "with RoBERTa" run 0 "" answer -m roberta_answer --context context --must-answer --json "the cat"
contains "as JSON" "$(cat out)" '{"question": "the cat", "answers": [{"text": "' '"score": ' '"span": [' '"characters": [' '"none": ' '"windows": '
refused "no context" 3 "nowhere" answer -m bert_answer --context nowhere x
refused "a tagger does not classify" 5 'bert_tag: the model has no head for "classify": it can tag, embed' classify -m bert_tag x
refused "a classifier does not tag" 5 'no head for "tag": it can classify, embed' tag -m bert_classify x
refused "a tagger does not answer" 5 'no head for "answer": it can tag, embed' answer -m bert_tag --context context x
refused "a classifier of three labels does not rank" 5 'no head for "rank": it can classify, embed' rank -m bert_classify --corpus context x
# One rule for bytes that are not UTF-8: replaced by U+FFFD, and it is told.
printf 'the cat\nthe \377 sat\n' >bad.txt
form one_label one bert_classify
tr -d '\n' <bert_classify/config.json | sed 's/"id2label": {[^}]*}/"id2label": {"0": "x"}/; s/"label2id": {[^}]*}/"label2id": {"x": 0}/' >one_label/config.json
told="bad.txt: line 2: byte 5 is not UTF-8: replaced by U+FFFD"
check "tag" run 0 "$told" tag -m bert_tag --input bad.txt
check "answer: questions" run 0 "$told" answer -m bert_answer --context context --input bad.txt
check "answer: the context" run 0 "bad.txt: line 2 is not UTF-8: replaced by U+FFFD" answer -m bert_answer --context bad.txt x
check "rank: queries" run 0 "$told" rank -m one_label --corpus context --input bad.txt
check "rank: lines" run 0 "$told" rank -m one_label --corpus bad.txt x
check "are UTF-8 then" iconv -f UTF-8 -t UTF-8 -o /dev/null out
check "embed" run 0 "$told" embed -m bert_tag --input bad.txt
check "similar" run 0 "$told" similar -m bert_tag --corpus bad.txt x
check "classify" run 0 "$told" classify -m bert_classify --input bad.txt
printf 'the [MASK]\nthe \377 [MASK]\n' >bad.txt
check "fill" run 0 "bad.txt: line 2: byte 5 is not UTF-8" fill -m bert_mlm --input bad.txt
check "export a tagger" run 0 "" export -m bert_tag --as bert -o tagger-again --quiet
check "tag again" run 0 "" tag -m tagger-again --json "the cats sat, on."
cp out one
check "and before" run 0 "" tag -m bert_tag --json "the cats sat, on."
check "is the same" cmp one out
check "quantized" run 0 "" tag -m bert_tag --int8 --words "the cats"
check "embed by modules" run 0 "" embed -m bert_dense "the cat sat on mat"
tensor "$golden/families/bert_dense/golden.safetensors" embedding | head -5 >wanted
tr ' ' '\n' <out >got
near "as sentence-transformers does" wanted got 1e-5
check "one pooling alone" run 0 "" embed -m bert_dense --pooling first "the cat"
cp out first
check "another name of it" run 0 "" embed -m bert_dense --pooling cls "the cat"
same "cls is the first token" "$(cat first)" "$(cat out)"
same "without them" 16 "$(wc -w <out)"

# ---- classify, embed, similar ----
for model in bert_classify roberta_classify distilbert_classify; do
    echo 'the cat' >in
    check "classify with $model" run 0 "" classify -m $model --all
    same "one line" 1 "$(wc -l <out)"
    same "of probabilities" 1.000 "$(tr '\t' '\n' <out | awk 'NR % 2 == 0 { s += $1 } END { printf "%.3f", s }')"
done
# probabilities by the classes that forward wrote, and as classify printed them
by_forward() { npy y.npy | awk '{ e[NR] = exp($1); s += e[NR] } END { for (i = 1; i <= NR; i++) print e[i] / s }' | sort >wanted; }
by_classify() { sed 's/.*"probabilities": {//; s/}.*//' out | tr ',' '\n' | sed 's/.*: //' | sort >got; }
check "classify" run 0 "" classify -m bert_classify --json
by_classify
run 0 "" forward -m bert_classify --source 'the cat' --classes y.npy --quiet
by_forward
near "by the classes of forward" wanted got 1e-5
printf 'the cat\ta dog\n' >in
check "pairs" run 0 "" classify -m bert_classify --pairs --json
by_classify
run 0 "" forward -m bert_classify --source-ids 2,5,6,3,10,11,3 --type-ids 0,0,0,0,1,1,1 --classes y.npy --quiet
by_forward
near "have types" wanted got 1e-5
printf 'the cat\na dog ran\n' >in
check "embed" run 0 "" embed -m bert_sentence
same "gives vectors" "2 16" "$(awk '{ n = NF } END { print NR, n }' out)"
cp out sentences
cp -r bert_sentence first_token
sed -i 's/"pooling_mode_cls_token": false/"pooling_mode_cls_token": true/; s/"pooling_mode_mean_tokens": true/"pooling_mode_mean_tokens": false/' \
    first_token/1_Pooling/config.json
for kind in mean first; do check "embed --pooling $kind" run 0 "" embed -m bert_sentence --pooling $kind && cp out $kind; done
check "pooled as its files say" cmp sentences mean
check "embed by the first token" run 0 "" embed -m first_token
check "as its files say" cmp out first
refuse "which is not the same" cmp -s first mean
check "embed with a translator" run 0 "" embed -m marian
printf 'the cat\na dog\nbad film\n' >corpus
echo 'a dog' >in
check "similar" run 0 "" similar -m bert_sentence --corpus corpus --top 1
contains "finds the line itself" "$(cat out)" "1.0000  2  a dog"

# ---- generate, perplexity ----
: >in
for model in gpt2 llama mistral qwen2 $decoders; do
    check "generate with $model" run 0 "" generate -m $model -p 'the' -n 5 --json
    contains "has log-probabilities" "$(cat out)" '"log_p": ['
    check "perplexity" sh -c "printf 'the cat\nthe mat\n' >text && '$qkv' perplexity -m $model text --context 8 --json >out"
    contains "is told" "$(cat out)" '"perplexity": '
done
for model in $decoders; do
    check "attend with $model" run 0 "" attend -m $model 'the cat sat on the mat' --json
    contains "has weights" "$(cat out)" '"weights"'
    check "train --from $model" run 0 "" train generate --from $model --train text --valid text --context 24 --steps 2 --quiet --out more_$model
    check "the result is of its family" run 0 "" info more_$model
    contains "is told" "$(tr -s ' ' <out)" "architecture $(sed -n 's/.*"model_type": "\([a-z0-9_]*\)".*/\1/p' $model/config.json)"
    check "quantize $model" run 0 "" quantize $model int4_$model --int4 --quiet
    check "generate in 4 bits" run 0 "" generate -m int4_$model -p 'the' -n 20
done
check "generate" run 0 "" generate -m gpt2 -p 'the' -n 1 --json
id=$(sed 's/.*"ids": \[\([0-9]*\).*/\1/' out)
run 0 "" forward -m gpt2 --target the --logits y.npy --quiet
same "takes the likeliest token" "$(npy y.npy | awk 'NR == 1 || $1 > most { most = $1; at = NR - 1 } END { print at }')" "${id:-22}"
check "the same at 4 threads" run 0 "" generate -m llama -p 'the' -n 20 -t 4
cp out four
check "and at 1" run 0 "" generate -m llama -p 'the' -n 20 -t 1
check "the same bytes" cmp out four
ids() { sed 's/.*"ids": \[\([^]]*\)\].*/\1/' out | tr ',' '\n' | wc -l; }
full="qkv: the text ends at the model's context of 64 tokens"
check "more tokens than the context has" run 0 "$full" generate -m mistral -p the -n 500 --json
same "are what it leaves behind <s> and a prompt of one" 62 "$(ids)"
contains "is a finish by length" "$(cat out)" '"finish": "length"'
cp out filled
check "without -n" run 0 "$full" generate -m mistral -p the --json
check "the same" cmp out filled
check "as many tokens as fit" run 0 "" generate -m mistral -p the -n 62 --json
check "the same without a note" cmp out filled
check "--past-context" run 0 "" generate -m mistral -p the -n 100 --json --past-context
same "goes on" 100 "$(ids)"
refused "learned positions end" 5 "the model's positions end at 12: it cannot go past its context" generate -m gpt2 -p the --past-context
long=$(awk 'BEGIN { for (i = 0; i < 70; i++) printf " the" }')
refused "a prompt longer than the context" 6 "leaves no room: the model's context is 64" generate -m mistral -p "$long"
check "can be read past it" run 0 "" generate -m mistral -p "$long" -n 2 --past-context
refused "no room" 6 "qkv: generate" generate -m gpt2 -p 'the the the the the the the the the the the the the'

# ---- translate ----
printf 'the cat\n\nthe mat\n' >in
check "translate" run 0 "" translate -m marian
same "three lines" 3 "$(wc -l <out)"
check "translate --json" run 0 "" translate -m marian --json
cp out own_beam
check "translate --beam 4 --length-penalty 0.8" run 0 "" translate -m marian --json --beam 4 --length-penalty 0.8
check "is what its files say" cmp out own_beam
check "another penalty" run 0 "" translate -m marian --json --length-penalty 0
refuse "is another score" cmp -s out own_beam
check "translate --n-best" run 0 "" translate -m marian --n-best 5 --beam 6
check "translate --heatmap" run 0 "" translate -m marian --heatmap
contains "shows the end" "$(cat out)" "</s>"
check "Pegasus translates" run 0 "" translate -m pegasus --json --quiet
same "three lines" 3 "$(wc -l <out)"
cp out own_beam
check "as its config says" run 0 "" translate -m pegasus --json --beam 8 --length-penalty 0.8 --max-length 23
check "which is the search" cmp out own_beam
model pieces pegasus && cp "$golden/spm_unigram.model" pieces/spiece.model
refused "a SentencePiece file has other ids" 5 "pieces: a pegasus model does not have the ids of its SentencePiece file: add tokenizer.json" \
    translate -m pieces
check "nothing banned comes" sh -c "'$qkv' translate -m marian --json <in | grep -v 'null' | grep -c '<pad>' | grep -qx 0"
: >in

# ---- attend, show, serve ----
for model in bert_mlm roberta_mlm; do
    check "lens of a mask" run 0 "" lens -m $model 'the [MASK]' --json
    same "reads it as one token" "$(case $model in bert*) echo '[CLS] the [MASK] [SEP]' ;; *) echo '<s> the <mask> </s>' ;; esac)" \
        "$(sed -n '1s/.*"tokens": \[\(.*\)\],/\1/p' out | tr -d '",' | tr -s ' ')"
done
contains "so does attend" "$("$qkv" attend -m bert_mlm 'the <mask>' --json)" '"keys": ["[CLS]", "the", "[MASK]", "[SEP]"]'
check "no mask of a model that fills none in" run 0 "" attend -m bert_tag '[MASK]' --json
contains "it is text" "$(cat out)" '"["' '"]"'
for model in bert_mlm gpt2 llama; do check "attend with $model" run 0 "" attend -m $model 'the cat' --json; done
for model in bert_mlm gpt2 llama; do
    check "explain with $model" run 0 "" explain -m $model 'the cat' --head 1 --json
    weights_of() { tr -d '\n' <out | sed 's/.*"weights": *\(\[ *\[[^a-z]*\]\).*/\1/' | tr -s '][, }' '\n' | grep . >"$1"; }
    weights_of explained
    run 0 "" attend -m $model 'the cat' --layer 0 --head 1 --pieces --json
    weights_of attended
    near "and with the weights of attend" attended explained 0.000001
    check "drawn" run 0 "" show model -m $model --out m.svg
done
check "attend with marian" run 0 "the translation is" attend -m marian 'the cat' --json
contains "by its tokens" "$(cat out)" '"keys": ["the", " cat", "</s>"]'
check "a picture" run 0 "wrote" attend -m marian 'the cat' --target mat --out a.svg
check "show positions" run 0 "" show positions -m bert_mlm --out p.svg
"$qkv" serve -m marian --port 0 >address 2>err &
server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do [ -s address ] || sleep 0.2; done
contains "serve" "$(cat address)" "http://127.0.0.1:"
kill $server
wait $server

# ---- export: there and back ----
check "export as qkv" run 0 "wrote" export -m bert_mlm --as qkv -o as_qkv
for command in "embed the" "fill [MASK]" "attend the" "similar --corpus context the"; do
    run 0 "" ${command%% *} -m bert_mlm ${command#* } && cp out before
    check "as qkv: $command" run 0 "" ${command%% *} -m as_qkv ${command#* }
    check "says the same" cmp out before
done
check "and back" run 0 "" export -m as_qkv --as bert -o as_bert --quiet
for model in bert_mlm as_qkv as_bert; do
    run 0 "" forward -m $model --source-ids 2,5,4,3 --logits $model.npy --quiet
    check "$model gives the same bits" cmp $model.npy bert_mlm.npy
done
bart=$golden/families/bart_classify
refused "BART's classifier as qkv" 5 "whose classifiers read an encoder: save it as bart" export -m "$bart" --as qkv -o as_qkv_bart
run 0 "" forward -m "$bart" --source-ids 19,8,22,20,22,3,11 --target-ids 2,19,8,22,20,22,3 --classes y.npy --quiet
tensor "$bart/golden.safetensors" classes | head -3 >wanted
npy y.npy >got
near "it reads its decoder's states" wanted got 1e-4
refused "which say no words" 2 "says no words" forward -m "$bart" --source-ids 19,8 --target-ids 2,19 --logits y.npy
refused "marian as qkv" 5 "as qkv, whose translations begin with <s>: save it as marian" export -m marian --as qkv -o as_qkv_marian
check "marian as marian" run 0 "" export -m marian --as marian -o marian2 --quiet
run 0 "" forward -m marian --source 'the cat' --logits 1.npy --quiet
check "with its tokenizers" run 0 "" forward -m marian2 --source 'the cat' --logits 2.npy --quiet
check "the same bits" cmp 1.npy 2.npy
check "pegasus as pegasus" run 0 "" export -m pegasus --as pegasus -o pegasus2 --quiet
run 0 "" forward -m pegasus --source 'the cat' --target mat --logits 1.npy --quiet
check "with its tokenizer" run 0 "" forward -m pegasus2 --source 'the cat' --target mat --logits 2.npy --quiet
check "the same bits" cmp 1.npy 2.npy
names="summarize: gpt2: the model"
refused "a summary by a decoder" 5 'no head for "translate": it can generate' summarize -m gpt2 x
names=
refused "another shape" 5 "cannot be saved as llama, which differs from it: its positions are rotary" export -m gpt2 --as llama -o as_llama
check "our positions become Marian's" run 0 "wrote own_marian" export -m own --as marian -o own_marian
# What the documents promise: models of ours for other programs.
grep -v "$(printf '\t')" "$golden/text.txt" >plain.en && paste plain.en plain.en >pairs.tsv
tiny='--preset tiny --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --steps 3 --max-tokens 64 --quiet'
# leaves NAME FAMILY OPTIONS...: a translator that was trained with them is of the family, and translates as before
leaves() {
    case_name=$1 family=$2
    shift 2
    rm -rf ours
    check "$case_name" run 0 "" train translate "$@" --train pairs.tsv $tiny --out ours
    check "is a $family" run 0 "wrote ours-$family" export -m ours --as $family -o ours-$family
    head -n 3 plain.en >in
    run 0 "" translate -m ours --beam 1 && cp out wanted
    check "which translates" run 0 "" translate -m ours-$family --beam 1
    check "as before" cmp out wanted
    run 0 "" forward -m ours --source 'I love you' --target 'the cat' --logits 1.npy --quiet
    check "and its logits" run 0 "" forward -m ours-$family --source 'I love you' --target 'the cat' --logits 2.npy --quiet
    check "are the same bits" cmp 1.npy 2.npy
    contains "it ends with its own </s>" "$(cat ours-$family/config.json)" '"eos_token_id": 2' '"forced_eos_token_id": 2'
    : >in
}
leaves "a translator with the norms behind" marian --no-pre-norm
leaves "a translator as it is without options" pegasus
refused "which is no Marian" 5 "its norms come after each sub-layer" export -m ours --as marian -o as_marian
check "a generator as it is without options" run 0 "" train generate --train plain.en $tiny --out told
check "is a Llama" run 0 "wrote told-llama" export -m told --as llama -o told-llama
run 0 "" generate -m told -p 'I love' -n 20 --temp 0 --json && cp out wanted
check "which generates" run 0 "" generate -m told-llama -p 'I love' -n 20 --temp 0 --json
check "as before" cmp out wanted
check "an encoder as it is without options" run 0 "" train mask --train plain.en $tiny --out guessed
check "is a ModernBERT" run 0 "wrote guessed-modernbert" export -m guessed --as modernbert -o guessed-modernbert
run 0 "" fill -m guessed 'I <mask> you' && cp out wanted
check "which fills, through the head that it has now" run 0 "" fill -m guessed-modernbert 'I <mask> you'
check "as before" cmp out wanted
contains "its ids are its own" "$(cat guessed-modernbert/config.json)" '"pad_token_id": 0' '"cls_token_id": 1' '"sep_token_id": 2' \
    '"global_attn_every_n_layers": 1'
refused "which is no BERT" 5 "its positions are learned" export -m guessed --as bert -o as_bert2
refused "no family" 2 "--as is missing" export -m gpt2 -o x
refused "an unknown family" 2 "is not one of marian" export -m gpt2 --as rwkv -o x
refused "a folder with a model" 2 "holds a model already" export -m gpt2 --as gpt2 -o bert_mlm
check "nothing was written" test ! -e x -a ! -e as_llama

# ---- train --from ----
awk 'BEGIN { split("the cat sat on mat a dog ran", w, " ")
    for (i = 0; i < 40; i++) print (i % 2 ? "good\tgood " : "bad\tbad ") w[1 + i % 8] " " w[1 + i * 3 % 8] }' >labelled.tsv
cut -f2 labelled.tsv >plain.txt
awk '{ print "the cat\tthe mat" }' plain.txt >pairs.tsv
few="--max-tokens 64 --schedule constant --lr 0.003 --quiet"
files() { cat "$1"/*.safetensors "$1/config.json" | cksum; }
# fine_tunes NAME JOB MODEL OPTIONS...: stopped and resumed, the same files; of the same family; opened again
fine_tunes() {
    case_name=$1 job=$2 model=$3
    shift 3
    check "$case_name: train $job --from $model" run 0 "" train "$job" --from "$model" "$@" $few --steps 12 --out tuned
    check "stopped" run 0 "" train "$job" --from "$model" "$@" $few --steps 5 --out again
    check "resumed" run 0 "" train "$job" --from "$model" "$@" $few --steps 12 --out again --resume
    same "gives the same bytes" "$(files tuned)" "$(files again)"
    family=$(sed -n 's/.*"model_type": "\([a-z0-9-]*\)".*/\1/p' "$model/config.json")
    check "its family" run 0 "" info tuned
    contains "stays" "$(tr -s ' ' <out)" "architecture $family"
    rm -rf again
}
for model in bert_mlm bert_classify distilbert_mlm roberta_mlm modernbert_mlm modernbert_classify; do
    fine_tunes "classes" classify $model --train labelled.tsv --valid labelled.tsv
    cut -f2 labelled.tsv >in
    check "classify" run 0 "" classify -m tuned --quiet
    rm -rf tuned
    : >in
done
fine_tunes "a language" generate gpt2 --train plain.txt --context 8
check "generate" run 0 "" generate -m tuned -p the -n 3
rm -rf tuned
fine_tunes "a language" generate llama --train plain.txt --context 8
rm -rf tuned
for model in bert_sentence modernbert_classify; do
    fine_tunes "masked words" mask $model --train plain.txt
    check "fill" run 0 "" fill -m tuned 'good [MASK]'
    rm -rf tuned
done
fine_tunes "pairs" translate marian --train pairs.tsv --keep 2 --valid-every 3
same "keeps the last two" "step-12 step-9 " "$(ls tuned | grep step- | sort | tr '\n' ' ')"
check "average" run 0 "" average --models tuned/step-9 tuned/step-12 --out averaged --quiet
check "is a translator" run 0 "" translate -m averaged
check "keeps its tokenizers" cmp tuned/source.spm marian/source.spm
echo 'the cat' >in
check "translate" run 0 "" translate -m tuned
rm -rf tuned
fine_tunes "pairs" translate pegasus --train pairs.tsv
check "translate" run 0 "" translate -m tuned
: >in
rm -rf tuned
refused "a GPT-2 does not classify" 2 "no encoder alone" train classify --from gpt2 --train labelled.tsv --out no
refused "a BERT does not generate" 2 "no decoder alone" train generate --from bert_mlm --train plain.txt --out no
refused "a ModernBERT has two ways" 2 "reads the first token or the mean" train classify --from modernbert_mlm --train labelled.tsv --pooling last \
    --out no
refused "its pooling is its own" 2 "reads the first token" train classify --from bert_mlm --train labelled.tsv --pooling mean --out no

# ---- forms ----
form shards shards llama
check "two files" run 0 "" info shards
contains "are told" "$(tr -s ' ' <out)" "in 2 files"
run 0 "" forward -m llama --target-ids 1,5,6 --logits 1.npy --quiet
check "forward from shards" run 0 "" forward -m shards --target-ids 1,5,6 --logits 2.npy --quiet
check "the same bits" cmp 1.npy 2.npy
form half bf16 bert_classify
check "BF16" run 0 "" forward -m half --source-ids 2,5,3 --classes 2.npy --quiet
check "asked for" run 0 "" forward -m half --bf16 --source-ids 2,5,3 --classes asked.npy --quiet
"$qkv" info | grep -qwE "avx512_bf16|amx" || check "has the same bits where inputs are not rounded too" cmp 2.npy asked.npy
run 0 "" forward -m bert_classify --source-ids 2,5,3 --classes 1.npy --quiet
npy 1.npy >wanted && npy 2.npy >got
near "is near" wanted got 0.05
check "show positions of BF16" run 0 "" show positions -m half --out p.svg
check "explain BF16" run 0 "" explain -m half 'the cat' --kind encoder --head all
printf 'the cat sat on the mat and the dog ran at the cat on the mat\n%.0s' 1 2 3 >doc.txt
check "train generate --from a model of 12 positions" run 0 "" train generate --from gpt2 --train doc.txt --steps 1 --quiet --out from_few
contains "chooses as many" "$(cat from_few/training.json)" '"context": "12"'
check "train --from BF16" run 0 "" train classify --from half --train labelled.tsv $few --steps 3 --out from_half
rm -rf from_half

# ---- the example ----
for model in marian gpt2 bert_mlm bert_classify bert_sentence; do check "the example with $model" "$example" $model 'the [MASK]'; done
contains "prints words" "$("$example" bert_mlm 'the [MASK]')" "the "
refuse "and errors" "$example" nothing x
check "a model of ours" run 0 "" train generate --train doc.txt --valid doc.txt --tokens characters --layers 1 --dim 16 --heads 2 \
    --inner 32 --steps 40 --quiet --out own_text
for model in gpt2 mistral qwen3 own_text; do
    run 0 "" generate -m $model -p 'the' -n 8 --temp 0
    same "text, ids, session and text with $model: as generated" "$(cat out)" "$("$text_session" $model the 8)"
done
refuse "a model that is not there" "$text_session" nothing x

# ---- errors ----
mkdir pickled && cp bert_mlm/config.json pickled && : >pickled/pytorch_model.bin
# ---- whether a source of ours ends with </s> ----
contains "config.json says so" "$(cat own/config.json)" '"source_eos": true'
echo 'I love you' >in
run 0 "" translate -m own --json --alignment && cp out wanted
cp -r own older && sed -i 's/, *$/,/; /"source_eos"/d' older/config.json
sed -i -e ':a' -e 'N' -e '$!ba' -e 's/,\n}/\n}/' older/config.json # it was the last key
check "a folder from before" run 0 "" translate -m older --json --alignment
check "translates the same" cmp out wanted
cp -r own endless && sed -i 's/"source_eos": true/"source_eos": false/' endless/config.json
check "one without" run 0 "" translate -m endless --json --alignment
if cmp -s out wanted; then not_ok "translates otherwise" "$(cat out)"; else ok "translates otherwise"; fi
tokens=$("$qkv" tokenize -m own <in | wc -w)
columns() { sed 's/.*"attention": \[\[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n' | wc -l; }
same "a column for the end" $((tokens + 1)) "$(columns wanted)"
same "and none without" "$tokens" "$(columns out)"
: >in
check "attend" run 0 "wrote a.json" attend -m endless 'I love you' --kind encoder -o a.json
contains "reads no end" "$(tr -d ' \n' <a.json)" '"u"],"weights"'
sed -i 's/"positions": "sinusoid"/"positions": "sinusoid_halves"/' endless/config.json
refused "no Marian" 5 "its sources end with </s> (source_eos)" export -m endless --as marian -o no
sed -i 's/"source_eos": false/"source_eos": 7/' endless/config.json
refused "neither true nor false" 4 'key "source_eos": expected true or false' translate -m endless

# ---- what generation_config.json asks for ----
model sampled llama && cp llama/tokenizer.json sampled
printf '{"do_sample": true, "temperature": 2.5, "top_k": 7, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.3,
 "no_repeat_ngram_size": 2, "max_new_tokens": 9}' >sampled/generation_config.json
settings='--temp 2.5 --top-k 7 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.3 --no-repeat-ngram 2'
# by_files NAME ARGUMENTS.. -- ARGUMENTS..: the first, of the model with the file, print what the second do of the one without
by_files() {
    case_name=$1 first=
    shift
    while [ "$1" != -- ]; do first="$first $1" && shift; done
    shift
    run 0 "" generate -m sampled -p the $first --json && cp out wanted && run 0 "" generate -m llama -p the "$@" --json &&
        if cmp -s out wanted; then ok "$case_name"; else not_ok "$case_name" "$(cat wanted)" "$(cat out)"; fi
}
by_files "a file's settings" --seed 3 -- $settings -n 9 --seed 3
by_files "all seeds" --seed 4 --samples 3 -- $settings -n 9 --seed 4 --samples 3
by_files "draws without a seed" -- $settings -n 9
by_files "--temp 0 draws nothing" --temp 0 -- --temp 0 --repetition-penalty 1.3 --no-repeat-ngram 2 -n 9
by_files "options override" --temp 1.5 --top-k 3 --repetition-penalty 1 -n 5 -- --temp 1.5 --top-k 3 --top-p 0.9 --min-p 0.01 --no-repeat-ngram 2 -n 5
contains "info tells" "$("$qkv" info sampled)" \
    "generation      draws, temperature 2.5, top-k 7, top-p 0.9, min-p 0.01, repetition penalty 1.3, at most 9 new tokens, no run of 2 tokens twice"
contains "info of one without" "$("$qkv" info llama)" "generation      the likeliest token"
contains "as JSON" "$("$qkv" info sampled --json)" '"do_sample": true' '"temperature": 2.5' '"min_p": 0.01' '"no_repeat_ngram_size": 2' '"num_beams": null'
contains "of a translator" "$("$qkv" info marian)" "search          beam 4, length penalty 0.8, at most 10 tokens"
contains "of ours" "$("$qkv" info own --json)" '"generation": null'
cp -r marian no_runs
sed 's/{/{"no_repeat_ngram_size": 1,/' marian/generation_config.json >no_runs/generation_config.json
echo 'the cat' >in
run 0 "" translate -m marian --no-repeat-ngram 1 --json && cp out wanted
run 0 "" translate -m no_runs --json
check "a translator's repeats" cmp out wanted
run 0 "" translate -m marian --json
if cmp -s out wanted; then not_ok "which it would have" "$(cat out)"; else ok "which it would have"; fi
: >in

# ---- CamemBERT: a RoBERTa whose SentencePiece tokens begin behind other special ones ----
model camembert roberta_mlm
sed -i 's/"roberta"/"camembert"/; s/"RobertaForMaskedLM"/"CamembertForMaskedLM"/; s/"bos_token_id": 0/"bos_token_id": 5/; s/"eos_token_id": 2/"eos_token_id": 6/' \
    camembert/config.json
cat >camembert/tokenizer.json <<'JSON'
{"added_tokens": [{"id": 0, "content": "<s>NOTUSED", "special": true}, {"id": 1, "content": "<pad>", "special": true},
  {"id": 2, "content": "</s>NOTUSED", "special": true}, {"id": 3, "content": "<unk>", "special": true}, {"id": 5, "content": "<s>", "special": true},
  {"id": 6, "content": "</s>", "special": true}, {"id": 22, "content": "<mask>", "lstrip": true, "special": true}],
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}]},
 "decoder": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
 "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 6], "cls": ["<s>", 5], "trim_offsets": true, "add_prefix_space": true},
 "model": {"type": "Unigram", "unk_id": 3, "vocab": [["<s>NOTUSED", 0.0], ["<pad>", 0.0], ["</s>NOTUSED", 0.0], ["<unk>", 0.0], ["<unk>NOTUSED", -100],
  ["<s>", 0.0], ["</s>", 0.0], ["▁", -2], ["▁le", -3], ["▁la", -3.1], ["▁chat", -5], ["▁maison", -6], ["s", -2.5], ["e", -2.6], ["▁mange", -7],
  ["▁est", -4], ["▁un", -4], ["t", -3.5], ["a", -3.2], ["▁petit", -7], [".", -3], [",", -3], ["<mask>", 0.0]]}}
JSON
echo 'le chat mange' >in
check "CamemBERT's frame" run 0 "" tokenize -m camembert --framed
same "reads as it does" "<s> ▁le ▁chat ▁mange </s>" "$(cat out)"
: >in
check "fill of CamemBERT" run 0 "" fill -m camembert 'le <mask> mange' --n-best 3
same "as many as were asked for" 3 "$(wc -l <out)"
run 0 "" forward -m roberta_mlm --source-ids 5,8,10,22,6 --logits 1.npy --quiet
check "its numbers" run 0 "" forward -m camembert --source 'le chat<mask>' --logits 2.npy --quiet
check "are RoBERTa's" cmp 1.npy 2.npy
contains "info" "$("$qkv" info camembert)" "camembert" "fill"

# ---- who says how long a source may be ----
echo 'the cat sat on the mat the cat sat on the mat the cat' >in
sentence='18 tokens, more than 11: max_position_embeddings of its config.json allows no more'
check "the files of the model" run 6 "line 1 has $sentence" translate -m marian
check "whatever the option allows" run 6 "line 1 has $sentence" translate -m marian --max-source 15
check "less than that, the option" run 6 "line 1 has 18 tokens, more than 5: --max-source allows more" translate -m marian --max-source 5
: >in
refused "and attend says the same" 6 "the text has $sentence" attend -m marian 'the cat sat on the mat the cat sat on the mat the cat'

# ---- a model with one label scores texts ----
"$make_model" scorer scoring-encoder "$golden/text.txt"
printf 'the cat\nI love you\n' >in
check "scores" run 0 "" classify -m scorer
ids=$(echo "the cat" | "$qkv" tokenize -m scorer --ids | tr ' ' ',')
run 0 "" forward -m scorer --source-ids "1,$ids,2" --classes y.npy --quiet # <s> the cat </s>
logit=$(npy y.npy | tr -d ' ')
run 0 "" classify -m scorer
same "its sigmoid and its logit" "$(awk -v x="$logit" 'BEGIN { printf "relevance\t%.6f\t%.6f", 1 / (1 + exp(-x)), x }')" "$(head -n 1 out)"
[ "$(sed -n 1p out)" != "$(sed -n 2p out)" ] && ok "texts differ" || not_ok "texts differ" "$(cat out)"
check "--all changes nothing" run 0 "" classify -m scorer --all
same "one label" "$(awk -v x="$logit" 'BEGIN { printf "relevance\t%.6f\t%.6f", 1 / (1 + exp(-x)), x }')" "$(head -n 1 out)"
run 0 "" classify -m scorer --json
same "and as JSON" '{"line": 1, "label": "relevance", "sigmoid": N, "logit": N}' "$(head -n 1 out | sed 's/: [-0-9.e]*\([,}]\)/: N\1/g; s/: N, "label/: 1, "label/')"
same "with all their digits" "" "$(head -n 1 out | tr -d ',}' | awk -v x="$logit" '
    function differ(a, b) { return a - b > 1e-7 * (b < 0 ? -b : b) || b - a > 1e-7 * (b < 0 ? -b : b) }
    differ($6, 1 / (1 + exp(-x))) || differ($8, x) { print x ": " $0 }')"
printf 'relevance\tthe cat\n' >one.tsv
refused "nothing to be right about" 5 "scorer has one label" classify -m scorer --eval one.tsv
: >in
printf 'I love you\nthe cat\nyou\nI love you\n' >passages
check "rank" run 0 "" rank -m scorer --corpus passages --top 9 "the cat"
same "the query, then four lines" 5 "$(wc -l <out)"
sed 's/^/the cat\t/' passages >in
sed -n 's/^    \([0-9.]*\)  \([0-9]*\)  .*/\2 \1/p' out | sort -n | cut -d ' ' -f 2 >got
check "the same pairs" run 0 "" classify -m scorer --pairs
cut -f 2 out >wanted
near "have the same scores" wanted got 1e-4
: >in
check "rank --json" run 0 "" rank -m scorer --corpus passages --top 2 --json "the cat"
contains "is JSON" "$(cat out)" '{"query": "the cat", "best": [{"score": ' '"line": ' '"text": "'
same "best first" "" "$(sed 's/"score": /\n/g' out | sed 1d | awk -F, 'NR > 1 && $1 > last { print } { last = $1 }')"

# Git LFS leaves a pointer where a file was not fetched.
for name in model.safetensors tokenizer.json config.json; do
    cp -r llama pointer
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 548105171\n' 7 >pointer/$name
    refused "a Git LFS pointer as $name" 4 "pointer/$name is a Git LFS pointer, not the file itself (548105171 bytes are meant): run git lfs pull, or download it" \
        generate -m pointer -p the
    rm -r pointer
done
cp -r marian pointer
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 802397\n' 7 >pointer/source.spm
refused "a Git LFS pointer as source.spm" 4 "source.spm is a Git LFS pointer, not the file itself (802397 bytes" translate -m pointer
rm -r pointer
refused "an empty pytorch_model.bin" 4 "pickled/pytorch_model.bin: no file of PyTorch" info pickled
mkdir torch && cp bert_classify/config.json torch && cp "$golden/bin/bert_classify/pytorch_model.bin" torch
contains "info names the file" "$("$qkv" info torch)" "in 1 file, from pytorch_model.bin"
model odd_heads modernbert_mlm && sed -i 's/"num_attention_heads": [0-9]*/"num_attention_heads": 16/' odd_heads/config.json
refused "heads that cannot turn in pairs" 4 "odd_heads/config.json: transformer: rotary positions turn pairs: a head needs an even width" info odd_heads
model odd gpt2 && sed -i 's/"gpt2"/"rwkv"/' odd/config.json
refused "an unknown architecture" 5 'unsupported architecture "rwkv"' info odd
model lacking gpt2 && sed -i 's/"n_layer": 2/"n_layer": 3/' lacking/config.json
refused "a missing tensor" 4 "h.2." info lacking
model cut gpt2 && head -c 20000 gpt2/model.safetensors >cut/model.safetensors
refused "a cut file" 4 "cut/model.safetensors" generate -m cut -p x
refused "a folder that is not there" 3 "nothing" info nothing
cp -r bert_mlm many && echo more >>many/vocab.txt
refused "more tokens than the model has" 4 "24 tokens" fill -m many 'the [MASK]'
model ids gpt2
refused "a model without a tokenizer" 2 "ids holds no tokenizer: expected tokenizer.json, vocab.txt" generate -m ids -p x
check "info of it" run 0 "" info ids
contains "info of it names what is missing" "$(cat out)" "read ids; text needs tokenizer.json, vocab.txt"
check "info of it as JSON" run 0 "" info ids --json
same "it can do nothing with text" '"can": [],' "$(grep -o '"can": \[\],' out)"

# ---- a model that someone else trained ----
if [ -r "$stories/hf/config.json" ]; then
    cp -r "$stories/hf" stories && chmod -R u+w stories && cp "$stories/tok512.model" stories/tokenizer.model
    text=$(cat "$stories/greedy_output.txt")
    # begins TEXT: what was printed starts with the text that others got
    begins() { same "as others have it" "$text" "$(head -c ${#text} out)"; }
    check "generate" run 0 "" generate -m stories -p '' -n 300
    LC_ALL=C begins
    cp out whole
    check "generate from a prompt" run 0 "" generate -m stories -p 'Once upon a time' -n 300
    LC_ALL=C begins
    ids=$(tr -d ' \n' <stories/reference_logits.json | sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/')
    check "forward" run 0 "" forward -m stories --target-ids "$ids" --logits y.npy --quiet
    npy y.npy >got
    tr -d ' \n' <stories/reference_logits.json | sed 's/.*"logits":\[\[//; s/\]\].*//; s/\],\[/,/g' | tr ',' '\n' >wanted
    near "the logits of others" wanted got 1e-4
    form shards2 shards stories && form half2 bf16 stories
    check "from shards" run 0 "" generate -m shards2 -p '' -n 300
    check "the same text" cmp out whole
    check "from BF16" run 0 "" generate -m half2 -p '' -n 300
    contains "begins the same" "$(cat out)" "Once upon a time, there was a little girl named Lily."
else skipped "there is no $stories"; fi
finish
