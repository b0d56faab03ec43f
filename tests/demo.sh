#!/bin/sh
# demo.sh: make demo keeps its word: it trains, and gets sentences right that it has never seen. usage: demo.sh ROOT BUILD COMPILER
. "$(dirname "$0")/cases.sh"
root=$(realpath "$1") build=$(realpath "$2")
export LC_ALL=C.UTF-8
check "the demo runs" sh -c "\"$root/tools/demo\" \"$build\" \"$folder/demo\" >\"$folder/said\" 2>&1"
cd "$folder/demo" || exit 1
right=$(paste test.zh test.out | awk -F '\t' '{ n += $1 == $2 } END { print n }')
check "at least 95% of 500 unseen sentences are exactly right: $right" test "$right" -ge 475
same "the three named ones are" "$(head -3 test.zh)" "$(head -3 test.out)"
same "none of them was trained on" "" "$(cut -f1 data/train.tsv | grep -xF -f test.en)"
same "\"I love you\" is aligned" "我爱你 ||| 0-0 1-1 2-2" "$(echo "I love you" | "$build/app/qkv" translate -m model --alignment)"
same "its picture is a PNG" "89 50 4e 47" "$(od -An -tx1 -N4 attention.png | sed 's/^ //')"
contains "its drawing names the tokens of both languages" "$(cat heads.svg)" ">cat<" ">猫<"
same "and has a font for all of them" "" "$(grep -o 'No font here can draw[^<]*' heads.svg)"
contains "its page has every head in it" "$(cat attention.html)" '"cross/1/3":' '"encoder/rollout":'
if [ -e "$build/wasm/engine.wasm.gz" ]; then
    contains "the model is in a page" "$(head -c 3000 live.html)" "<!DOCTYPE html>" "connect-src 'none'"
    check "of less than 3 MB" test "$(wc -c <live.html)" -lt 3000000
else contains "without an engine that is said" "$(cat ../said)" "make wasm"; fi
contains "the demo says where things are" "$(cat ../said)" "█" "demo/model" "demo/data" "exactly right"
isa=$("$build/app/qkv" info | sed -n 's/^instruction set *//p')
case $isa in avx_vnni) isa=avx2 ;; avx512_vnni | avx512_bf16 | amx) isa=avx512 ;; neon_dot) isa=neon ;; esac # floats are theirs
case $isa in avx512) # on which README.md was written: others round some weight otherwise
    same "README.md has its heatmap" \
        "$(sed -n '/--heatmap "I love you"$/,/blank to/ { s/^    //; /^\$/d; p }' "$root/README.md")" \
        "$("$build/app/qkv" translate -m model --heatmap "I love you" | sed 's/ *$//')" ;;
esac
for name in model/model.safetensors test.out; do
    wanted=$(grep "^$isa $3 demo/$name " "$root/tests/golden/bytes.txt")
    if [ -z "$wanted" ]; then skipped "the bytes of demo/$name: none were recorded for $isa, $3"
    else same "the bytes of demo/$name are the same as ever" "${wanted##* }" "$(sha256sum <"$name" | sed 's/ .*//')"; fi
done
finish
