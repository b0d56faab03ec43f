#!/bin/sh
# show.sh: qkv show, as a user types it. usage: show.sh QKV MAKE_NPY MAKE_MODEL
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_npy=$(realpath "$2") make_model=$(realpath "$3")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS NO_COLOR

# draws NAME FILE ARGUMENTS...: the file is there, of its kind, and nothing is said.
draws() {
    case_name=$1 file=$2
    shift 2
    said=$("$qkv" "$@" -o "$file" 2>&1)
    case $file in
        *.png) start=$(printf '\211PNG') ;;
        *.svg) start='<?xm' ;;
        *) start='%PDF' ;;
    esac
    if [ -z "$said" ] && [ "$(head -c 4 "$file" 2>&1)" = "$start" ]; then ok "$case_name"; else not_ok "$case_name" "$said"; fi
}
# png_size FILE: "width height", from the header
png_size() { od -An -tu1 -j16 -N8 "$1" | awk '{ print ($2 * 256 + $3) * 256 + $4, ($6 * 256 + $7) * 256 + $8 }'; }
# in a terminal of 80 x 24
terminal() { script -qec "stty cols 80 rows 24; $*" /dev/null; }

# ---- positions ----
draws "positions as PNG" pe.png show positions --d 512 --n 50
check "of reasonable size" sh -c "set -- $(png_size pe.png) && [ \$1 -gt 1024 ] && [ \$1 -lt 3000 ] && [ \$2 -gt 200 ] && [ \$2 -lt 1500 ]"
draws "positions as SVG" pe.svg show positions --d 512 --n 50
contains "with names" "$(cat pe.svg)" ">dimension</text>" ">position</text>" "d = 512</text>" ">-1.0</text>" ">1.0</text>"
draws "positions as PDF" pe.pdf show positions
contains "whose text can be read" "$(pdftotext pe.pdf -)" "dimension" "Sinusoidal positions: 50 positions, d = 128"
same "without a terminal: shades" 4 "$("$qkv" show positions --d 16 --n 4 | grep -c '█.*█')"
contains "and what they mean" "$("$qkv" show positions --d 4 --n 2)" "blank to █: 0 to 1.00"

printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n你爱猫，我爱狗\n the dog and the cat\n我爱你\n' >corpus
for kind in pair learned; do check "a model: $kind" "$make_model" $kind $kind corpus; done
draws "sinusoids of a model" model.svg show positions -m pair --n 7
contains "say so" "$(cat model.svg)" "Sinusoidal positions: 7 positions"
draws "learned positions" learned.svg show positions -m learned
contains "say whose they are" "$(cat learned.svg)" "Learned positions of the encoder"
draws "of the decoder" learned.svg show positions -m learned --side decoder --n 3
contains "as many as wanted" "$(cat learned.svg)" "Learned positions of the decoder: 3 positions"
fails "more than it has learned" 2 "has learned" show positions -m learned --n 100000
fails "--side without a table" 2 "learned positions" show positions -m pair --side decoder
fails "--side without a model" 2 "--model" show positions --side decoder
fails "--d with a model" 2 "the model says" show positions -m pair --d 4
fails "no model" 3 "nowhere" show positions -m nowhere -o x.png

# ---- models ----
draws "a preset" base.svg show model --preset base
contains "every shape" "$(cat base.svg)" ">37000 × 512 · √512, 18,944,000 weights<" ">8 heads, d_k = 64, 1,050,624 weights<" ">6 ×<" ">T × 512<" \
    ">512 → 2048 → 512, ReLU, 2,099,712 weights<" ">③ Cross-attention<" ">512 × 37000, tied: the embedding's matrix<" ">Softmax<"
draws "of another size" big.pdf show model --preset big --vocabulary 8000
contains "whose text can be read" "$(pdftotext big.pdf -)" "16 heads" "= 64" "T × 8000 probabilities"
draws "a model" drawn.svg show model -m pair
contains "with its shapes" "$(cat drawn.svg)" ">16 → 32 → 16, ReLU" ">S × 16<" ">1 ×<" ">2 ×<"
draws "in Chinese" zh.svg show model --preset tiny --lang zh
contains "with Chinese names" "$(cat zh.svg)" ">① 自注意力<" ">③ 交叉注意力<" "残差连接" "个注意力头" ">前馈层<"
contains "in the terminal" "$("$qkv" show model -m learned)" "+ learned positions" "◄──╯" "2 × {"
fails "a model, a preset or sizes" 2 "--model DIR, --preset NAME, or sizes" show model
fails "sizes that do not divide" 2 "--dim 33 is not a multiple of --heads 4" show model --dim 33 --heads 4
contains "sizes and a length" "$("$qkv" show model --dim 4 --heads 2 --d-ff 16 --layers 1 --vocabulary 1000 --tokens 2)" "2 source tokens" \
    "2 × 1000 probabilities" "4 → 16 → 4"
