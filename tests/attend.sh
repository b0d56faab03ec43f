#!/bin/sh
# attend.sh: qkv attend, as a user types it. usage: attend.sh QKV MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
printf 'other words here\nother words there\nsome other words here and there\nsome of them\n' >words
for kind in pair encoder decoder learned ids; do check "a model: $kind" "$make_model" $kind $kind corpus; done
check "a model of other words" "$make_model" foreign pair words
: >in

rows_of_json() { sed -n 's/^  \[\([^]]*\)\].*/\1/p' "$1" | tr -d ' '; }
# sums_to_1 FILE: every line of numbers with commas does.
sums_to_1() {
    awk -F, '{ sum = 0; for (i = 1; i <= NF; i++) sum += $i; if (sum < 0.99999 || sum > 1.00001) exit 1 } END { exit !NR }' "$1"
}
png_size() { od -An -tu1 -j16 -N8 "$1" | awk '{ print ($1 * 256 + $2) * 65536 + $3 * 256 + $4, ($5 * 256 + $6) * 65536 + $7 * 256 + $8 }'; }
# is_between LOW HIGH NUMBERS...
is_between() { echo "$@" | awk '{ for (i = 3; i <= NF; i++) if ($i < $1 || $i > $2) exit 1; exit NF < 3 }'; }
is_png() { [ "$(od -An -tx1 -N8 "$1" | tr -d ' ')" = 89504e470d0a1a0a ]; }

# ---- the translation stays as it is ----
i=0
for text in 'I love you' '猫坐在垫子上' 'you love the cat'; do
    i=$((i + 1))
    printf '%s\n' "$text" >in
    for beam in 1 4; do
        "$qkv" translate -m pair --beam $beam --n-best 1 <in >wanted
        check "attend \"$text\" --beam $beam" run 0 "" attend -m pair "$text" --beam $beam -o "beam$i.svg" --quiet
        check "and tells" run 0 "the translation is" attend -m pair "$text" --beam $beam --json
        same "the translation and score that qkv translate gives" "$(cat wanted)" \
            "$(sed -n 's/^qkv: attend: the translation is "\(.*\)", score \(.*\)$/0 ||| \1 ||| \2/p' err)"
        "$qkv" translate -m pair --beam $beam --n-best 1 <in >after
        check "which stays as it was" cmp wanted after
    done
done
printf 'you love the cat\n' >in
"$qkv" translate -m pair --json --alignment <in >translated
check "the mean over layers and heads" run 0 "" attend -m pair 'you love the cat' --layer mean --pieces --json --quiet
sed 's/.*"attention": \[\[//; s/\]\].*//; s/\], \[/\n/g; s/ //g' translated | tr , '\n' >wanted
rows_of_json out | tr , '\n' >got
check "is the attention of qkv translate" sh -c 'paste wanted got | awk "NF != 2 || \$1 - \$2 > 1e-7 || \$2 - \$1 > 1e-7 { exit 1 }"'
check "of many numbers" [ "$(wc -l <wanted)" -gt 100 ]

# ---- text in ----
printf 'I love you\n' >in
check "from standard input" run 0 "" attend -m pair --json --quiet
cp out from_in
check "from a file" run 0 "" attend -m pair --input in --json --quiet
check "the same" cmp out from_in
check "as an argument" run 0 "" attend -m pair 'I love you' --json --quiet
check "the same again" cmp out from_in
contains "with both axes, kind, layer and head" "$(cat out)" '"kind": "cross"' '"layer": 1' '"head": "mean"' \
    '"keys": ["I", " love", " ", "you", "</s>"]' '"queries": [' '"weights": ['
check "--target" run 0 "" attend -m pair 'I love you' --target '我爱狗' --json
contains "is shown, its pieces joined" "$(cat out)" '"queries": ["我爱", "狗", "</s>"]'
check "--pieces" run 0 "" attend -m pair 'I love you' --target '我爱狗' --json --pieces
contains "are shown one by one" "$(cat out)" '"\\xE7", "\\x8B", "\\x97", "</s>"'
check "--no-special" run 0 "" attend -m pair 'I love you' --target '我爱狗' --json --no-special
contains "leaves </s> out" "$(cat out)" '"queries": ["我爱", "狗"],' '"keys": ["I", " love", " ", "you"],'
for threads in 1 2 4; do
    check "with -t $threads" run 0 "" attend -m pair 'I love you' --json --quiet -t $threads
    check "the same bytes" cmp out from_in
