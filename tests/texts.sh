#!/bin/sh
# texts.sh: texts among the arguments, --input and --out, of every command that has them. usage: texts.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n the dog and the cat\n' >corpus
for kind in pair encoder decoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done
small="--dim 8 --heads 2 --layers 1 --inner 16 --vocab 280 --max-tokens 32 --steps 1 --quiet"
printf 'pos\tI love you\nneg\tthe cat sat\npos\tyou love the cat\nneg\tthe mat\n' >labelled.tsv
# shellcheck disable=SC2086
{
check "a classifier" "$qkv" train classify --train labelled.tsv $small --out classifier
check "an encoder of masked words" "$qkv" train mask --train corpus $small --out masked
}
printf '5 6 7\n8\n' >ids
printf 'the <mask> sat\na <mask>\n' >masks
printf 'I love you\nthe cat\n' >lines

# ---- the same texts in three ways ----
each_way() { # each_way LINES COMMAND OPTIONS...: lines of standard input, of --input and arguments give the same
    from=$1 command=$2
    shift 2
    first=$(sed -n 1p "$from") second=$(sed -n 2p "$from")
    "$qkv" "$command" "$@" <"$from" >wanted 2>err || cat err
    check "$command prints" test -s wanted
    same "$command -i" "$(cat wanted)" "$("$qkv" "$command" "$@" -i "$from" 2>&1 </dev/null)"
    same "$command --input" "$(cat wanted)" "$("$qkv" "$command" "$@" --input "$from" 2>&1 </dev/null)"
    same "$command --input - is standard input" "$(cat wanted)" "$("$qkv" "$command" "$@" --input - <"$from" 2>&1)"
    same "$command takes texts" "$(cat wanted)" "$("$qkv" "$command" "$@" "$first" "$second" </dev/null 2>&1)"
    same "$command takes them anywhere" "$(cat wanted)" "$("$qkv" "$command" "$first" "$@" "$second" </dev/null 2>&1)"
    same "$command takes them after --" "$(cat wanted)" "$("$qkv" "$command" "$@" -- "$first" "$second" </dev/null 2>&1)"
    refused "$command takes them or --input" 2 "a text and --input: choose one" "$command" "$@" "$first" -i "$from"
}
each_out() { # each_out COMMAND ARGUMENTS...: what is printed is also written
    command=$1
    "$qkv" "$@" <lines >wanted 2>err
    for option in -o --out --output; do
        rm -f file
        same "$command $option prints nothing" "" "$("$qkv" "$@" $option file <lines 2>&1)"
        check "$command $option writes the same" cmp wanted file
    done
    same "$command -o - prints" "$(cat wanted)" "$("$qkv" "$@" -o - <lines 2>&1)"
    refused "$command -o into a folder that is not there" 3 "no/file: cannot write" "$@" -o no/file
}
cp lines in
each_way lines translate -m pair --max-length 6
each_way lines classify -m classifier
each_way lines embed -m encoder
each_way lines similar -m encoder --corpus corpus
each_way lines tokenize -m pair
each_way ids detokenize -m pair --ids
each_way masks fill -m masked
each_out translate -m pair --max-length 6
each_out classify -m classifier
each_out classify -m classifier --eval labelled.tsv
each_out similar -m encoder --corpus corpus
each_out tokenize -m pair
each_out detokenize -m pair --ids 5 6
each_out fill -m masked "the <mask> sat"
each_out generate -m decoder -n 4
each_out perplexity -m decoder corpus
each_out score --ref lines --hyp lines
each_out info
each_out info pair
each_out explain
each_out line
same "embed --output" "0" "$("$qkv" embed -m encoder --quiet --output v.npy "a text" && test -s v.npy; echo $?)"
same "score -i is --hyp" "$("$qkv" score --ref lines --hyp lines)" "$("$qkv" score --ref lines -i lines)"

# ---- texts as they are ----
generate="generate -m decoder -n 4"
# shellcheck disable=SC2086
{
"$qkv" $generate -p "I love" >wanted
same "a text is a prompt" "$(cat wanted)" "$("$qkv" $generate "I love" </dev/null)"
same "several are told apart" "$(cat wanted)
---
$("$qkv" $generate -p "$(printf 'the\ncat')")" "$("$qkv" $generate "I love" "$(printf 'the\ncat')" </dev/null)"
same "lines of --input" "$("$qkv" $generate <lines)" "$("$qkv" $generate -i lines)"
refused "a prompt and a text" 2 "--prompt and other texts: choose one" $generate -p x y
}
translate="translate -m pair --max-length 6"
# shellcheck disable=SC2086
{
same "an empty text is an empty line" "" "$("$qkv" $translate "" </dev/null)"
same "a text of two lines is two" "$("$qkv" $translate <lines)" "$("$qkv" $translate "$(cat lines)" </dev/null)"
same "a text may start with a dash" "$(echo '-I love' | "$qkv" $translate)" "$("$qkv" $translate -- "-I love" </dev/null)"
check "a text that names a file" run 0 "\"lines\" is taken as a text, but is a file too: \"--input lines\" reads it" $translate lines
same "is a text" "$(echo lines | "$qkv" $translate)" "$(cat out)"
check "which --quiet does not tell" run 0 "" $translate lines --quiet
check "nor is it told of a folder" run 0 "" $translate pair
check "attend tells of it" run 0 "\"--input lines\" reads it" attend -m pair lines
refused "a second text for attend" 2 'unexpected argument "love": put quotes around' attend -m pair I love
refused "an argument that is no text" 2 'unexpected argument "x": see "qkv score --help"' score --ref lines x
refused "nor named" 2 'unexpected argument "lines": did you mean "--ref lines"?' score lines lines
refused "a value of an option that is missing" 2 'unexpected argument "lines": did you mean "--train lines"?' train classify lines --out no
refused "a model without -m" 2 '--model is missing: did you mean "-m pair"?' translate pair "I love you"
refused "texts and --eval" 2 "texts and --eval: choose one" classify -m classifier --eval labelled.tsv "a text"

# ---- a file is written when all is ready ----
cp lines kept
refused "the file that is read" 2 "--out kept is the file that is read" $translate -i kept -o kept
"$qkv" $translate <kept -o kept 2>err
same "or stands at standard input" 2 $?
refused "a model that is not there" 3 "none" translate -m none -o kept "a text"
refused "an option that is wrong" 2 "--n-best 3 needs" $translate --beam 2 --n-best 3 -o kept "a text"
check "it is as it was" cmp lines kept
{ tr '\n' ' ' <corpus; echo; cat lines; } >in
check "a line that is refused" run 6 "line 1 has" $translate --max-source 20 -o file
same "leaves the others" 3 "$(wc -l <file)"
said=$(trap '' XFSZ; ulimit -f 0; "$qkv" $translate -o file "I love you" 2>&1; echo "status $?")
contains "a file that cannot grow" "$said" "cannot write to file: " "status 3"
}
finish
