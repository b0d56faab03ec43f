#!/bin/sh
# explain.sh: qkv explain: the worked numbers, PyTorch's, and those of a model. usage: explain.sh QKV MAKE_NPY MAKE_MODEL GOLDEN
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_npy=$(realpath "$2") make_model=$(realpath "$3") golden=$(realpath "$4")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS COLUMNS

numbers() { tr -s '][,;\n' ' ' | sed 's/^ *//; s/ *$//'; }
# value KEY FILE: the numbers of a key of JSON
value() { sed "s/.*\"$1\": \(\[[][0-9eE.,+ nul-]*\]\).*/\1/" "$2" | numbers; }
explained() { "$qkv" explain --json "$@" >explained.json || echo "failed" >explained.json; }

# ---- the worked numbers ----
q="[[0.83469225,0.97844849],[-0.22140911,-0.50136356],[-0.38048561,-0.49219428]]"
k="[[0.93336044,1.38711376],[-0.4832162,-0.40850584],[-0.40378534,-0.55737316]]"
v="[[1.0333236,-0.07687391,1.94313157,-1.26162928],[1.18221604,-0.0298283,-1.46568319,1.37369452],[-0.13959719,-0.50792964,-0.88052409,1.52022357]]"
worked() { # worked NAME: explained.json has the numbers of the three tokens
    near "$1: scores" "2.136 -0.803 -0.882 -0.902 0.312 0.369 -1.038 0.385 0.428" "$(value scores explained.json)" 0.0005
    near "$1: scaled" "1.511 -0.568 -0.624 -0.638 0.220 0.261 -0.734 0.272 0.303" "$(value scaled explained.json)" 0.0005
    near "$1: weights" "0.804 0.101 0.095 0.172 0.406 0.422 0.153 0.417 0.430" "$(value weights explained.json)" 0.0005
    near "$1: output" "0.937 -0.113 1.331 -0.732 0.598 -0.240 -0.632 0.982 0.591 -0.243 -0.694 1.035" \
        "$(value attended explained.json)" 0.0005
}
explained --q "$q" --k "$k" --v "$v"
worked "typed"
explained
worked "the example"
for name in q k v; do
    eval "wanted=\$$name"
    near "the example: X W gives $name to all its digits" "$(echo "$wanted" | numbers)" "$(value $name explained.json)" 0.0000002
done
said=$("$qkv" explain)
contains "it looks embeddings up" "$said" "1000" "hajimi, a cat" "are token ids" "Rows 133," "1. Embeddings X" "2. Queries Q = X W_Q" "8. Output O = A V"
contains "and reads each row" "$said" "哈基咪 attends 0.804 to itself, 0.101 to 南北, 0.095 to 绿豆." \
    "南北 attends 0.422 to 绿豆, 0.406 to itself, 0.172 to 哈基咪."
explained --q "[[1,0]]" --k "1 0; 0 1; 1 0" --v "10 0; 0 20; 30 0"
near "the small example: weights" "0.401112 0.197776 0.401112" "$(value weights explained.json)" 0.000001
near "its output" "16.044484 3.955516" "$(value attended explained.json)" 0.00001
explained --q 1 --k "1; 2; 0.5" --v "10; 20; 5"
near "one dimension: weights" "0.231224 0.628532 0.140244" "$(value weights explained.json)" 0.000001
near "its output" "15.584095" "$(value attended explained.json)" 0.00001
explained --q "1 0" --k "1 0; 0 1" --v "5 0; 0 10"
contains "one of each is no plural" "$("$qkv" explain --q "1 0" --k "1 0; 0 1" --v "5; 10")" "Queries: 1. Keys: 2, each with a value. Widths: d_k = 2, d_v = 1."
near "two keys: weights" "0.669762 0.330238" "$(value weights explained.json)" 0.000001
near "its output" "3.348808 3.302385" "$(value attended explained.json)" 0.00001
explained --x "[[1,0],[0,1]]" --wq "1 0; 0 1" --wk "1 0; 0 1" --wv "1 2; 3 4"
near "from X and W" "1.660477 2.660477 2.339523 3.339523" "$(value attended explained.json)" 0.000001
explained --q "1; 1; 1; 1" --k "0; 0; 0; 0" --v "1; 2; 3; 4" --mask causal
same "the causal mask of 4" "0.0 null null null 0.0 0.0 null null 0.0 0.0 0.0 null 0.0 0.0 0.0 0.0" "$(value masked explained.json)"
explained --q "1" --k "0; 0; 0; 0; 0" --v "1; 2; 3; 4; 5" --mask padding:3,4
same "the padding mask of 1 2 3 0 0" "0.0 0.0 0.0 null null" "$(value masked explained.json)"

