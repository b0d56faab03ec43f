#!/bin/sh
# quantize.sh: weights in 8 and 4 bits, as a user types it. usage: quantize.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n the dog and the cat\n' >corpus
: >in
for kind in pair decoder encoder scoring-encoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done

# ---- a folder that was written is what --int8 and --int4 make ----
for bits in 8 4; do
    for kind in pair decoder encoder; do
        check "$kind in $bits bits" run 0 "wrote $kind$bits" quantize $kind $kind$bits --int$bits
    done
    check "perplexity, made at load" run 0 "" perplexity -m decoder corpus --int$bits
    cp out made
    check "and as it lies" run 0 "" perplexity -m decoder$bits corpus
    check "is the same" cmp out made
    check "but not that of floats" sh -c '! "$1" perplexity -m decoder corpus | cmp -s - made' sh "$qkv"
    check "a translation" run 0 "" translate -m pair --int$bits "the cat sat" "I love you" --json
    cp out made
    for threads in 1 2 4; do
        check "with -t $threads" run 0 "" translate -m pair$bits "the cat sat" "I love you" --json -t $threads
        check "the same" cmp out made
    done
    check "info" run 0 "" info pair$bits
    contains "tells" "$(cat out)" "weights         int$bits"
    check "as JSON" run 0 "" info pair$bits --json
    contains "tells too" "$(cat out)" "\"bits\": $bits"
    check "config.json" grep -q '"quantization_config"' pair$bits/config.json
done
check "4 bits are smaller than 8" [ "$(wc -c <pair4/model.safetensors)" -lt "$(wc -c <pair8/model.safetensors)" ]
for command in "generate -p the" "perplexity corpus" "forward --target-ids 5,6" "attend the"; do
    # shellcheck disable=SC2086
    check "$command" run 0 "" $command -m decoder --int8
done
for command in "embed text" "similar --corpus corpus text"; do
    # shellcheck disable=SC2086
    check "$command" run 0 "" $command -m encoder --int4
    check "$command" run 0 "" $command -m encoder --bf16
done
check "classify" run 0 "" classify -m scoring-encoder --int8 text

# ---- what it costs ----
check "of a translator" run 0 "" quantize pair cost1 --int8 --texts corpus --references corpus --quiet
contains "is BLEU" "$(cat out)" "texts            6" "BLEU             " " -> " "BLEU between" "same"
check "of a language model" run 0 "" quantize decoder cost2 --int4 --texts corpus --quiet --json
contains "is perplexity" "$(cat out)" '{"texts": 6, "perplexity": ['
check "of an encoder" run 0 "" quantize encoder cost3 --int8 --texts corpus --quiet
contains "is a cosine" "$(cat out)" "cosine           0.999" "smallest cosine  0.999"
check "of a classifier" run 0 "" quantize scoring-encoder cost4 --int8 --texts corpus --quiet
contains "is how many stay" "$(cat out)" "same             1.0000"

# ---- refused ----
names="quantize: "
refused "neither" 2 "--int8 or --int4 is missing" quantize pair x
refused "both" 2 "--int8, --int4 and --bf16: choose one" quantize pair x --int8 --int4
refused "a folder with a model" 2 "holds a model already" quantize pair decoder --int8
refused "twice" 5 "kept in 8 bits already" quantize pair8 x --int4
refused "references alone" 2 "--references needs --texts" quantize pair x --int8 --references corpus
printf 'one\n' >short
refused "other lines" 4 "corpus has 6 lines, short has 1" quantize pair x --int8 --texts corpus --references short
names="train translate: "
refused "training" 5 "8 bits, which cannot be trained" train translate --from pair8 --train corpus corpus --out trained
names="average: "
refused "averaging" 5 "cannot be trained" average --models decoder8 --out mean
finish
