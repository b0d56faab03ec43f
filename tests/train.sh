#!/bin/sh
# train.sh: qkv train translate, as a user types it: bits, stops, bad input. usage: train.sh QKV ON_TERMINAL QKV_FAILING
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") on_terminal=$(realpath "$2") failing=$(realpath "$3")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8

# A toy language: digits in words, reversed with a word for each place.
awk 'BEGIN { split("one two three four five six", en); split("eins zwei drei vier fünf sechs", de); x = 7
    for (i = 0; i < 240; i++) { s = t = ""; n = 1 + i % 5
        for (k = 0; k < n; k++) { x = (x * 1103515245 + 12345) % 2147483648; d = 1 + int(x / 65536) % 6
            s = s (k ? " " : "") en[d]; t = de[d] (k ? " " : "") t }
        print s "\t" t } }' >all.tsv
head -200 all.tsv >train.tsv
tail -40 all.tsv >valid.tsv
for side in 1 2; do cut -f$side train.tsv >train.$side; cut -f$side valid.tsv >valid.$side; done
gzip -c train.2 >train.2.gz

model="--paper --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --dropout 0.1 --attention-dropout 0.1 --max-tokens 128 --quiet"
data="--train train.1 train.2 --valid valid.1 valid.2 --valid-every 20 --save-every 7 --patience 0"
train() { "$qkv" train translate $data $model "$@"; }
start() { exec "$qkv" train translate $data $model "$@"; } # for the background: its process is qkv itself

# files DIR: what a training leaves that must be the same bytes
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" "$1/config.json" "$1/tokenizer.json" | cksum; }

# run STATUS PIECE ARGUMENTS...: exit status, and PIECE in what it says
run() {
    wanted=$1 piece=$2
    shift 2
    "$qkv" "$@" >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || { echo "status $status, wanted $wanted: $(cat err)"; return 1; }
    grep -qF -- "$piece" err || [ -z "$piece" ] || { echo "\"$piece\" is missing in: $(cat err)"; return 1; }
}

# ---- bits ----
check "60 steps" train --steps 60 -t 1 --out whole
wanted=$(files whole)
same "examples.txt has five sentences of the validation" "5 5" "$(wc -l <whole/examples.txt) $(sort -u whole/examples.txt | grep -cxFf valid.1)"
for threads in 2 4; do
    train --steps 60 -t $threads --out threads$threads
    same "the same bytes at $threads threads" "$wanted" "$(files threads$threads)"
done
"$qkv" train translate --train train.tsv --valid valid.tsv --valid-every 20 --save-every 7 --patience 0 $model --steps 60 --out tsv
same "one file with tabs gives the same" "$(cksum <whole/model.safetensors)" "$(cksum <tsv/model.safetensors)"
"$qkv" train translate --train train.1 train.2.gz --valid valid.1 valid.2 --valid-every 20 --save-every 7 --patience 0 $model \
    --steps 60 --out gz
same "gzip gives the same" "$(cksum <whole/model.safetensors)" "$(cksum <gz/model.safetensors)"

# A source without </s>: another training, which goes on as it began; one of before that option too.
check "without </s>" train --steps 20 --no-source-eos --out endless
same "config.json says so" 1 "$(grep -c '"source_eos": false' endless/config.json)"
# forward_ids DIR END: whether a source reads as its ids and END do
forward_ids() {
    ids=$("$qkv" tokenize --tokenizer "$1/tokenizer.json" --ids 2>&1 <<-end | tr ' ' ,
	one two
	end
    )
    run 0 "" forward -m "$1" --source "one two" --target-ids 1 --logits text.npy --quiet &&
        run 0 "" forward -m "$1" --source-ids "$ids$2" --target-ids 1 --logits ids.npy --quiet && cmp text.npy ids.npy
}
check "forward adds none" forward_ids endless ""
check "and where there is one it does" forward_ids whole ,2
same "and by default that it is there" 1 "$(grep -c '"source_eos": true' whole/config.json)"
train --steps 20 --out ended
if [ "$(files ended)" = "$(files endless)" ]; then not_ok "it is another model"; else ok "it is another model"; fi
train --steps 11 --no-source-eos --out endless2 && train --steps 20 --no-source-eos --resume --out endless2
same "resumed" "$(files endless)" "$(files endless2)"
check "not resumed with it" run 2 "--no-source-eos was" train translate $data $model --source-eos --steps 30 --resume --out endless2
cp -r ended before
sed -i '/"no-source-eos"/d' before/training.json
train --steps 25 --resume --out ended
check "a training from before the option goes on" train --steps 25 --resume --out before
same "with the same bytes" "$(files ended)" "$(files before)"
rm -r ended endless endless2 before

