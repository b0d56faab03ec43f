#!/bin/sh
# lessons_more.sh: lessons 6 to 10 and the IMDb example say what is true, in English and in Chinese. usage: lessons_more.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset LANGUAGE

# between NAME LEAST VALUE MOST
between() { check "$1: $2 <= $3 <= $4" awk -v a="$2" -v x="$3" -v b="$4" 'BEGIN { exit !(x != "" && a <= x && x <= b) }'; }
# squeezed FILE: one line, single spaces
squeezed() { tr -s ' \n' ' ' <"$1"; }
# row FILE START: the numbers of the first row of that name, single spaces
row() { awk -v start="$2" '{ $1 = $1 } index($0, start " ") == 1 && substr($0, length(start) + 2) ~ /^-?[0-9]/ { print substr($0, length(start) + 2); exit }' "$1"; }
# field TEXT N
field() { echo "$1" | awk -v n="$2" '{ print $n }'; }

# ---- every lesson ----
for i in 6 7 8 9 10 imdb; do
    check "lesson $i takes less than 20 seconds" timeout 20 "$qkv" learn "$i" --lang en -o "pictures$i"
    "$qkv" learn "$i" --lang en --answer >"$i.en" 2>"$i.err"
    "$qkv" learn "$i" --lang zh --answer >"$i.zh" 2>>"$i.err"
    same "lesson $i: nothing on stderr" "" "$(cat "$i.err")"
    contains "lesson $i: question and answer" "$(cat "$i.en")" "Question: " "Answer: "
    contains "lesson $i: question and answer in Chinese" "$(cat "$i.zh")" "问题：" "答案："
    same "lesson $i: no English paragraph in Chinese" "" "$(grep -v '^ ' "$i.zh" | grep -E '[a-z]{2,} [a-z]{2,} [a-z]{2,}')"
done
for i in 6 7 8 imdb; do
    "$qkv" learn "$i" --lang zh --answer -t 1 >one
    "$qkv" learn "$i" --lang zh --answer -t 2 >two
    check "lesson $i: the same bytes with 1 and 2 threads" cmp one two
    same "lesson $i: the same numbers in both languages" \
        "$(grep -oE '[0-9]+\.[0-9]{3,}' "$i.en" | sort)" "$(grep -oE '[0-9]+\.[0-9]{3,}' "$i.zh" | sort)"
done
is_png() { same "$1 is a PNG" "137 80 78 71 13 10 26 10" "$(od -An -tu1 -N8 "$1" 2>&1 | xargs)"; }
for picture in 6/positions 6/positions_products 7/residuals 8/optimizers 8/optimizers_same_rate 9/additive 10/costs imdb/imdb imdb/imdb_simple; do
    is_png "pictures$picture.png"
done

# ---- 6: positions ----
differences() { squeezed 6.en | grep -oE 'two sentences: [0-9.]+\. Of the mean: [0-9.]+' | grep -oE '[0-9]+\.[0-9]{6}'; }
same "without positions the order of words changes nothing" "0.000000 0.000000" "$(differences | head -2 | xargs)"
between "with positions it changes the words" 0.01 "$(differences | sed -n 3p)" 100
between "and their mean" 0.01 "$(differences | sed -n 4p)" 100
same "the first word of one sentence is the last of the other" \
    "$(awk '$1 == "dog" { $1 = $1; print; exit }' 6.en)" "$(awk '$1 == "dog" && n++ == 1 { $1 = $1; print }' 6.en)"
same "PE(0)" "0.0000 1.0000 0.0000 1.0000" "$(row 6.en 'PE(0)')"
same "PE(4)" "-0.7568 -0.6536 0.0400 0.9992" "$(row 6.en 'PE(4)')"
same "a product of positions depends on their distance alone" "$(row 6.en 'p = 0')" "$(row 6.en 'p = 29')"
between "which is largest at distance 0" 32 "$(field "$(row 6.en 'p = 7')" 1)" 32
between "and smaller at 10" 20 "$(field "$(row 6.en 'p = 7')" 5)" 22
contains "for every place" "$(squeezed 6.en)" "Over all p it varies by 0.0000."