done

# ---- kinds of models ----
check "an encoder alone" run 0 "" attend -m encoder 'I love you' --head 1 --json
contains "reads as classification does" "$(cat out)" '"kind": "encoder", "layer": 0, "head": 1' '"queries": ["<s>", "I", " love", " ", "you", "</s>"]'
check "a decoder alone" run 0 "" attend -m decoder 'I love' --target ' you' --head 0 --json
contains "reads one text" "$(cat out)" '"kind": "decoder", "layer": 1, "head": 0' '"keys": ["<s>", "I", " love", " ", "you"]'
same "and nothing attends to what comes later" "0,0,0,0" "$(rows_of_json out | sed -n 1p | cut -d, -f2-)"
check "the encoder of a translator" run 0 "" attend -m pair 'I love you' --target x --kind encoder --json
contains "has its own" "$(cat out)" '"kind": "encoder", "layer": 0'
check "the decoder of a translator" run 0 "" attend -m pair 'I love you' --target x --kind decoder --layer 0 --json
contains "reads <s> first" "$(cat out)" '"kind": "decoder", "layer": 0' '"queries": ["<s>", "x"]'
check "--rollout" run 0 "" attend -m pair 'I love you' --target x --rollout --json
contains "is of the encoder unless told" "$(cat out)" '"kind": "encoder", "layer": "rollout"'
rows_of_json out >rolled
check "rows of rollout sum to 1" sums_to_1 rolled
check "--rollout of the decoder" run 0 "" attend -m pair 'I love you' --target x --rollout --kind decoder --json