for stop in 1 4 9 13 20 22 31 40 47 59; do
    train --steps $stop --out stop$stop && train --steps 60 --resume --out stop$stop
    same "stopped at $stop and resumed" "$wanted" "$(files stop$stop)"
done

# ---- killed ----
kills=0 turn=0
until [ -e killed/done ] || [ $turn -gt 40 ]; do
    turn=$((turn + 1))
    resume=; [ ! -e killed/training.json ] || resume=--resume
    start --steps 60 $resume --out killed &
    pid=$!
    sleep "0.$(printf %02d $((turn * 3)))"
    kill -KILL $pid 2>/dev/null && kills=$((kills + 1))
    wait $pid 2>/dev/null && touch killed/done
done
same "killed again and again, and gone on each time" "yes $wanted" "$([ $kills -gt 0 ] && echo yes) $(files killed)"
same "nothing half-written is left" "" "$(ls killed | grep -F .tmp)"

start --steps 100000 --out interrupted &
pid=$!
sleep 1
kill -INT $pid
wait $pid
same "an interrupted training ends with 130" 130 $?
check "and leaves a checkpoint" test -s interrupted/checkpoint.safetensors
start --steps 100000 --out interrupted --resume &
pid=$!
sleep 0.5
refuse "one training a folder" train --steps 100000 --out interrupted --resume
kill -TERM $pid
wait $pid
same "143 after TERM" 143 $?

# The folder is enough to go on.
"$qkv" train translate $data $model --steps 60 --out alone </dev/null &
pid=$!
until [ -s alone/checkpoint.safetensors ] || ! kill -0 $pid; do :; done
kill -INT $pid 2>/dev/null
wait $pid
check "--resume --out is enough" run 0 "" train --resume --out alone --quiet
same "and gives the same bytes" "$wanted" "$(files alone)"
mv train.1 moved.1
check "a text that was moved is named" run 3 "train.1 is not there: give its new place with --train" train --out alone --resume
check "and may have another place" run 0 "" train --resume --out=alone --train moved.1 train.2 --quiet
mv moved.1 train.1
cp -r alone nothing-given
sed -i '/^  "given": {/,/^  }/d' nothing-given/training.json
check "an older record needs the options" run 2 "give all of them again" train --resume --out nothing-given
check "which it goes on with" train --steps 60 --resume --out nothing-given
check "no training" run 2 "there is no training in empty-handed" train --resume --out empty-handed
check "no folder" run 2 "needs a job" train --resume

# ---- on a terminal ----
loud=$(echo "$model" | sed 's/--quiet//')
# drawn COLUMNS ARGUMENTS...: the lines that are drawn over each other
drawn() {
    columns=$1
    shift
    TERM=xterm "$on_terminal" $columns "$qkv" train translate $data $loud "$@" | tr '\r' '\n' | sed -n "s/$(printf '\033')\[K\$//p" | grep .
}
for columns in 10 45 80 200; do
    drawn $columns --steps 9 --out drawn$columns >lines
    check "progress on $columns columns is one line" awk -v c=$columns '!/%/ || length >= c { exit 1 } END { exit NR < 2 }' lines
done
drawn 200 --steps 20 --resume --out drawn200 >lines
check "after a resume percent and step agree" awk -F'%' '{ n = split($1, before, " "); split($2, after, "step "); split(after[2], step, "[/ ]")
    if (before[n] != int(100 * step[1] / step[2]) || step[1] < 10 || step[2] != 20) exit 1 } END { exit NR < 2 }' lines
