#!/bin/sh
# bench.sh: qkv bench, as a user types it. No time is judged. usage: bench.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS
names="bench: "
: >in
printf 'the cat sat on the mat\nI love you\nthe dog and the cat\n' >corpus
for kind in pair encoder decoder ids; do check "a model: $kind" "$make_model" $kind $kind corpus; done

check "one kind" run 0 "" bench matmul --batch 1 --repeat 1 --quick -t 1
contains "is a table under the machine's line" "$(cat out)" ", 1 thread: " "Gop/s in multiply-adds" "of the peak" "1 x 512 x 512 "
check "a model that translates" run 0 "" bench -m pair --batch 2 --length 4 --new 3 --repeat 1 -t 1
contains "is measured at that" "$(cat out)" "model, 2 sentences, beam 1, 4 to 3" "model, 2 sentences, beam 4, 4 to 3"
check "one that embeds" run 0 "" bench -m encoder --batch 2 --length 4 --repeat 1 -t 1
contains "at that" "$(cat out)" "model, 2 sentences of "
check "one that generates" run 0 "" bench -m decoder --batch 1 --length 4 --new 3 --repeat 2 --json -t 2
same "an object a line" 2 "$(grep -c '^{"bench": "generate", .*"threads": 2, "samples": 2, .*}$' out)"
contains "with all of it" "$(cat out)" '"unit": "tokens"' '"per_second": {"best": ' '"share_of_bandwidth": ' '"packed": '
check "one without tokenizer" run 0 "" bench translate -m ids --batch 1 --beam 1 --length 4 --new 3 --repeat 1

refused "another kind" 2 matmul bench nothing
refused "a model where none is needed" 2 "train needs no model" bench train -m pair
refused "a beam where there is none" 2 "matmul has no beam" bench matmul --beam 4 --quick
refused "new tokens where there are none" 2 "embed writes no tokens" bench embed -m encoder --new 4
refused "a model that cannot" 2 "a decoder alone" bench generate -m pair
refused "too many samples" 2 "at most 512 samples" bench matmul --repeat 1000
refused "a folder that is no model's" 3 "no config.json" bench -m . --json
QKV_ISA=none
export QKV_ISA
refused "an instruction set that there is not" 5 "QKV_ISA" bench matmul
finish