# ---- 7: the parts around attention ----
same "LayerNorm" "-1.4142 -0.7071 0.0000 0.7071 1.4142" "$(row 7.en 'LayerNorm(x)')"
contains "by the biased variance" "$(squeezed 7.en)" "The mean is 160." "divided by n: 200." "it would be 250"
deep=$(row 7.en 24)
between "without residuals the gradient is gone after 24 layers" 0 "$(field "$deep" 1)" 0.0001
between "with them it is not" 1 "$(field "$deep" 2)" 1000
between "and with norms it keeps its size" 0.3 "$(field "$deep" 3)" 3
between "one layer alone loses little" 0.3 "$(field "$(row 7.en 1)" 1)" 1
dropped=$(squeezed 7.en | grep -oE 'Of all of them [0-9.]+ are zero and the mean is [0-9.]+:' | grep -oE '[0-9]+\.[0-9]{4}' | xargs)
between "dropout: the share of zeros" 0.095 "$(field "$dropped" 1)" 0.105
between "dropout: the mean" 0.99 "$(field "$dropped" 2)" 1.01
contains "dropout: 1/(1-p)" "$(row 7.en y0)" "1.1111" "0.0000"
contains "dropout is off outside training" "$(squeezed 7.en)" "share of zeros 0.0000, mean 1.0000."
contains "label smoothing" "$(squeezed 7.en)" "0.436873 with s = 0.1" "1 - s + s/K = 0.933333"
same "smoothed confidence stops at its target" "0.933333 0.933333" "$(field "$(row 7.en 'smoothing 0.1')" 3) $(field "$(row 7.en 'smoothing 0.1')" 5)"
between "the other goes on" 0.9999 "$(field "$(row 7.en 'without smoothing')" 5)" 1

# ---- 8: optimizers ----
for line in "0 0.28 0.10 33.000" "20 1.98 0.73 0.123" "40 2.07 0.79 0.015" "60 2.06 0.82 0.012" "80 2.06 0.84 0.009"; do
    same "the line at step ${line%% *}" "${line#* }" "$(row 8.en "${line%% *}")"
done
same "the same as qkv line" "$("$qkv" line | awk 'NR > 1 { print $1, $2, $3, $4 }')" "$(awk '$1 ~ /^(0|20|40|60|80)$/ && NF == 4 { print $1, $2, $3, $4 }' 8.en)"
for rule in SGD momentum AdaGrad RMSProp Adam; do
    same "$rule starts where all start" 33 "$(field "$(awk -v r="$rule" '$1 == r && $3 == 33' 8.en | tail -1)" 3)"
    [ $rule = RMSProp ] && most=0.001 || most=0.0001 # its stride stays as long as its rate
    between "$rule arrives at its own rate" 0 "$(awk -v r="$rule" '$1 == r && $3 == 33 { last = $NF } END { print last }' 8.en)" $most
done
contains "RMSProp remembers 0.9" "$(cat 8.en)" "s = 0.9 s + 0.1 g^2"
between "one rule alone" 0.08 "$("$qkv" line --optimizer adam --lr 0.3 | awk '$1 == 20 { print $4 }')" 0.09
for rule in sgd momentum adagrad rmsprop adam; do
    same "$rule starts at 33" "33.000" "$("$qkv" line --optimizer $rule --steps 1 | awk 'NR == 2 { print $4 }')"
done
refuse "another rule" "$qkv" line --optimizer newton
between "AdaGrad crawls at 0.01" 20 "$(awk '$1 == "AdaGrad" && $2 == 0.01 { print $NF }' 8.en)" 30

# ---- 9: dot-product against additive attention ----
dots=$(awk '$1 == "哈基咪" && $2 ~ /^0/ && /\|/ { print $2, $3, $4 }' 9.en)
same "weights by dot products" "0.804 0.101 0.095" "$(echo "$dots" | sed -n 1p)"
same "weights by addition" "0.600 0.205 0.195" "$(echo "$dots" | sed -n 2p)"
same "outputs" "0.937 -0.113 1.331 -0.732" "$(awk '$1 == "哈基咪" && !/\|/ && NF == 5 { print $2, $3, $4, $5; exit }' 9.en)"
learned=$(row 9.en 120)
between "dot products learn to look up" 0.99 "$(field "$learned" 1)" 1
between "so does addition" 0.99 "$(field "$learned" 2)" 1
between "neither could before" 0 "$(awk '$1 == 0 && NF == 3 { print $2 }' 9.en)" 0.2
same "times at four sizes" "64 128 256 512" "$(awk 'NF == 4 && $1 ~ /^(64|128|256|512)$/ { print $1 }' 9.en | xargs)"

# ---- 10: costs ----
same "multiplications as the paper counts" "536.871 16.777 25.166 4.194" "$(row 10.en 2048)"
same "with projections" "0.655 0.262 0.393 0.590" "$(awk '$1 == 32 && NF == 5 { if (++n == 2) print $2, $3, $4, $5 }' 10.en)"
contains "the restricted row" "$(cat 10.en)" "restricted      O(r n d)          O(1)              O(n / r)"
same "paths of 3 tokens" "3 1 1 1 3" "$(awk '$1 == 3 && NF == 5 { $1 = $1; print }' 10.en)"
same "paths of 81 tokens" "81 1 40 4 81" "$(awk '$1 == 81 && NF == 5 { $1 = $1; print }' 10.en)"
far=$(awk '$1 == 81 && NF == 3 { print $2, $3 }' 10.en)
between "attention reaches far" 0.001 "$(field "$far" 1)" 1
between "a recurrence forgets" 0 "$(field "$far" 2)" 1e-9