TERM=xterm "$on_terminal" 60 "$qkv" train translate $data $loud --steps 2 --schedule constant --lr 1e-9 --out unlearned >warned
check "a long note is wrapped" awk '{ gsub(/\r|\033\[K/, "") } /almost nothing/ { seen = 1 } seen && length >= 60 { print; exit 1 } END { exit !seen }' warned
same "and the last line says where the model is" "the model is in unlearned" "$(tail -n 1 warned | tr -d '\r' | sed 's/.*\[K//')"
TERM=dumb "$on_terminal" 80 "$qkv" train translate $data $loud --steps 9 --out dumb >dumb.said
same "a dumb terminal has plain lines" 0 "$(tr -cd "\033" <dumb.said | wc -c | tr -d " ")"
check "which tell the same" grep -q 'step 9/9  loss' dumb.said

# Text of files is no order to a terminal, and a line of it not longer than one of the terminal's.
sed "s/^/$(printf '\033]0;title\007\302\233')/" valid.tsv >orders.tsv
samples() {
    TERM=xterm "$on_terminal" 30 "$qkv" train translate --train train.tsv --valid orders.tsv --valid-every 3 $loud --steps 3 "$@" >said
    tr -d '\r' <said | sed "s/$(printf '\033')\[K//" | grep '^  [ =>] ' >samples
}
samples --out samples3
same "three samples on a terminal" "3 3 3" "$(echo $(grep -c '^    ' samples) $(grep -c '^  =' samples) $(grep -c '^  >' samples))"
sed 's/[^ -~]/x/g' samples >narrow
check "in its columns" awk 'length >= 30 { print; exit 1 }' narrow
same "without what it would obey" 0 "$(tr -cd '\033\007\233' <samples | wc -c | tr -d ' ')"
samples --samples 0 --out samples0
same "or none" 0 "$(wc -l <samples | tr -d ' ')"

# ---- any file call may fail ----
head -20 train.tsv >short.tsv
short() {
    program=$1
    shift
    "$program" train translate --train short.tsv --valid short.tsv --valid-every 1 $model --tokens characters --steps 1 -t 1 "$@"
}
short "$qkv" --out short
short_files=$(files short) at=0 lost= failed=yes
while [ $failed = yes ]; do
    rm -rf again resumed
    QKV_FAIL_AT=$at QKV_FAILED=failed short "$failing" --out again 2>err
    cp -r again resumed 2>err
    failed=$(cat failed) at=$((at + 1))
    resume=; [ ! -e again/checkpoint.safetensors ] || resume=--resume
    short "$qkv" $resume --out again 2>err || lost="$lost $at: $(cat err)"
    resume=; [ ! -e resumed/training.json ] || resume=--resume
    short "$qkv" $resume --out resumed 2>err || lost="$lost $at: $(cat err)"
    [ "$(files again) $(files resumed)" = "$short_files $short_files" ] || lost="$lost $at: other bytes"
done
same "each file call fails once: the same command starts again, or goes on, to the same bytes" "yes " \
    "$([ $at -gt 40 ] && echo yes) $lost"

# A kill while a model is kept leaves a part of a file in its folder; other people's files stay.
check "the models of some steps are kept" train --steps 20 --keep 2 --out kept
mkdir kept/step-20/1_Pooling kept/other
touch kept/a.12.tmp kept/step-20/model.safetensors.123.tmp kept/step-20/1_Pooling/config.json.7.tmp
touch kept/mine.tmp kept/.5.tmp kept/12.tmp kept/step-20/mine.tmp kept/other/b.12.tmp
check "and more of them" train --steps 40 --keep 2 --resume --out kept
same "what was half-written is gone, and nothing else" "kept/.5.tmp kept/12.tmp kept/mine.tmp kept/other/b.12.tmp kept/step-20/mine.tmp" \
    "$(find kept -name '*.tmp' | sort | paste -sd' ')"

# ---- the folder ----
check "log lines are JSON" awk '!/^{"step": [0-9]+, .*}$/ { exit 1 }' whole/log.jsonl
contains "the record tells the options" "$(cat whole/training.json)" '"dim": "16"' '"stopped": "--steps reached"' '"pairs": 200'
check "stops when validation does not improve" run 0 "--patience" train translate --train train.tsv --valid valid.tsv --dim 16 --heads 2 \
    --layers 1 --inner 32 --vocab 300 --max-tokens 128 --steps 2000 --valid-every 2 --patience 2 --lr 0.01 --schedule constant \
    --optimizer sgd --momentum 0.9 --out patient
