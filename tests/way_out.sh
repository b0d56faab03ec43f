#!/bin/sh
# What each job trains leaves: exported, the folder is whole, its weights give the same logits in PyTorch and its tokenizer the same ids in
# Hugging Face's library, what stands around a text included. Where there is no PyTorch, or no npm package "tokenizers" (NODE_PATH), that
# part is skipped.
# usage: way_out.sh QKV GOLDEN
set -u
VERBOSE=${VERBOSE:-}
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") golden=$(realpath "$2")
cd "$folder" || exit 1
python=
for found in python3 /usr/bin/python3; do
    if "$found" -c 'import numpy, torch' 2>/dev/null; then python=$found && break; fi
done
[ -n "$python" ] || skipped "the logits: there is no PyTorch"
node=
if node -e 'require("tokenizers")' 2>/dev/null; then node=node; else skipped "the ids: there is no npm package tokenizers"; fi

awk 'BEGIN { split("the cat sat on a mat while dog ran to big red house and saw one bird", w, " "); x = 7
    for (i = 0; i < 120; i++) { s = ""; for (k = 0; k < 4 + i % 5; k++) { x = (x * 75 + 74) % 65537; s = s (k ? " " : "") w[1 + x % 17] }
        print s } }' >a.txt
awk '{ s = ""; for (i = NF; i > 0; i--) s = s toupper($i) (i > 1 ? " " : ""); print s }' a.txt >b.txt
awk '{ print (NR % 2 ? "good\tnice " : "bad\tawful ") $0 }' a.txt >l.tsv
awk '{ print (NR % 4 ? (NR % 2 ? "good" : "good;long") : "") "\tnice " $0 }' a.txt >several.tsv # every fourth text has no label
awk '{ print length($0) / 10 "\t" $0 }' a.txt >numbers.tsv
printf '%s\n' 'the cat sat' 'The  CAT, unseen!' ' a mat ' '' 'a 我爱你 é' 'on<s> a </s>mat' >lines.txt
few="--steps 3 --quiet"

# trained JOB NAME OPTIONS...
trained() {
    job=$1 name=$2
    shift 2
    case $job in
        translate) set -- --train a.txt b.txt "$@" ;;
        classify) case " $* " in *" --train "*) ;; *) set -- --train l.tsv "$@" ;; esac ;;
        *) set -- --train a.txt "$@" ;;
    esac
    case " $* " in *" --from "*) ;; *) set -- "$@" --preset tiny ;; esac
    check "train $job $*" "$qkv" train $job $few "$@" --out $name
}

# ids_of NAME: as ids, what the model reads of each line
ids_of() {
    case $1 in
        translate*) "$qkv" tokenize -m $1 --ids --specials <lines.txt | sed 's/$/ 2/; s/^ //' ;;
        generate*) "$qkv" tokenize -m $1 --ids --specials <lines.txt | sed 's/^/1 /; s/ $//' ;;
        *) "$qkv" tokenize -m $1 --ids --specials <lines.txt | sed 's/^/1 /; s/$/ 2/; s/  */ /' ;;
    esac
}

# whole NAME FAMILY: the files, the ids and the numbers of an exported folder
whole() {
    out=$1-$2
    for file in config.json model.safetensors tokenizer.json tokenizer_config.json special_tokens_map.json README.md; do
        check "$out has $file" test -s $out/$file
    done
    contains "its card" "$(cat $out/README.md)" "pipeline_tag:" "## Data" "## Options" "## Scores" "| steps | 3 |"
    contains "its tokens" "$(cat $out/tokenizer_config.json)" '"eos_token": "</s>"' '"bos_token": "<s>"' PreTrainedTokenizerFast
    case $2 in llama) contains "its context" "$(cat $out/config.json)" '"max_position_embeddings": 256' ;; esac
    case $1 in translate* | generate*) contains "its search" "$(cat $out/generation_config.json)" '"eos_token_id": 2' max_new_tokens ;; esac
    ids_of $1 >wanted.ids
    "$qkv" tokenize -m $out --ids --specials --framed <lines.txt >got.ids
    check "the ids it reads, framed" cmp wanted.ids got.ids
    if [ -n "$node" ]; then
        node "$golden/exported_ids.js" $out <lines.txt >got.ids
        check "the same ids in Hugging Face's library" cmp wanted.ids got.ids
    fi
    case $1 in
        translate*) set -- --source-ids 9,12,7,2 --target-ids 1,8,11 --logits ;;
        generate*) set -- --target-ids 1,9,12,7 --logits ;;
        classify*) set -- --source-ids 1,9,12,7,2 --classes ;;
        *) set -- --source-ids 1,9,4,7,2 --logits ;;
    esac
    "$qkv" forward -m ${out%-*} "$@" $out.npy --quiet
    check "$out runs" "$qkv" forward -m $out "$@" theirs.npy --quiet
    target=
    [ "$3" != --target-ids ] || target=$4
    echo "$out $out.npy $2 $target" >>compared.txt
}