# ---- IMDb ----
contains "made-up reviews" "$(cat imdb.en)" "data size: 1000 reviews, 20 tokens each" "output shape: (1000,20,64)" "weights shape: (1000,20,20)"
contains "in Chinese" "$(cat imdb.zh)" "数据大小：1000 条影评" "输出形状：(1000,20,64)" "权重形状：(1000,20,20)"
contains "weights sum to 1, padding has none" "$(squeezed imdb.en)" "(largest difference 0.000000)" "largest weight on padding is 0."
contains "the heatmap is drawn where no folder is given" "$(cat imdb.en)" "█"
printf 'pos\tA GREAT film , I liked it .\nneg\tdull\nneg\tone two three four five six seven eight nine ten one two three four five six seven eight nine ten eleven twelve\n' >few.tsv
few=$("$qkv" learn imdb --data few.tsv)
contains "a small TSV" "$few" "few.tsv has only 3 reviews" "3 reviews, 20 tokens each (2 of them padded)" "output shape: (3,20,64)" \
    "weights shape: (3,20,20)" "vocabulary: 25 tokens"
contains "the start of the first review" "$few" "first review, 100 characters at most: A GREAT film , I liked it ."
contains "its words in lower case" "$few" " great " " film " " liked "
mkdir -p films/neg films/pos
printf 'Dull from start to end' >films/neg/1.txt
printf 'Wonderful' >films/pos/1.txt
contains "a folder" "$("$qkv" learn imdb --data films)" "films has only 2 reviews" "output shape: (2,20,64)" "dull" " start "
printf 'review,sentiment\n"Good, really",positive\n' >imdb.csv
contains "a CSV with the columns review and sentiment" "$("$qkv" learn imdb --data imdb.csv)" "output shape: (1,20,64)" "good,"
printf 'label,text\npos,fine\n' >usual.csv
contains "a CSV with the usual columns" "$("$qkv" learn imdb --data usual.csv)" "output shape: (1,20,64)"
printf '{"label": 1, "text": "fine film"}\n' >films.jsonl
contains "JSON lines" "$("$qkv" learn imdb --data films.jsonl)" "output shape: (1,20,64)"
awk 'BEGIN { for (i = 1; i <= 1100; i++) print i <= 1000 ? "pos\tfilm number " i : "no label here" }' >many.tsv
contains "the first 1,000 of many, and no more are read" "$("$qkv" learn imdb --data many.tsv)" "The first 1000 reviews of many.tsv" \
    "output shape: (1000,20,64)"
awk 'BEGIN { printf "pos\t"; for (i = 0; i < 99; i++) printf "影"; print "\033[1m" }' >long.tsv
contains "no more than 100 characters, and no orders to the terminal" "$("$qkv" learn imdb --data long.tsv)" "$(awk 'BEGIN { for (i = 0; i < 99; i++) printf "影" }') 
"
head -999 many.tsv >some.tsv
contains "999 are fewer" "$("$qkv" learn imdb --data some.tsv)" "some.tsv has only 999 reviews" "output shape: (999,20,64)"
check "a picture of the first review" "$qkv" learn imdb --data few.tsv -o few
is_png few/imdb.png

# wrong NAME STATUS PIECE ARGUMENTS...
wrong() {
    name=$1 status=$2 piece=$3
    shift 3
    said=$("$qkv" learn imdb "$@" 2>&1 >out)
    same "$name: status" "$status" $?
    contains "$name" "$said" "qkv: learn: " "$piece"
    same "$name: one line" 1 "$(echo "$said" | wc -l | xargs)"
}
: >empty.tsv
mkdir no_classes
printf 'no tab in this line\n' >no_label.tsv
printf 'a,b\n1,2\n' >other.csv
wrong "no such file" 3 "nowhere.tsv" --data nowhere.tsv
wrong "an empty file" 4 "empty.tsv: there is no review in it" --data empty.tsv
mkdir -p outer/train/pos && echo "nice film" >outer/train/pos/1.txt
wrong "a folder too far out" 4 "there is no review in it (of a folder, DIR/CLASS/*.txt are read)" --data outer
wrong "a folder without classes" 4 "no_classes" --data no_classes
wrong "a line without a label" 4 "no_label.tsv" --data no_label.tsv
wrong "a CSV with other columns" 4 "other.csv" --data other.csv
: >taken
wrong "pictures where a file is" 3 "taken" -o taken
finish