contains "a word at each position" "$("$qkv" show positions --n 5 --word "1 0.5 0.8 0.3")" "pos 4   0.2432  -0.1536   0.8400   1.2992"
fails "one word" 2 "one row of numbers" show positions --word "1 2; 3 4"
fails "no such preset" 5 "tiny, small, base and big" show model --preset huge
fails "a vocabulary of a model" 2 "--vocabulary" show model -m pair --vocabulary 7

# ---- flow ----
draws "flow" flow.svg show flow --d-model 4 --heads 2 --d-k 4 --d-v 8 --tokens 3
contains "shape at every arrow" "$(cat flow.svg)" ">X  3 × 4<" ">W_Q  4 × 8<" ">Q  2 × 3 × 4<" ">V  2 × 3 × 8<" ">weights  2 × 3 × 3<" \
    ">concat  3 × 16<" ">W_O  16 × 4<" ">output  3 × 4<" "split into 2 heads" "softmax"
draws "flow as PDF" flow.pdf show flow --d-model 4 --heads 2 --d-k 4 --d-v 8 --tokens 3
contains "whose text can be read" "$(pdftotext flow.pdf -)" "4 × 8" "concat 3 × 16" "scores: Q Kᵀ"
draws "a batch, one head beside several" both.svg show flow --d-model 128 --heads 8 --tokens 5 --batch 2 --compare
contains "each with its shapes" "$(cat both.svg)" ">Q  2 × 5 × 128<" ">Q  2 × 8 × 5 × 16<" ">weights  2 × 5 × 5<" ">weights  2 × 8 × 5 × 5<" \
    ">W_Q  128 × 128<" "with 1 head" "with 8 heads" "mask, where there is one" ">masked  2 × 8 × 5 × 5<"
contains "both as text" "$("$qkv" show flow --d-model 128 --heads 8 --tokens 5 --batch 2 --compare | tr -s ' ')" "Self-attention, 1 head" \
    "Self-attention, 8 heads" "masked what a mask hides becomes -inf 2 x 8 x 5 x 5"
contains "in Chinese" "$("$qkv" show flow --lang zh)" "自注意力，8 个注意力头" "缩放" "权重" "拼接"
draws "one head, another text" cross.svg show flow --d-model 6 --heads 1 --tokens 3 --memory 5
contains "its shapes" "$(cat cross.svg)" ">K  5 × 6<" ">weights  3 × 5<"
contains "flow as text" "$("$qkv" show flow --d-model 4 --heads 2 --d-k 4 --d-v 8 --tokens 3 | tr -s ' ')" \
    "Q = X W_Q, a matrix 4 x 8 3 x 8" "weights = softmax(masked), rows sum to 1 2 x 3 x 3" "output = concat W_O, a matrix 16 x 4 3 x 4"
fails "heads that do not divide" 2 "does not divide" show flow --d-model 5 --heads 2
fails "too many heads" 2 "--heads" show flow --heads 99999999999
echo '<?xml version="1.0"?><fontconfig><cachedir>fonts</cachedir></fontconfig>' >fonts.conf
export FONTCONFIG_FILE="$folder/fonts.conf"
fails "a machine without fonts" 5 "there is no font" show flow -o x.png
unset FONTCONFIG_FILE

# ---- curve ----
mkdir run
i=1
while [ $i -le 40 ]; do
    echo "{\"step\": ${i}0, \"epoch\": 1, \"loss\": $((90 - i)).5, \"lr\": 1e-3}"
    [ $((i % 10)) != 0 ] || echo "{\"step\": ${i}0, \"valid_loss\": $((95 - i)).25, \"best\": true}"
    i=$((i + 1))