# leaves NAME FAMILY
leaves() {
    check "$1 is exported as $2" "$qkv" export -m $1 --as $2 -o $1-$2 --quiet
    whole $1 $2
}

# ---- as the jobs train without options ----
trained translate translate
leaves translate pegasus
trained generate generate
leaves generate llama
trained mask mask
leaves mask modernbert
trained classify classify --ngrams 0
leaves classify modernbert
trained classify classify_from --from mask
leaves classify_from modernbert

# ---- --like ----
trained translate translate_m --like marian
leaves translate_m marian
trained generate generate_g --like gpt2
leaves generate_g gpt2
trained mask mask_b --like bert
leaves mask_b bert
trained classify classify_b --like bert
leaves classify_b bert
trained classify classify_m --like modernbert
leaves classify_m modernbert

# ---- several labels a text, and numbers ----
trained classify classify_several --like bert --train several.tsv --label-separator ';'
leaves classify_several bert
contains "says so" "$(cat classify_several-bert/config.json)" '"problem_type": "multi_label_classification"' '"BertForSequenceClassification"' '"0": "good"'
trained classify classify_number --like bert --train numbers.tsv --numbers
leaves classify_number bert
contains "says so too" "$(cat classify_number-bert/config.json)" '"problem_type": "regression"'
for name in classify_several classify_number; do
    "$qkv" classify -m $name --json <lines.txt >wanted.json
    check "$name: the same answers" sh -c '"$0" classify -m "$1" --json <lines.txt | cmp - wanted.json' "$qkv" $name-bert
done
"$qkv" forward -m classify_several-bert --source-ids "1,$("$qkv" tokenize -m classify_several --ids "the cat" | tr ' ' ','),2" --classes y.npy --quiet
near "a probability is the sigmoid of a logit" "$(npy y.npy | awk '{ print 1 / (1 + exp(-$1)) }' | tr '\n' ' ')" \
    "$("$qkv" classify -m classify_several-bert --json "the cat" | sed 's/.*"good": \([^,}]*\).*/\1/') $(
        "$qkv" classify -m classify_several-bert --json "the cat" | sed 's/.*"long": \([^,}]*\).*/\1/')" 1e-5
printf 'a|<b>\tnice text\nc\tother text\n%.0s' 1 2 3 4 5 6 >odd.tsv
trained classify odd --train odd.tsv --ngrams 0
check "labels of signs" "$qkv" export -m odd --as modernbert -o odd-card --quiet
contains "stand for themselves in the card" "$(cat odd-card/README.md)" '| texts of class a\|&#60;b&#62; | 6 |'

# ---- shapes that weights make up for ----
trained translate translate_paper --paper --max-tokens 256
leaves translate_paper marian
trained generate generate_scaled --no-unscaled
leaves generate_scaled llama
if [ -n "$python" ]; then
    check "PyTorch gives the same numbers" env PYTHONDONTWRITEBYTECODE=1 "$python" "$golden/exported.py" compared.txt
    [ -z "$VERBOSE" ] || echo "$said"
fi

: >in
refused "another job's family" 2 'makes models like marian or pegasus' train translate --like gpt2 --train a.txt b.txt $few --out no
refused "an option that contradicts" 2 "--like marian: its norms come after each sub-layer, which another option changes" \
    train translate --like marian --pre-norm --train a.txt b.txt $few --out no
refused "a model decides it already" 2 "--like cannot be changed" train mask --from mask --like bert --train a.txt $few --out no
refused "the option that would have allowed it" 5 "a training with --like marian makes one that can" export -m translate --as marian -o no
refused "a family that none is like" 5 "a training with --like llama or --like gpt2 makes one" export -m generate --as opt -o no
finish