# ---- PyTorch's ----
of() { sed -n "s/^$1: //p" "$golden/explain.txt"; }
set -- --x "$(of x)" --heads 2
for n in q k v o; do set -- "$@" --w$n "$(of w$n)" --b$n "$(of b$n)"; done
explained "$@" --mask padding:3,4
near "two heads, W_O, padding: weights" "$(of weights_padding | numbers)" "$(value weights explained.json)" 0.00001
near "their output" "$(of output_padding | numbers)" "$(value output explained.json)" 0.00001
explained "$@" --mask causal+padding:3,4
near "and causal: weights" "$(of weights_both | numbers)" "$(value weights explained.json)" 0.00001
near "and output" "$(of output_both | numbers)" "$(value output explained.json)" 0.00001
said=$("$qkv" explain "$@" --mask padding:3,4 --tokens "a b c d e")
contains "every table is there" "$said" "Embeddings X" "Queries Q = X W_Q + b_Q" "W_Q" "b_V" "Split into 2 heads" "Q, head 1" "V, head 0" "Scores" \
    "Scaled" "Masked" "Padding is hidden" "A, head 1" "Each head's output" "Concat" "Output of all Z = C W_O + b_O"
contains "what is hidden is never 0.000" "$(echo "$said" | tr -s ' ')" "/// /// | 1.000" "; hidden from it: d, e."
same "in none of the ten rows of weights" 10 "$(echo "$said" | sed -n '/A = softmax/,/head.s output/p' | grep -c '///    ///  |')"
one=$("$qkv" explain "$@" --mask padding:3,4 --head 1 --token 2 --json)
same "one head, one token" "1" "$(echo "$one" | grep -o '"weights": \[\[[^]]*\]\]' | wc -l)"
near "is its row" "$(of weights_padding | tr ';' '\n' | sed -n 8p)" "$(echo "$one" | value weights -)" 0.00001
explained --embed "0 0; 1 0; 0 1" --ids 1,2 --wq "1 0; 0 1" --wk "1 0; 0 1" --wv "1 2; 3 4"
near "rows of a table" "1.660477 2.660477 2.339523 3.339523" "$(value attended explained.json)" 0.000001
explained --q "1 0" --k "1 0; 0 1" --v "5; 10" --bias "0 -inf"
near "a bias hides" "1 0" "$(value weights explained.json)" 0
contains "a query without keys" "$("$qkv" explain --q 1 --k 1 --v 1 --mask padding:0)" "q0 may see nothing"
explained --x "1 0" --y "1 0; 0 1" --wq "1 0; 0 1" --wk "1 0; 0 1" --wv "5 0; 0 10"
near "another side" "3.348808 3.302385" "$(value attended explained.json)" 0.00001

# ---- files ----
"$make_npy" q.npy f4 1,2 1 0
printf '1, 0\r\n0, 1\r\n' >k.csv
printf '[[5, 0],\n [0, 10]]\n' >v.json
explained --q q.npy --k k.csv --v v.json
near "arrays of three kinds of files" "3.348808 3.302385" "$(value attended explained.json)" 0.00001
near "qkv attention takes them too" "3.348808 3.302385" "$("$qkv" attention --q "1 0" --k k.csv --v v.json | sed -n 's/^ *q0 *//p' | head -n 1)" 0.00001

# ---- LaTeX, Chinese ----
"$qkv" explain --latex --mask causal >explained.tex
same "LaTeX: what begins ends" "$(grep -o 'begin{[a-z]*}' explained.tex | sed s/begin/end/ | sort)" "$(grep -o 'end{[a-z]*}' explained.tex | sort)"
contains "it has the numbers" "$(cat explained.tex)" '1.511' 'A = \mathrm{softmax}\left(S' '-\infty' '1.000 & /\!/\!/ & /\!/\!/'
said=$("$qkv" explain --lang zh)
contains "in Chinese" "$said" "查询 Q = X W_Q" "“哈基咪”的注意力：自己 0.804、“南北” 0.101、“绿豆” 0.095。" "权重" "键" "值" "缩放"
same "the numbers are the same" "$("$qkv" explain | grep -oE -- '-?[0-9]\.[0-9]{3}' | sort)" "$(echo "$said" | grep -oE -- '-?[0-9]\.[0-9]{3}' | sort)"