# ---- files ----
all="attend -m pair --target 我爱狗 --quiet"
# shellcheck disable=SC2086
{
for ending in png svg pdf csv json PNG; do
    check "-o out.$ending" run 0 "" $all 'I love you' -o "map.$ending"
    same "prints nothing" 0 "$(wc -c <out)"
done
check "a PNG" is_png map.png
check "a PNG by the ending in capitals" is_png map.PNG
# shellcheck disable=SC2046
check "of a size for people" is_between 200 4000 $(png_size map.png)
same "a PDF" "%PDF" "$(head -c 4 map.pdf)"
contains "an SVG with the tokens and axes" "$(cat map.svg)" "<svg" love 狗 "query (attending)" "key (attended)" "cross-attention, layer 1, mean of heads"
check "the caption has the name of the model" run 0 "" attend -m "$PWD/pair" "I love you" -o caption.svg --quiet
same "not its path" ">pair: I love you<" "$(grep -o ">[^<]*pair: I love you<" caption.svg)"
rows_of_json map.json >rows.json
tr -d '\r' <map.csv | tail -n +2 | cut -d, -f2- >rows.csv
check "CSV and JSON have the same numbers" cmp rows.json rows.csv
same "the header of CSV" ',I, love, ,you,</s>' "$(head -n 1 map.csv | tr -d '\r')"
same "a row a query" "我爱 狗 </s>" "$(tail -n +2 map.csv | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')"
check "and they sum to 1" sums_to_1 rows.csv
check "a text with commas, quotes and newlines" run 0 "" attend -m encoder "$(printf 'a,"b"\nc')" -o odd.csv --quiet
same "in the header of CSV" ',<s>,a,",","""",b,"""","|",c,</s>' "$(tr '\n' '|' <odd.csv | cut -d "$(printf '\r')" -f1)"
check "-o says what it wrote" run 0 "wrote map.png" attend -m pair --target x 'I love you' -o map.png
check "--head all" run 0 "" $all 'I love you' --layer 0 --head all -o heads.svg
contains "is a grid of heads" "$(cat heads.svg)" "cross-attention, layer 0, all heads" "head 0" "head 1"
check "--layer all" run 0 "" $all 'I love you' --layer all -o layers.svg
contains "is a grid of layers" "$(cat layers.svg)" "cross-attention, all layers, mean of heads" "layer 0" "layer 1"
check "both" run 0 "" $all 'I love you' --layer all --head all -o both.svg
contains "are a grid of all" "$(cat both.svg)" "cross-attention, all layers and heads" "layer 0, head 0" "layer 1, head 1"
check "several maps as JSON" run 0 "" $all 'I love you' --layer all --head all -o both.json
same "are an array" "4 [ ]" "$(grep -c '"kind": "cross", "layer": [01], "head": [01]' both.json) $(head -c 1 both.json) $(tail -c 2 both.json)"
check "several maps as CSV" run 0 "" $all 'I love you' --layer all --head all -o both.csv
same "say which they are" "layer,head,,I, love, ,you,</s> 12" "$(head -n 1 both.csv | tr -d '\r') $(grep -c '^[01],[01],' both.csv)"
rows_of_json both.json >rows.json
tr -d '\r' <both.csv | tail -n +2 | cut -d, -f4- >rows.csv
check "and have the same numbers" cmp rows.json rows.csv
if command -v python3 >/dev/null; then
    check "a JSON parser reads them" python3 -c '
import json
one, four = json.load(open("map.json", encoding="utf-8")), json.load(open("both.json", encoding="utf-8"))
assert len(four) == 4 and [(m["layer"], m["head"]) for m in four] == [(0, 0), (0, 1), (1, 0), (1, 1)]
for m in four + [one]:
    assert len(m["weights"]) == len(m["queries"]) and all(len(r) == len(m["keys"]) for r in m["weights"])
for i, row in enumerate(one["weights"]):
    for k, w in enumerate(row): assert abs(w - (four[2]["weights"][i][k] + four[3]["weights"][i][k]) / 2) < 1e-7'
else skipped "a JSON parser reads them"; fi
check "-o page.html" run 0 "" $all 'I love you' -o page.html
contains "is the explorer with the tokens in it" "$(cat page.html)" "<!DOCTYPE html>" 'id="qkv-data"' " love" 狗 '"overview"'

printf '\357\273\277I love you\n' >marked.txt
check "a text in a file" run 0 "" $all --input marked.txt -o marked.csv
check "without its byte order mark" cmp marked.csv map.csv
printf 'I\000 \000' >wide.txt
refused "UTF-16" 5 "wide.txt: it is UTF-16 without a byte order mark, not text in UTF-8: convert it first" $all --input wide.txt

# ---- in the terminal ----
check "without --out" run 0 "" $all 'I love you'
contains "a heatmap" "$(cat out)" "cross-attention, layer 1, mean of heads" love 狗 "</s>"
check "of several heads" run 0 "" $all 'I love you' --head all
contains "one after the other" "$(cat out)" "head 0" "head 1"

signs='0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&()*+,-./:;=?@[]^_' # each is a token
for tokens in 12 25 60; do
    some=$(printf %s "$signs" | head -c $((tokens - 2)))
    for columns in 80 40; do
        COLUMNS=$columns "$qkv" attend -m encoder "$some" >out
        check "$tokens tokens in $columns columns: no line is wider" [ "$(tail -n +2 out | wc -L)" -le $columns ]
        contains "every key has its name" "$(awk '/^ *<s>/ { printf "%s", before } { before = $0 }' out | tr -d ' ')" "$some"
        same "and every query" "$tokens" "$(awk '/^ *<s>/ { n = 0 } { n++ } /^ *<\/s> / { print n; exit }' out)"
    done
done
COLUMNS=40 "$qkv" attend -m encoder '我爱你猫坐在垫子上我爱你狗我爱你猫坐在垫子上狗a_rather_long_word' >out
check "wide characters count as two" [ "$(tail -n +2 out | wc -L)" -le 40 ]
if script -qec true /dev/null >/dev/null 2>&1; then
    in_terminal() { script -qec "stty cols 40; $1 '$qkv' attend -m encoder 'the cat sat on the mat'" /dev/null; }
    contains "a terminal shows colours" "$(in_terminal TERM=xterm)" "$(printf '\033[48;2;')"
    for without in TERM=dumb 'TERM=xterm NO_COLOR=1'; do
        same "$without shows none" 0 "$(in_terminal "$without" | grep -c "$(printf '\033')")"
    done
    check "and its width counts" [ "$(in_terminal TERM=dumb | tail -n +2 | tr -d '\r' | wc -L)" -le 40 ]
else skipped "a terminal"; fi

# ---- ranks ----
check "--rank" run 0 "" $all 'I love you' --rank
same "a line a head, and what the columns are" "5 layer head entropy diagonality first previous same next attends to" \
    "$(wc -l <out | tr -d ' ') $(head -n 1 out | tr -s ' ')"
check "the least entropy first" sh -c "tail -n +2 out | awk '{ print \$3 }' | sort -c -g"
column=4
for name in diagonality first previous same next; do
    check "--by $name" run 0 "" $all 'I love you' --rank --by $name
    check "the most first" sh -c "tail -n +2 out | awk '{ print \$$column }' | sort -c -g -r"
    column=$((column + 1))
done
contains "and says what each head does" "$(tail -n +2 out | sed 's/.*[0-9]  //' | sort -u)" token
tail -n +2 out | sed 's/\([0-9]\)  [a-z].*/\1/' | sort >table
check "--rank --json" run 0 "" $all 'I love you' --rank --json
same "has the same numbers" "$(cat table)" \
    "$(tr -d '{}]' <out | sed -n 's/^ "layer"/"layer"/p' | sed 's/"[a-z]*": //g; s/,$//' | tr -d , |
        awk '{ printf "%5d  %4d", $1, $2; for (i = 3; i <= 8; i++) printf "  %11.3f", $i; print "" }' | sort)"
