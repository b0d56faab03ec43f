#!/bin/sh
# touch.sh: changes of a model, qkv lens and qkv why, as a user types them. usage: touch.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\nthe dog and the cat\n' >corpus
for kind in pair decoder scoring-encoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done

weights() { "$qkv" attend -m pair "I love you" --target "the cat" --kind cross --layer 0 --head 0 --json --quiet "$@"; }
weights >plain.json
weights --edit-row 0.0.1=0.5,0.25 >edited.json
contains "a row that was edited" "$(cat edited.json)" "[0.5, 0.25, 0"
weights --without-head 1.1 >later.json
check "a head of a later layer changes no earlier map" cmp plain.json later.json
weights --without-head encoder:0.1 >earlier.json
check "one of the encoder does" test "$(cat plain.json)" != "$(cat earlier.json)"
printf 'I\nI love you and the cat\n' >lines
for change in "--hide-key 4" "--swap-values encoder:0=4" "--zero-value encoder:4" "--edit-row encoder:0.0.4=1"; do
    "$qkv" translate -m pair -i lines --json --quiet $change >together.json
    "$qkv" translate -m pair -i lines --json --quiet --batch 1 $change >alone.json
    check "what a text does not have changes nothing, whatever stands beside it: $change" cmp together.json alone.json
done
lens() { "$qkv" lens -m pair "I love you" --target "the cat" --json "$@"; }
lens >plain.json
for change in "--without-head 0.1" "--without-layer 1" "--hide-key 1" "--move 1=3" "--swap-values 0=2" "--zero-value 1"; do
    lens $change >changed.json
    check "lens $change" test "$(cat plain.json)" != "$(cat changed.json)"
done
contains "lens as a table" "$("$qkv" lens -m decoder "the cat sat")" "embedding" "layer 1" "bits"
contains "why of a class" "$("$qkv" why -m scoring-encoder "the cat sat" --class relevance)" 'output "relevance" (number 0)' "value-zeroing"
contains "why of a token" "$("$qkv" why -m pair "I love you" --target "the cat" --at 1 --json)" '"source": [' '"rollout": '
contains "one method" "$("$qkv" why -m decoder "the cat sat" --method gradient)" "gradient"
for change in "--without-head 1.9" "--without-head 1" "--hide-key x" "--edit-row 0.0.1=-1"; do
    check "attend $change is refused" test "$(weights $change >out 2>err; echo $?)" = 2
done
"$qkv" lens -m decoder "the cat" --json >lens.json
contains "nothing comes behind the last token" "$(cat lens.json)" '"next": ["the", " cat", null]' '"next_p": null'
same "and surprises nobody" 1 "$(grep -c '"surprise": .*[0-9], null\],' lens.json)"
same "one method has no baseline" 0 "$("$qkv" why -m decoder "the cat" --method gradient --json | grep -c baseline_logit)"
same "integrated gradients have one" 1 "$("$qkv" why -m decoder "the cat" --method integrated --json | grep -c baseline_logit)"
: >in
names=why
refused "a place of a classifier" 2 "--at: scoring-encoder has no decoder" why -m scoring-encoder cat --at 1
names=
check "a class that is not there" test "$("$qkv" why -m scoring-encoder cat --class other >out 2>err; echo $?)" = 2
finish