check "epochs" train --epochs 2 --out epochs
check "minutes" train --minutes 0.01 --out minutes
check "BLEU decides" train --metric bleu --steps 20 --out bleu
contains "BLEU is logged" "$(cat bleu/log.jsonl)" '"bleu": '
# Validation's BLEU is that of translate and score on the same lines: punctuation, spaces, words that training never saw, empty sides.
awk -F'\t' '{ gsub(/ /, ", ", $2); print $1 "\t" $2 (NR % 3 ? "." : "!") }' train.tsv >marked.tsv
awk -F'\t' '{ gsub(/ /, NR % 4 ? ", " : ",  ", $2); print $1 (NR % 7 ? "" : " zero") "\t" $2 (NR % 3 ? "." : " \302\253null\302\273") }
    END { print "\tleer"; print "one\t" }' valid.tsv >marked.valid.tsv
cut -f1 marked.valid.tsv >marked.1
cut -f2 marked.valid.tsv >marked.2
for tokens in words bpe characters; do
    "$qkv" train translate --train marked.tsv --valid marked.valid.tsv --tokens $tokens --metric bleu --dim 32 --heads 2 --layers 1 --inner 64 \
        --vocab 300 --dropout 0 --label-smoothing 0 --max-tokens 256 --schedule constant --lr 0.01 --steps 60 --valid-every 30 --patience 0 --fit nothing \
        --quiet --out marked-$tokens
    logged=$(sed -n 's/.*"bleu": \([0-9.]*\), "best": true.*/\1/p' marked-$tokens/log.jsonl | tail -1)
    "$qkv" translate -m marked-$tokens --quiet --input marked.1 >marked.out
    scored=$("$qkv" score --ref marked.2 --hyp marked.out --metric bleu --json | sed -n 's/.*"score": \([0-9.]*\),.*/\1/p')
    same "BLEU of validation is that of translate and score, by $tokens" "$(printf %.4f "$scored")" "$logged"
    check "and says something: $logged" awk -v b="$logged" 'BEGIN { exit !(b > 1) }'
done
# A rate so small that no translation changes: BLEU stays what it is, and the loss falls.
tied() { train --metric bleu --schedule constant --optimizer sgd --lr 1e-6 --dropout 0 --attention-dropout 0 --valid-every 2 "$@"; }
check "equal BLEU" tied --steps 12 --patience 2 --out tied
same "is no miss while the loss falls" "--steps reached 12" \
    "$(sed -n 's/.*"stopped": "\(.*\)".*/\1/p; s/.*"best_step": \([0-9]*\).*/\1/p' tied/training.json | sort | tr '\n' ' ' | sed 's/ $//')"
same "and is all one number" 1 "$(sed -n 's/.*"bleu": \([0-9.]*\).*/\1/p' tied/log.jsonl | sort -u | wc -l | tr -d ' ')"
tied --steps 4 --out tied4 && tied --steps 12 --resume --out tied4
same "stopped and resumed, it decides the same" "$(files tied)" "$(files tied4)"
# A rate so large that the loss soon rises.
rising() { train --schedule constant --lr 0.3 --valid-every 2 --keep 1 --quiet "$@"; }
best_step() { sed -n 's/.*"best_step": \([0-9]*\).*/\1/p' "$1/training.json"; }
check "by loss" rising --metric loss --steps 12 --out rising
check "an earlier model is the best: $(best_step rising)" test "$(best_step rising)" -lt 12
check "by steps" rising --metric last --steps 12 -t 1 --out last
same "the last one is" 12 "$(best_step last)"
check "and is kept" cmp last/model.safetensors last/step-12/model.safetensors
rising --metric last --steps 5 -t 2 --out last5 && rising --metric last --steps 12 -t 2 --resume --out last5
same "stopped and resumed, the same bytes" "$(files last)" "$(files last5)"
check "the last models are kept" train --steps 60 --keep 2 --out keep
same "as many as asked for" "step-40 step-60" "$(cd keep && echo step-*)"
check "their average" "$qkv" average --models keep/step-40 keep/step-60 --out mean
check "is a model" run 0 "" translate -m mean --input valid.1
train_from() { "$qkv" train translate --train train.tsv --from whole --dropout 0.3 --max-tokens 128 --steps 5 --quiet --out tuned; }
check "fine-tuning starts from a model" train_from
check "two vocabularies" train --separate --steps 20 --out two
check "translate" run 0 "" translate -m two --input valid.1
check "every part by option" train --steps 3 --pre-norm --norm rms --activation silu-gated --positions rotary --kv-heads 1 --no-bias \
    --untied --optimizer adamw --schedule cosine --warmup 1 --lr 0.001 --update-freq 3 --out parts