check "--rank of the encoder" run 0 "" attend -m encoder 'I love you' --rank
same "a line a head" 3 "$(wc -l <out | tr -d ' ')"

# ---- two models ----
check "--diff with itself" run 0 "" $all 'I love you' --diff pair --json
same "is 0" "0" "$(rows_of_json out | tr , '\n' | sort -u)"
contains "and says what was subtracted" "$(cat out)" '"minus": "pair"'
cp -r pair twice
sed 's/"heads": 2/"heads": 4/' pair/config.json >twice/config.json
sed 's/"unscaled": false/"unscaled": true/' pair/config.json >other.json
cp -r pair other
mv other.json other/config.json
for m in pair other; do run 0 "" attend -m $m 'I love you' --target 我爱狗 --head 0 --json && rows_of_json out >$m.rows; done
check "--diff" run 0 "" $all 'I love you' --head 0 --diff other --json
rows_of_json out >diff.rows
same "is this model minus the other" "" "$(paste -d, pair.rows other.rows diff.rows | awk -F, '{
    n = NF / 3; for (i = 1; i <= n; i++) { d = $i - $(i + n) - $(i + 2 * n); if (d > 1e-6 || d < -1e-6) print } }')"
check "and not nothing" grep -q '[1-9]' diff.rows
check "--diff of a translation that was searched" run 0 "the translation is" attend -m pair 'I love you' --diff other --json
check "--diff as a picture" run 0 "" $all 'I love you' --diff other --head all -o diff.svg
contains "says so" "$(cat diff.svg)" "minus the other model's"
refused "--diff with other layers" 2 "encoder has 0: they cannot be compared" $all 'I love you' --diff encoder
refused "--diff with other heads" 2 "--diff: pair has 2 heads, twice has 4" $all 'I love you' --diff twice
refused "--diff with other tokens" 2 "they cannot be compared" $all 'I love you' --diff foreign
refused "--diff with a model that is not there" 3 "none: there is no such folder" $all 'I love you' --diff none
refused "--diff as a page" 2 "a page shows one model" $all 'I love you' --diff other -o page2.html