# ---- a model ----
printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
for kind in pair encoder decoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done
floats() { od -An -v -tf4 -j128 "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'; }
# like_attend MODEL KIND LAYER HEAD
like_attend() {
    explained -m "$1" "I love you" --kind "$2" --layer "$3" --head "$4"
    "$qkv" attend -m "$1" "I love you" --kind "$2" --layer "$3" --head "$4" --pieces --json --quiet >attended.json
    near "$1, $2, layer $3, head $4: the weights of attend" "$(tr -d '\n' <attended.json | value weights -)" "$(value weights explained.json)" 0.000001
}
like_attend pair encoder 0 1
like_attend pair decoder 1 0
like_attend pair cross 1 1
like_attend encoder encoder 0 0
like_attend decoder decoder 1 1
explained -m pair "I love you" --kind encoder --head all
"$qkv" forward -m pair --source "I love you" --encoder-all h.npy --quiet
x=$(value x explained.json)
near "X is what forward writes" "$(floats h.npy | cut -d' ' -f1-"$(echo "$x" | wc -w)")" "$x" 0.000001
contains "all heads" "$("$qkv" explain -m pair "I love you" --kind encoder --head all)" "A, head 0" "A, head 1" "Concat" "W_O" "b_O"
same "for which no translation is searched" "" "$("$qkv" explain -m pair "I love you" --kind encoder | grep "was found")"
contains "as for the others" "$("$qkv" explain -m pair "I love you")" "was found"
contains "one token by name" "$("$qkv" explain -m pair "I love you" --kind encoder --token you)" "you attends 0."
contains "a decoder hides what comes" "$("$qkv" explain -m decoder "I love you" --layer 1)" "///" "hidden from it"

# ---- what is wrong ----
fails "not a number" 4 '"1 0; 0 x": row 2, column 2: "x" is not a number' explain --q "1 0; 0 x" --k 1 --v 1
fails "which option" 4 "--wk: " explain --x 1 --wq 1 --wk "1 2; 3" --wv 1
fails "rows of two lengths" 4 "row 2: 1 numbers here, 2 in the first" explain --q "[[1,2],[3]]" --k 1 --v 1
fails "a bracket that stays open" 4 "not closed" explain --q "[[1,2]" --k 1 --v 1
fails "an empty place" 4 "row 1, column 2: there is no number" explain --q "1,,2" --k 1 --v 1
fails "no such file" 3 "nowhere.npy" explain --q nowhere.npy --k 1 --v 1
fails "an infinite one" 8 "not finite" explain --q inf --k 1 --v 1
fails "shapes" 2 "columns of Q (2) and columns of K (3) must be equal" explain --q "1 2" --k "1 2 3" --v 1
fails "X and W" 2 "columns of X (2) and rows of W_K (1) must be equal" explain --x "1 2" --wq "1; 2" --wk 1 --wv "1; 2"
fails "heads" 2 "do not divide into 2 heads" explain --q 1 --k 1 --v 1 --heads 2
fails "a mask" 2 "causal+padding:3" explain --mask upper
fails "padding past the end" 2 "outside 0..2" explain --mask padding:3
fails "two ways" 2 "choose one" explain --q 1 --x 1 --wq 1 --wk 1 --wv 1
fails "an embedding without ids" 2 "--ids" explain --embed 1 --wq 1 --wk 1 --wv 1
fails "names" 2 "2 names for 3 tokens" explain --tokens "a b"
fails "a text without a model" 2 "--model" explain "I love you"
fails "a model without a text" 2 "a text is missing" explain -m pair
fails "a layer" 2 "--layer 7: give a number from 0 to 1" explain -m pair "I love you" --layer 7
fails "a head" 2 "--head 7: give a number from 0 to 1" explain -m pair "I love you" --head 7
fails "a token" 2 "--token \"dog\"" explain -m pair "I love you" --kind encoder --token dog
fails "a kind" 2 "--kind cross" explain -m decoder "I love you" --kind cross
fails "arrays and a model" 2 "has its own numbers" explain -m pair "I love you" --q 1
# ---- large numbers, long texts ----
"$qkv" explain --q "1e38 1e38" --k "1e38 1e38; 1 1" --v "1 1; 2 2" >out 2>err
same "scores that overflow" 8 $?
contains "are told" "$(cat err)" "not finite"
long=$(printf '0.125 %.0s' $(seq 100))
contains "an array of more characters than a name may have" "$("$qkv" explain --q "$long" --k "$long" --v 1 2>&1)" "1.56"

finish