(cat train.tsv; printf 'one\t\n'; awk 'BEGIN { for (i = 0; i < 99; i++) printf "six "; print "\tsechs" }') >odd.tsv
contains "what was read and left out is told" "$("$qkv" train translate --train odd.tsv --valid valid.tsv $loud --separate --max-length 50 --steps 7 \
    --out told 2>&1)" "pairs       200 of 202; left out: 1 empty, 1 longer than --max-length" "validation  40" "vocabulary  " " of the target" \
    "parameters  " "updates     7, " "memory      " "time        "
{ head -n 4 train.1; printf 'bad \377\n'; tail -n +6 train.1; } >bad.1
{ head -n 6 valid.2; printf '\377\n\376\n'; tail -n +9 valid.2; } >bad.2
{ head -n 2 train.tsv; printf 'a\tb\377\n'; tail -n +3 train.tsv; } >bad.tsv
printf '\357\273\277' | cat - train.1 >marked.1
plain="train translate --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --max-tokens 128 --steps 1 --dry-run --out dry"
check "lines that are not UTF-8" run 0 "" $plain --train bad.1 train.2 --valid valid.1 bad.2
same "are told of the files they are in" \
    "qkv: bad.1: line 5 is not UTF-8: replaced by U+FFFD; if the file has another encoding: iconv -f WINDOWS-1252 -t UTF-8|qkv: bad.2: 2 lines are not UTF-8, the first is line 7: replaced by U+FFFD; if the file has another encoding: iconv -f WINDOWS-1252 -t UTF-8|" \
    "$(grep UTF-8 err | tr '\n' '|')"
check "in the source too" run 0 "qkv: bad.2: 2 lines are not UTF-8, the first is line 7" $plain --train bad.2 valid.1
check "and of one file" run 0 "qkv: bad.tsv: line 3 is not UTF-8" $plain --train bad.tsv
"$qkv" train translate --train marked.1 train.2 --valid valid.1 valid.2 --valid-every 20 --save-every 7 --patience 0 $model \
    --steps 60 --out marked
same "a byte order mark is no part of the text" "$(cksum <whole/model.safetensors)" "$(cksum <marked/model.safetensors)"
before=$(ls -d dry 2>&1)
check "a dry run needs no folder" run 0 "" train translate $data $model --steps 60 --dry-run
check "a dry run tells" run 0 "" train translate $data $model --steps 60 --dry-run --out dry
contains "parameters, memory, time" "$(cat out)" "pairs       200" "vocabulary  " "parameters " "updates     60, " "memory " "time "
same "and writes nothing" "$before" "$(ls -d dry 2>&1)"

# ---- refused ----
refused() {
    case_name=$1
    shift
    if problem=$(run "$@") && [ ! -s out ]; then ok "$case_name"; else not_ok "$case_name" "$problem" "$(cat err)"; fi
}
before=$(files whole)
refused "a folder with a training" 2 "--resume" train translate $data $model --steps 60 --out whole
refused "nothing to resume" 2 "no training in" train translate $data $model --steps 60 --resume --out nothing
refused "other options" 2 '--lr was "0" and is "0.5"' train translate $data $model --steps 70 --lr 0.5 --resume --out whole
check "a training with an end" train --steps 20 --schedule linear --warmup 2 --out ends
mkdir newer
sed 's/"qkv": "[^"]*"/"qkv": "9.9.9"/' ends/training.json >newer/training.json
refused "a training of a newer version" 5 "newer/training.json: written by qkv 9.9.9, and this is qkv" train translate $data $model --steps 20 \
    --schedule linear --warmup 2 --resume --out newer