# ---- bad input ----
refused "no model" 2 "--model is missing" attend 'I love you'
refused "a model that is not there" 3 "none: there is no such folder" attend -m none x
refused "a model without tokenizer" 2 "no tokenizer" attend -m ids x
refused "an empty text" 2 "the text is empty" attend -m pair ''
refused "a text of white space" 2 "the text is empty" attend -m pair '  '
: >in
refused "an empty standard input" 2 "the text is empty" attend -m pair
refused "an input that is not there" 3 "none.txt" attend -m pair --input none.txt
refused "a folder for input" 3 "cannot read" attend -m pair --input pair
refused "a text and --input" 2 "choose one" attend -m pair x --input in
refused "two texts" 2 "unexpected argument" attend -m pair x y
refused "a target for an encoder" 2 "no target" attend -m encoder x --target y
refused "nothing left to show" 2 "nothing left" attend -m pair x --target '' --no-special
refused "a kind the model has not" 2 "no cross attention: it has encoder" attend -m encoder x --kind cross
refused "ranks of a kind the model has not" 2 "no decoder attention: it has encoder" attend -m encoder x --kind decoder --rank
refused "a kind that is none" 2 "--kind" attend -m pair x --kind self
refused "a layer that is not there" 2 "no layer 2: cross attention has layers 0 to 1" $all x --layer 2
refused "a head that is not there" 2 "no head 2: every layer has heads 0 to 1" $all x --head 2 -o none.png
refused "a layer that is no number" 2 '--layer "last": give a number from 0, "mean" or "all"' $all x --layer last
refused "a negative head" 2 '--head "-1"' $all x --head=-1
refused "a head beyond counting" 2 '--head "99999999999999999999"' $all x --head 99999999999999999999
refused "rollout of cross-attention" 2 "two sides" $all x --rollout --kind cross
refused "rollout of a layer" 2 "leave them out" $all x --rollout --layer 0
refused "--by without --rank" 2 "--by" $all x --by first
refused "--by something else" 2 "--by" $all x --rank --by size
refused "--rank as a file" 2 "--rank" $all x --rank -o rank.csv
refused "an unknown ending" 5 ".png, .svg, .pdf, .html, .csv or .json" $all x -o map.gif
refused "no ending" 5 ".png, .svg, .pdf, .html, .csv or .json" $all x -o map
refused "a folder that is not there" 3 "no/map.png: cannot write" $all x -o no/map.png
mkdir taken.csv taken.png
refused "a folder for a .csv" 3 "taken.csv: it is a folder" $all x -o taken.csv
refused "a folder for a .png" 3 "taken.png: it is a folder" $all x -o taken.png
same "and nothing is left behind" "" "$(find . -name "*tmp*")"
check "more tokens than positions" run 6 "has 13 tokens, the model has positions for 12" attend -m learned xxxxxxxxxxxx
printf 'b\377d' >in
check "bytes that are not UTF-8" run 0 "" attend -m encoder --input in --json
contains "are shown as U+FFFD" "$(cat out)" '"b", "�", "d"'
if [ -e /dev/full ]; then
    "$qkv" $all x --json >/dev/full 2>err
    same "a full disk" 3 $?
fi
}

# ---- links and pipes stay what they are ----
mkdir far
for ending in csv json svg html; do
    ln -s "far/map.$ending" "link.$ending"
    "$qkv" $all x -o "straight.$ending" && "$qkv" $all x -o "link.$ending" && "$qkv" $all x -o "link.$ending"
    check "a link to a .$ending file that is not there, and to one that is" \
        test -L "link.$ending" -a ! -L "far/map.$ending" -a "$(cksum <"far/map.$ending")" = "$(cksum <"straight.$ending")"
    mkfifo "pipe.$ending"
    timeout 10 cat "pipe.$ending" >got & reader=$!
    timeout 20 "$qkv" $all x -o "pipe.$ending" 2>err || kill $reader 2>/dev/null
    wait $reader
    check "a pipe for a .$ending file" test -p "pipe.$ending" -a "$(cksum <got)" = "$(cksum <"straight.$ending")"
done
same "and nothing is left beside them" "map.csv map.html map.json map.svg" "$(cd far && echo *)"

# ---- help ----
contains "qkv attend --help" "$("$qkv" attend --help --all)" "[TEXT]" --target --kind --layer --head --out --no-special --pieces --beam --rollout \
    --rank --by --diff --json
finish