done >run/log.jsonl
draws "curve" curve.png show curve run
same "of its size" "960" "$(png_size curve.png | cut -d' ' -f2)"
draws "curve as SVG" curve.svg show curve run --log-x --log-y
contains "with names" "$(cat curve.svg)" ">training loss</text>" ">validation loss</text>" ">step</text>" ">100</text>"
contains "curve as text" "$("$qkv" show curve run)" "training loss" "step       10   89.5000" "step      400   50.5000" "validation loss"
same "and -m names it" "$("$qkv" show curve run)" "$("$qkv" show curve -m run)"
same "the file itself will do" "$("$qkv" show curve run)" "$("$qkv" show curve run/log.jsonl)"
mkdir other
sed 's/50\./40./' run/log.jsonl >other/log.jsonl
draws "two runs" two.svg show curve run other
contains "one is named after its folder, without the way there" "$("$qkv" show curve "$PWD/run/" -o one.svg; cat one.svg)" ">Training of run</text>"
for row in "0.1|0.1| (with dropout and label smoothing)" "0.1|0| (with dropout)" "0|0.1| (with label smoothing)" "0|0|"; do
    dropout=${row%%|*} rest=${row#*|}
    echo "{\"options\": {\"dropout\": \"$dropout\", \"label-smoothing\": \"${rest%%|*}\"}}" >run/training.json
    same "dropout $dropout, smoothing ${rest%%|*}" "training loss${rest#*|}" "$("$qkv" show curve run | head -n 1)"
done
rm run/training.json
contains "each by its name" "$(cat two.svg)" ">run: training loss</text>" ">other: training loss</text>" ">other: validation loss</text>"
same "not by its path" "$("$qkv" show curve run other)" "$("$qkv" show curve "$PWD/run" "$PWD/other")"
mkdir again && cp -r run again && contains "unless two have one name" "$("$qkv" show curve run again/run)" "again/run: training loss"
contains "two as text" "$("$qkv" show curve run other)" "run: training loss" "other: validation loss" "step      400   40.5000"
printf '{"step": 200, "loss": 1.5}\n{"step": 210, "lo' >>run/log.jsonl
contains "a resumed run has gone back, a torn line is left out" "$("$qkv" show curve run | sed '/validation/,$d' | tail -n 1)" "step      200    1.5000"
echo 'x' >>run/log.jsonl
fails "a line that is no report" 4 "log.jsonl: line 46" show curve run -o x.png
: >run/log.jsonl
fails "no reports" 4 "no reports yet" show curve run -o x.png
fails "not a training" 3 "there is no log.jsonl" show curve pair
fails "nothing there" 3 "nowhere" show curve nowhere
fails "no folder given" 2 "--input is missing" show curve

# ---- runs ----
for name in one two; do
    mkdir $name
    cat >$name/training.json <<END
{"job": "train translate", "options": {"dim": "$name", "lr": "0.1"}, "steps": 70, "best_step": 60, "best_score": -1.25, "stopped": ""}
END
done
printf '{"step": 10, "seconds": 60.0}\n{"step": 10, "valid_loss": 2}\n{"step": 20, "seconds": 120}\n' >one/log.jsonl
printf '{"step": 30, "seconds": 30}\n{"step": 40, "seco' >>one/log.jsonl
same "a line for each, with what differs, over all runs of it" "folder job steps minutes best ended dim
one translate 70 2.5 loss 1.2500 at 60 not yet one
two translate 70 0.0 loss 1.2500 at 60 not yet two" "$("$qkv" runs one two | sed 's/  */ /g')"
same "nothing differs from itself" "folder job steps minutes best ended" "$("$qkv" runs one | sed 's/  */ /g; q')"
# runs_of JOB OPTIONS SCORE: the cell "best"
runs_of() {
    mkdir -p scored
    cat >scored/training.json <<END
{"job": "train $1", "options": {$2}, "steps": 70, "best_step": 60, "best_score": $3, "stopped": "--patience: validation stopped improving"}
END
    "$qkv" runs scored | sed -n '2s/^scored *[a-z]* *70 *[0-9.]* *//p' | sed 's/  */ /g'
}
same "BLEU" "BLEU 38.01 at 60 --patience" "$(runs_of translate '"metric": "bleu"' 38.01)"
same "accuracy" "accuracy 87.50% at 60 --patience" "$(runs_of classify '"metric": "accuracy"' 0.875)"
same "of several labels" "micro F1 62.50% at 60 --patience" "$(runs_of classify '"metric": "accuracy", "label-separator": ","' 0.625)"
same "of numbers" "loss 0.5000 at 60 --patience" "$(runs_of classify '"metric": "accuracy", "numbers": "yes"' -0.5)"
same "the last model's loss is not known without a log" "--patience" "$(runs_of translate '"metric": "last"' 60)"
printf '{"step": 60, "valid_loss": 2.5, "best": true}\n' >scored/log.jsonl
same "else it is told" "loss 2.5000 at 60 --patience" "$(runs_of translate '"metric": "last"' 60)"
printf '{"step": 60, "loss": 2.5, "seconds": 3}\n' >scored/log.jsonl
same "nothing without a validation" "--patience" "$(runs_of generate '"metric": "loss"' 0)"
long=a-folder/with-a-name-that-is-much-longer-than-what-a-table-of-eighty-columns-has-room-for/目录目录目录目录目录
mkdir -p $long/1 $long/2
for i in 1 2; do
    cat >$long/$i/training.json <<END
{"job": "train translate", "options": {"dim": "$i", "train": "$long/$i.tsv", "pre-norm": "yes"}, "steps": 123456, "best_step": 123456,
 "best_score": -1.25, "stopped": "--steps reached"}
END
done
sed -i 's/"yes"/""/' $long/2/training.json
"$qkv" runs $long/1 $long/2 >wide.table
check "a table of long names has 80 columns" awk '{ gsub(/[^ -~][^ -~][^ -~]/, "xx"); if (length > 80) { print length, $0; exit 1 } }' wide.table
contains "what differs is below it" "$(cat wide.table)" "options that differ" "--dim 1" "--pre-norm" "目录/2  --dim 2" "/1  translate"
contains "as JSON" "$("$qkv" runs two one --json | tail -n 1)" '"folder": "one", "minutes": 2.5' '"lr": "0.1"'
fails "runs of no training" 3 "nowhere/training.json" runs one nowhere
echo '{}' >two/training.json
fails "a record without options" 4 "does not tell the options" runs one two
echo '{' >two/training.json
fails "a record that is none" 4 "two/training.json: line" runs two

# ---- array ----
"$make_npy" a.npy f4 2,3 0 0.5 1 0.25 0.75 0.125
"$make_npy" b.npy f8 2,2,2,2 0 1 2 3 4 5 6 7 -8 9 10 11 12 13 14 15
"$make_npy" c.npy i4 4 1 2 3 4
"$make_npy" empty.npy f4 0,3
draws "array" a.svg show array a.npy
same "a typed array may begin with a minus, and signs are seen without colours" "-1 0 1; .2 -.2 -0.5|# █|░.-| -1.00 #=-. ░▒▓█ 1.00" \
    "$("$qkv" show array "-1 0 1; .2 -.2 -0.5" | tr '\n' '|' | sed 's/|$//')"
same "so may -.5" 3 "$("$qkv" show array "-.5 1" | wc -l)"
contains "its numbers" "$(cat a.svg)" ">a.npy</text>" ">0.75</text>" ">0.12</text>"
contains "its colours: viridis" "$(cat a.svg)" "rgb(26.666667%,0.392157%,32.941176%)"
draws "a slice" b.svg show array b.npy --index 1,0
contains "the right one" "$(cat b.svg)" ">b.npy [1,0]</text>" ">-8.0</text>" ">11.0</text>"
contains "its colours: red-blue" "$(cat b.svg)" "rgb(40.392157%,0%,12.156863%)"
draws "in other colours" b2.svg show array b.npy --index 1,0 --colours viridis
refuse "without red" grep -qF "rgb(40.392157%,0%,12.156863%)" b2.svg
draws "one dimension" c.pdf show array c.npy
fails "no index" 2 "--index 0,0" show array b.npy -o x.png
fails "half an index" 2 "--index" show array b.npy --index 1 -o x.png
fails "an index too long" 2 "--index" show array b.npy --index 1,1,1 -o x.png
fails "an index past the end" 2 "dimension 1 has 2 places" show array b.npy --index 1,2 -o x.png
fails "an index that is none" 2 "--index" show array b.npy --index 1,x -o x.png
fails "an index for two dimensions" 2 "without --index" show array a.npy --index 1 -o x.png
fails "an empty array" 2 "empty" show array empty.npy -o x.png
fails "no array" 4 "corpus" show array corpus -o x.png
fails "unknown colours" 2 "red-blue" show array a.npy --colours pink
fails "an unknown ending" 5 ".png, .svg or .pdf" show array a.npy -o a.jpg
fails "a folder that is not there" 3 "no/a.png" show array a.npy -o no/a.png

# ---- the terminal ----
if script -qec true /dev/null >/dev/null 2>&1; then
    escape=$(printf '\033')
    seen=$(terminal "$qkv" show array a.npy)
    contains "in a terminal: coloured blocks" "$seen" "${escape}[38;2;68;1;84m${escape}[48;2;59;82;139m▀" "▀${escape}[0m"
    seen=$(terminal NO_COLOR=1 "$qkv" show array a.npy)
    refuse "none with NO_COLOR" sh -c "printf '%s' \"\$1\" | grep -q 38" sh "$seen"
    same "a wide table is fitted in" 80 "$(terminal "$qkv" show positions --d 512 --n 50 | grep -o '▀' | wc -l | awk '{ print $1 / 20 }')"
else skipped "in a terminal: script is not installed"; fi
finish