refused "another end" 2 "made for 20 steps" train translate $data $model --steps 30 --schedule linear --warmup 2 --resume --out ends
cp -r whole other
echo "one	eins" >>train.tsv
sed 's/train.1 train.2/train.tsv/' whole/training.json >other/training.json
head -199 train.1 >shorter.1
refused "unequal files" 4 "line 200" train translate --train shorter.1 train.2 $model --out unequal
cp train.1 saved.1
sed '3s/.*/six six six/' saved.1 >train.1
refused "another corpus" 2 "other pairs" train translate $data $model --steps 70 --resume --out whole
cp saved.1 train.1
same "a refused training loses nothing" "$before" "$(files whole)"
: >empty
refused "empty files" 4 "empty" train translate --train empty empty $model --out no
refused "a missing file" 3 "none.txt" train translate --train none.txt train.2 $model --out no
head -2 valid.tsv >two.tsv
refused "too little" 4 "line 2" train translate --train two.tsv $model --out no
refused "no tab" 4 "TAB" train translate --train train.1 $model --out no
refused "three files" 2 "--train" train translate --train a b c $model --out no
refused "an unknown preset" 2 "huge" train translate --train train.tsv --preset huge --out no
refused "heads that do not fit" 2 "--dim 16 is not divisible by --heads 3" train translate --train train.tsv --dim 16 --heads 3 --quiet --out no2
refused "nor key and value heads" 2 "--heads 4 is not divisible by --kv-heads 3" train translate --train train.tsv --dim 16 --heads 4 \
    --kv-heads 3 --quiet --out no2
refused "no epochs" 2 "--epochs 0 trains nothing" train translate --train train.tsv $model --epochs 0 --out no2
check "a schedule that must know its end gets it from --minutes" run 0 "all steps planned for --minutes are done" train translate \
    --train train.tsv $loud --schedule linear --minutes 0.02 --out no3
check "resume of a complete training" run 0 "no steps are left" train translate --resume --out no3
refused "with another number of steps" 2 "start another training with --from" train translate --resume --out no3 --steps 9999
{ printf 'Source\tEnglish\n'; cat train.tsv; } >named.tsv
check "a header among the pairs" run 0 "named.tsv: the first pair is column names" train translate --train named.tsv --preset tiny --steps 1 --dry-run --out named
check "no header" run 0 "" train translate --train train.tsv --preset tiny --steps 1 --dry-run --out named
same "no report" 0 "$(grep -c 'column names' err)"
refused "dropout of 2" 2 "dropout" train translate --train train.tsv $model --dropout 2 --out no4
mkdir mine
for out in no5 mine; do
    refused "a warmup longer than the training" 2 "only 3" train translate --train train.tsv $model --schedule linear --warmup 9 --steps 3 --out $out
done
refused "no text for a classifier" 4 "" train classify --train empty --out no5
refused "no text for a language model" 4 "" train generate --train empty --out no5
same "no empty folder is left of it, but one that was there" "mine" "$(ls -d no5 mine 2>/dev/null)"
refused "no job" 2 "needs a job" train
refused "an unknown job" 2 "translate" train fly
check "a vocabulary larger than the text gives is told" run 0 "not 9000" train translate --train train.tsv --dim 16 --heads 2 --layers 1 \
    --inner 32 --vocab 9000 --max-tokens 128 --steps 2 --out large
refused "a loss that is not finite names the tensor and keeps the checkpoint" 8 "is not finite" train translate --train train.tsv --dim 16 \
    --heads 2 --layers 1 --inner 32 --vocab 300 --max-tokens 128 --steps 50 --save-every 1 --lr 1e30 --schedule constant \
    --clip-norm 0 --optimizer sgd --quiet --out infinite
check "which is whole" "$qkv" translate -m infinite </dev/null
refused "an update that overflows is noticed at its step" 8 "step 1: after its update" train translate $data $model --steps 50 --save-every 1 \
    --lr 1e38 --schedule constant --out overflow
same "and nothing is saved of it" "config.json log.jsonl model.safetensors tokenizer.json training.json" "$(cd overflow && echo *)"
check "the model of the start can be used" "$qkv" translate -m overflow </dev/null

# A disk that is full: files cannot grow past a limit.
cp -r whole full
full() { (ulimit -f 40 && exec "$qkv" train translate $data $model --steps 80 --resume --out full >out 2>err); }
full
same "a full disk is an error of input and output" 3 $?
contains "that names the file and says what is left" "$(cat err)" "full/" "cannot write" "--resume"
same "and loses nothing" "$before" "$(files full)"
check "there is room again" train --steps 80 --resume --out full
finish
