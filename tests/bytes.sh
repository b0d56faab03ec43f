#!/bin/sh
# bytes.sh: what qkv computes is the same bytes as ever: trainings of every job, what their models say, with every option
# spelled out that decides about a number. Checked against golden/bytes.txt, lines of "instruction-set compiler name sha256" and
# comments after a #: a compiler may fuse and order sums in its own way, so another one than those listed is skipped.
# usage: bytes.sh QKV GOLDEN COMPILER; with RECORD=1 it prints such lines instead.
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") golden=$2/bytes.txt compiler=$3

sums() { for name in "$@"; do sha256sum <"$name" | sed "s| .*||; s|^|$isa $compiler $name |"; done; }

common="--seed 7 --threads 2 --quiet --patience 0 --log-every 1000 --save-every 1000 --max-tokens 512 --update-freq 1 --clip-norm 1
    --optimizer adam --beta1 0.9 --beta2 0.98 --eps 1e-9 --max-length 64 --steps 60 --valid-every 30 --epochs 30"
shape="--dim 64 --heads 4 --inner 160 --layers 2 --norm layer --dropout 0.1 --attention-dropout 0.1 --inner-dropout 0.05
    --bias --no-unscaled --no-embed-norm --label-smoothing 0"

trainings() {
    # shellcheck disable=SC2086
    {
        "$qkv" train translate --train pairs.tsv --valid pairs.valid.tsv --tokens bpe --vocab 700 $shape --no-pre-norm --positions sinusoid \
            --activation relu --label-smoothing 0.1 --schedule paper --warmup 40 --lr 1 --metric loss $common --out translator
        "$qkv" train translate --train pairs.tsv --valid pairs.valid.tsv --tokens words --vocab 900 --separate $shape --pre-norm \
            --positions rotary --kv-heads 2 --activation silu-gated --no-bias --norm rms --label-smoothing 0.1 \
            --schedule linear --warmup 20 --lr 0.003 --last-lr 0 --metric loss $common --out rotary
        "$qkv" train classify --train labels.tsv --valid labels.valid.tsv --tokens words --ngrams 0 --vocab 900 $shape --pre-norm \
            --positions sinusoid --activation gelu --label-smoothing 0.1 --schedule linear --warmup 20 --lr 0.002 --last-lr 0 \
            $common --out classifier
        "$qkv" train generate --train lines.txt --valid lines.valid.txt --documents lines --tokens characters $shape --pre-norm \
            --positions learned --longest 64 --context 64 --activation gelu-tanh --schedule cosine --warmup 20 --lr 0.002 \
            --last-lr 0.0001 $common --out generator
        "$qkv" train mask --train lines.txt --valid lines.valid.txt --documents lines --tokens bpe --vocab 600 $shape --pre-norm --no-head \
            --no-output-bias --positions rotary --activation silu --rate 0.2 --schedule constant --warmup 10 --lr 0.001 $common --out encoder
    } 2>err || { cat err >&2; return 1; }
}

# Ends the subshell it is called in when the command fails.
say() { "$qkv" "$@" || exit 1; }

uses() {
    for name in translator rotary; do
        say translate -m $name --input source.txt --beam 4 --length-penalty 0.6 --n-best 3 >$name.beam4
    done
    say score --ref target.txt --hyp target.txt --tokenize zh >target.score
    say forward -m translator --source "I love you" --target "我爱你" --logits translator.logits.npy >/dev/null
    say forward -m rotary --source "I love you" --target "我爱你" --logits rotary.logits.npy >/dev/null
    say classify -m classifier --input source.txt >classifier.out
    say generate -m generator -p "The " -n 50 --temp 0 >generator.greedy
    say generate -m generator -p "The old " -n 50 --temp 0.9 --top-k 20 --top-p 0.95 --seed 3 >generator.sampled
    say perplexity -m generator --input lines.valid.txt --documents lines --context 32 --stride 16 >generator.perplexity
    say embed -m encoder --input source.txt --out encoder.npy
}

prepare() {
    "$qkv" example translate --out made && "$qkv" example classify --out kinds && "$qkv" example generate --out lines || return 1
    head -n 1500 made/train.tsv >pairs.tsv && head -n 60 made/valid.tsv >pairs.valid.tsv
    head -n 40 made/test.tsv | cut -f1 >source.txt && head -n 40 made/test.tsv | cut -f2 >target.txt
    head -n 1500 kinds/train.tsv >labels.tsv && head -n 100 kinds/valid.tsv >labels.valid.tsv
    head -n 1500 lines/train.txt >lines.txt && head -n 60 lines/valid.txt >lines.valid.txt
}

results="translator/model.safetensors rotary/model.safetensors classifier/model.safetensors generator/model.safetensors
    encoder/model.safetensors translator.beam4 rotary.beam4 target.score translator.logits.npy rotary.logits.npy classifier.out
    generator.greedy generator.sampled generator.perplexity encoder.npy"

cd "$folder" || exit 1
prepare 2>err || { not_ok "text to train on" "$(cat err)"; finish; exit; }
for isa in baseline avx2 avx512; do
    "$qkv" info 2>/dev/null | grep -qw "$isa" || continue
    wanted=$([ -n "${RECORD:-}" ] || grep "^$isa $compiler " "$golden" | grep -v " demo/") # those are of demo.sh
    if [ -z "$wanted" ] && [ -z "${RECORD:-}" ]; then
        skipped "the bytes of $isa: none were recorded for $compiler"
        continue
    fi
    rm -rf translator rotary classifier generator encoder
    QKV_ISA=$isa
    export QKV_ISA
    if ! said=$(trainings 2>&1 && uses 2>&1); then not_ok "$isa: runs" "$said"; continue; fi
    # shellcheck disable=SC2086
    sums $results >got
    if [ -n "${RECORD:-}" ]; then cat got; continue; fi
    while read -r line; do
        name=${line% *} && name=${name##* }
        same "$isa: $name" "$line" "$(grep " $name " got)"
    done <<END
$wanted
END
done
finish
