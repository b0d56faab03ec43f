#!/bin/sh
# generate.sh: qkv generate, as a user types it. usage: generate.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
for kind in pair decoder learned-decoder ids-decoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done

names="generate: "
: >in
model="generate -m decoder"
# shellcheck disable=SC2086
{
# ---- one prompt ----
check "greedy" run 0 "" $model -p "the cat" -n 12
cp out greedy
contains "starts with the prompt" "$(cat out)" "the cat"
check "--temp 0 is the default" run 0 "" $model --prompt "the cat" --max-tokens 12 --temp 0
check "and changes nothing" cmp out greedy
check "--no-echo" run 0 "" $model -p "the cat" -n 12 --no-echo
same "leaves the prompt out" "$(cat greedy)" "the cat$(cat out)"
check "a seed" run 0 "" $model -p "the cat" -n 30 --seed 5
cp out drawn
check "draws" sh -c '! cmp -s drawn greedy'
for threads in 1 2 4; do
    check "with -t $threads" run 0 "" $model -p "the cat" -n 30 --seed 5 -t $threads
    check "the same bytes" cmp out drawn
done
check "another seed" run 0 "" $model -p "the cat" -n 30 --seed 6
check "draws another text" sh -c '! cmp -s out drawn'
check "--top-k 1" run 0 "" $model -p "the cat" -n 12 --top-k 1 --seed 5
check "is greedy" cmp out greedy
check "--samples" run 0 "" $model -p "the cat" -n 30 --seed 5 --samples 3
check "gives that many" [ "$(grep -ac '^---$' out)" = 2 ]
same "the first is that of one sample" "$(cat drawn)" "$(head -c "$(wc -c <drawn)" out)"
check "an empty prompt" run 0 "" $model -p "" -n 5
check "gives text" grep -q . out
check "the output is UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null drawn

# ---- JSON ----
check "--json" run 0 "" $model -p 'a "b"' -n 6 --json --samples 2
same "an object a sample" 2 "$(wc -l <out)"
contains "has all of it" "$(tail -n 1 out)" '{"sample": 1, "prompt": "a \"b\""' '"text": "' '"tokens": ["' '"ids": [' '"log_p": [-' '"finish": "'
if command -v python3 >/dev/null; then
    check "a JSON parser reads it" python3 -c '
import json
for line in open("out", encoding="utf-8"):
    o = json.loads(line)
    assert len(o["tokens"]) == len(o["ids"]) == len(o["log_p"]) <= 6 and all(p <= 0 for p in o["log_p"])
    assert o["finish"] == ("length" if len(o["ids"]) == 6 else "end")'
else skipped "a JSON parser reads it"; fi

# ---- stop strings ----
stop=$("$qkv" $model -p "the cat" -n 12 --no-echo | sed -n '1s/^..\(..\).*/\1/p')
check "--stop" run 0 "" $model -p "the cat" -n 12 --no-echo --stop "no such text" "$stop"
whole=$("$qkv" $model -p "the cat" -n 12 --no-echo)
same "ends before it" "${whole%%"$stop"*}" "$(cat out)"
check "--stop in JSON" run 0 "" $model -p "the cat" -n 12 --json --stop "$stop"
contains "is told" "$(cat out)" '"finish": "stop"'

# ---- lines ----
printf 'the cat\n\nI love you\r\na\\b' >in
check "prompts from standard input" run 0 "" $model -n 12
same "one line in, one line out" 4 "$(wc -l <out)"
contains "each starts with its prompt" "$(tr '\n' '@' <out)" "@I love you" '@a\\b'
same "a line is what the prompt alone gives" "$(sed 's/\\/\\\\/g' greedy | tr '\n' '@' | sed 's/@$//; s/@/\\n/g')" "$(head -n 1 out)"
check "other lines beside it" run 0 "" $model -n 12 --samples 2 --seed 3
check "samples of each line in order" [ "$(wc -l <out)" = 8 ]
sed -n 5,6p out >wanted
printf 'I love you\n' >in
check "change nothing" run 0 "" $model -n 12 --samples 2 --seed 3
check "of it" cmp out wanted
check "JSON of lines" run 0 "" $model -n 3 --json
contains "has their number" "$(cat out)" '{"line": 1, "sample": 0, "prompt": "I love you"'
printf '\357\273\277I love you\n' >in
check "a byte order mark" run 0 "" $model -n 3 --json
contains "is no part of the prompt" "$(cat out)" '"prompt": "I love you"'
printf 'I\nb\377d\nI love you\n' >in
check "a line that is not UTF-8 is refused" run 4 "qkv: generate: line 2: the prompt is not UTF-8 at byte 2" $model -n 3
same "an empty line stands for it, the rest goes on" "3 2" "$(wc -l <out) $(grep -ac '^I' out)"
printf 'zzzzzzzzzzzzzzzzz\nI\n' >in
check "positions that end" run 6 "line 1: a prompt of 18 tokens, <s> counted, leaves no room: the model's positions end at 12" generate -m learned-decoder
same "let the rest go on" "2 I" "$(wc -l <out) $(tail -n 1 out | head -c 1)"
check "in JSON" run 6 "line 1" generate -m learned-decoder --json
contains "there is an error" "$(head -n 1 out)" '{"line": 1, "error": "a prompt of 18 tokens'
: >in
check "nothing in" run 0 "" $model
same "nothing out" 0 "$(wc -c <out)"
mkfifo pipe answers
"$qkv" $model -n 4 <pipe >answers 2>err &
exec 3>pipe 4<answers
echo 'the cat' >&3
read -r answer <&4
contains "each line is answered before the next comes" "$answer" "the cat"
exec 3>&- 4<&-
wait

# ---- bad input ----
refused "a prompt longer than the positions" 6 "positions end at 12" generate -m learned-decoder -p zzzzzzzzzzzzzzzzz
refused "a prompt that is not UTF-8" 4 "not UTF-8 at byte 1" $model -p "$(printf '\377')"
refused "no model" 2 "--model is missing" generate -p a
refused "a model that is not there" 3 "none: there is no such folder" generate -m none -p a
refused "a model without tokenizer" 2 "no tokenizer" generate -m ids-decoder -p a
refused "a model with an encoder" 5 'pair: the model has no head for "generate": it can translate' generate -m pair -p a
refused "a top-p of 0" 2 "--top-p 0: it must be above 0" $model -p a --top-p 0
refused "a top-p of 2" 2 "--top-p 2" $model -p a --top-p 2
refused "a top-p that is no number" 2 "--top-p" $model -p a --top-p nan
refused "a negative temperature" 2 "--temp -1: it must be at least 0" $model -p a --temp=-1
refused "a min-p of 1.5" 2 "--min-p 1.5" $model -p a --min-p 1.5
refused "a repetition penalty of 0" 2 "--repetition-penalty 0" $model -p a --repetition-penalty 0
refused "a top-k of 0" 2 "--top-k" $model -p a --top-k 0
refused "no tokens" 2 "--max-tokens" $model -p a -n 0
refused "too many tokens" 2 "max_tokens is 2000000" $model -p a -n 2000000
refused "an empty stop string" 2 "--stop: its value is empty" $model -p a --stop ""
refused "a stop string that is not UTF-8" 2 "stop string 1 is not UTF-8" $model -p a --stop "$(printf '\377')"
"$qkv" $model <. >/dev/null 2>err
same "a folder for input" 3 $?
if [ -e /dev/full ]; then
    "$qkv" $model -p a >/dev/full 2>err
    same "a full disk" 3 $?
    same "is told once" 1 "$(grep -c 'cannot write' err)"
fi
}
contains "qkv generate --help" "$("$qkv" generate --help --all)" --prompt --max-tokens --temp --top-k --top-p --min-p \
    --repetition-penalty --no-repeat-ngram --stop --seed --samples --no-echo --json
finish
