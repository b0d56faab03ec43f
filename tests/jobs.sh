#!/bin/sh
# jobs.sh: classify, generate, mask, embed, similar and perplexity, as a user types them. usage: jobs.sh QKV MAKE_MODEL MAKE_NPY
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2") make_npy=$(realpath "$3")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8

# run STATUS PIECE ARGUMENTS...: exit status, and PIECE in what it says
run() {
    wanted=$1 piece=$2
    shift 2
    "$qkv" "$@" >out 2>err </dev/null
    status=$?
    [ "$status" = "$wanted" ] || { echo "status $status, wanted $wanted: $(cat err)"; return 1; }
    grep -qF -- "$piece" err || [ -z "$piece" ] || { echo "\"$piece\" is missing in: $(cat err)"; return 1; }
}
# refused NAME STATUS PIECE ARGUMENTS...: the same, and nothing is printed
refused() {
    case_name=$1
    shift
    if problem=$(run "$@") && [ ! -s out ]; then ok "$case_name"; else not_ok "$case_name" "$problem" "$(cat out err)"; fi
}
weights() { cksum <"$1/model.safetensors"; }
files() { cat "$1/checkpoint.safetensors" "$1/model.safetensors" "$1/config.json" "$1/tokenizer.json" | cksum; }

# ---- data: the one word that says it stands anywhere ----
awk 'BEGIN { split("the a film plot cast and, it music \"long\" night", w); split("neg pos", label); x = 7
    split("dull awful poor", bad); split("great lovely fine", good)
    for (c = 1; c <= 2; c++) for (i = 0; i < 120; i++) { s = ""; n = 1 + i % 7
        for (k = 0; k <= n; k++) { x = (x * 1103515245 + 12345) % 2147483648; r = int(x / 65536)
            s = s (k ? " " : "") (k == i % (n + 1) ? (c == 1 ? bad[1 + r % 3] : good[1 + r % 3]) : w[1 + r % 10]) }
        print label[c] "\t" s } }' >all.tsv
awk 'NR % 6' all.tsv >train.tsv
awk 'NR % 6 == 0' all.tsv >valid.tsv
cut -f2 valid.tsv >valid.txt
awk -F'\t' 'BEGIN { print "id,text,label" } { gsub(/"/, "\"\"", $2); print NR ",\"" $2 "\"," $1 }' train.tsv >train.csv
awk -F'\t' '{ gsub(/"/, "\\\"", $2); print "{\"text\": \"" $2 "\", \"label\": \"" $1 "\"}" }' train.tsv >train.jsonl
gzip -c train.jsonl >train.jsonl.gz
mkdir -p reviews/neg reviews/pos
awk -F'\t' '{ printf "%s", $2 > sprintf("reviews/%s/%03d.txt", $1, NR) }' train.tsv

size="--paper --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 --dropout 0.1 --max-tokens 256 --patience 0"
classify() { "$qkv" train classify --train train.tsv --valid valid.tsv $size --tokens words --lr 0.01 --schedule constant --quiet "$@"; }

# ---- classify: bits ----
check "train classify" classify --steps 120 --save-every 7 -t 1 --out whole
wanted=$(files whole)
for threads in 2 4; do
    classify --steps 120 -t $threads --out threads$threads
    same "the same bytes at $threads threads" "$wanted" "$(files threads$threads)"
done
for stop in 1 9 61; do
    classify --steps $stop --out stop$stop && classify --steps 120 --resume --out stop$stop
    same "stopped at $stop and resumed" "$wanted" "$(files stop$stop)"
done
for form in train.csv train.jsonl train.jsonl.gz reviews; do
    "$qkv" train classify --train $form --valid valid.tsv $size --tokens words --lr 0.01 \
        --schedule constant --quiet --steps 5 --out form 2>err || cat err
    classify --steps 5 --out plain
    same "$form gives the same" "$(weights plain)" "$(weights form)"
    rm -rf form plain
done

# ---- classify: what comes out ----
"$qkv" classify -m whole --eval valid.tsv --confusion matrix.csv >scores 2>&1
accuracy=$(awk '/^accuracy/ { print $2 }' scores)
check "it learned: accuracy $accuracy" awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.9) }'
logged=$(awk -F'"accuracy": ' '/"best": true/ { a = $2 } END { printf "%.4f", a }' whole/log.jsonl)
same "which is what training measured" "$logged" "$accuracy"
kept=$(sed -n 's/.*"best_step": \([0-9]*\).*/\1/p' whole/training.json)
same "of equal accuracies the lower loss is kept" "$kept" "$(sed -n 's/{"step": \(.*\), "valid_loss": \(.*\), "accuracy": \(.*\), .*/\3 \2 \1/p' \
    whole/log.jsonl | sort -k1,1nr -k2,2n | head -1 | cut -d' ' -f3)"
contains "scores of each class" "$(cat scores)" "precision" "neg" "pos" "confusion"
same "the matrix has a line for each pair" "label,said,texts 4 40" \
    "$(head -1 matrix.csv) $(awk -F, 'NR > 1 { n++; s += $3 } END { print n, s }' matrix.csv)"
"$qkv" classify -m whole --input valid.txt >lines
right=$(cut -f1 valid.tsv | paste - lines | awk '$1 == $2 { n++ } END { printf "%.4f", n / NR }')
same "lines get the labels that were counted" "$accuracy" "$right"
same "in order, one each" 40 "$(awk -F'\t' 'NF == 2 && $2 >= 0.5 && $2 <= 1' lines | wc -l | tr -d ' ')"
# Labels by which some of the answers are wrong, and what the scores must then be.
awk -F'\t' 'NR == FNR { said[FNR] = $1; next }
    { print (FNR % 3 == 0 && FNR < 22 ? (said[FNR] == "pos" ? "neg" : "pos") : said[FNR]) "\t" $0 }' lines valid.txt >flipped.tsv
cut -f1 lines | paste - flipped.tsv | awk -F'\t' '{ said[$1]++; is[$2]++; if ($1 == $2) right[$1]++ }
    END { for (c in is) printf "%s %.4f %.4f %.4f %d\n", c, right[c] / said[c], right[c] / is[c], 2 * right[c] / (said[c] + is[c]), is[c] }' |
    sort >wanted
same "precision, recall, F1 and support by hand" "$(cat wanted)" \
    "$("$qkv" classify -m whole --eval flipped.tsv | awk 'NF == 5 && $1 ~ /^(neg|pos)$/ { $1 = $1; print }' | sort)"
for batch in 1 7; do
    same "the same bytes with --batch $batch" "$(cksum <lines)" "$("$qkv" classify -m whole --batch $batch -t 2 <valid.txt | cksum)"
done
same "every class adds up to 1" 40 "$("$qkv" classify -m whole --all --input valid.txt |
    awk -F'\t' '$2 >= $4 && $2 + $4 > 0.99999 && $2 + $4 < 1.00001' | wc -l | tr -d ' ')"
"$qkv" classify -m whole --json <valid.txt >json
check "JSON lines" awk '!/^{"line": [0-9]+, "label": "(neg|pos)", "probabilities": {.*}}$/ { exit 1 } END { exit NR != 40 }' json
same "the labels are the same there" "$(cut -f1 lines | cksum)" "$(sed 's/.*"label": "\([a-z]*\)".*/\1/' json | cksum)"
contains "scores as JSON" "$("$qkv" classify -m whole --eval valid.tsv --json)" '"texts": 40' "\"accuracy\": $accuracy" '"classes": {"neg": {'
printf 'great\n \n\nawful' >gaps.txt
check "an empty text" run 0 "empty texts: 2: no label" classify -m whole -i gaps.txt
same "has an empty line, not a label" "4 pos||neg" "$(wc -l <out | tr -d ' ') $(sed -n '1p; 2p; 4p' out | cut -f1 | tr '\n' '|' | sed 's/|$//')"
check "also as JSON" run 0 "" classify -m whole --json --quiet -i gaps.txt
same "it has none" '{"line": 2, "label": null}' "$(sed -n 2p out)"
same "no line, no answer" "" "$("$qkv" classify -m whole </dev/null)"
awk 'BEGIN { for (i = 0; i < 300; i++) printf "the "; print "great" }' >long.txt
"$qkv" classify -m whole --input long.txt --max-length 20 >cut 2>err
contains "a text that is cut is counted" "$(cat err)" "texts too long to be read at once: 1: cut"
"$qkv" classify -m whole --input long.txt --max-length 20 --windows >windows 2>err
contains "or read in windows" "$(cat err)" "read in windows"
refuse "which is not the same" cmp -s cut windows
check "bytes that are not UTF-8 are read" sh -c 'printf "great \377\n" | "$1" classify -m whole' sh "$qkv"
printf 'great\ngreat \377\n' >bad.txt
check "and told of" run 0 "qkv: bad.txt: line 2: byte 7 is not UTF-8: replaced by U+FFFD" classify -m whole --input bad.txt
awk 'BEGIN { for (i = 0; i < 30; i++) printf "great \377\n" }' >bad.txt
check "a file of such lines gets ten reports" run 0 "qkv: bad.txt: more lines are not UTF-8 and are not reported" classify -m whole --input bad.txt
same "and no more" "10 30" "$(grep -c 'replaced by' err) $(wc -l <out)"
printf '\357\273\277great\n' >marked.txt
echo great >in.txt
for command in classify embed; do
    same "$command: a byte order mark is no part of the text" "$("$qkv" $command -m whole -i in.txt)" "$("$qkv" $command -m whole -i marked.txt)"
    iconv -f UTF-8 -t UTF-16BE in.txt >wide.txt
    refused "$command: UTF-16" 5 "wide.txt: it is UTF-16 without a byte order mark, not text in UTF-8: convert it first" $command -m whole -i wide.txt
done
mkdir -p mixed/neg mixed/pos
printf 'dull\n' >mixed/neg/a.txt
printf 'dull\npoor \377\n' >mixed/neg/b.txt
printf 'great \377\n' >mixed/pos/a.txt
check "of a folder" run 0 "qkv: mixed/neg/b.txt: line 2 is not UTF-8: replaced by U+FFFD" classify -m whole --eval mixed
contains "the first file is named" "$(cat err)" "qkv: mixed: 1 more files are not UTF-8"
printf '(\265/\375\004' >zipped.tsv
refused "labelled text of Zstandard" 5 'zipped.tsv: it is Zstandard, not text in UTF-8: decompress it first, as in "zstd -dc FILE' \
    classify -m whole --eval zipped.tsv
said=$(printf 'dull\ngreat\ngreat \377\n' | "$qkv" classify -m whole --strict --json 2>&1)
same "or refused, by status" 4 "$(printf 'great \377\n' | "$qkv" classify -m whole --strict >/dev/null 2>&1; echo $?)"
contains "after what came before" "$said" '{"line": 1, ' '{"line": 2, ' "line 3: byte 7 is not UTF-8"

awk -F'\t' '{ split($2, w, " "); print $1 "\t" w[1] "\t" $2 }' train.tsv >pairs.tsv
check "pairs of texts" run 0 "" train classify --train pairs.tsv $size --steps 3 --pooling attention --balance --quiet --out pairs
same "are classified" 2 "$(printf 'a\tgreat film\nthe\tdull\n' | "$qkv" classify -m pairs --pairs | wc -l | tr -d ' ')"
contains "and scored" "$("$qkv" classify -m pairs --eval pairs.tsv)" "of 200"
for pooling in first last; do
    check "pooling by $pooling" run 0 "" train classify --train train.tsv $size --pooling $pooling --steps 3 --quiet --out by-$pooling
    contains "is kept" "$(cat by-$pooling/config.json)" "\"pooling\": \"$pooling\""
done
check "a text longer than the positions of the model is cut" run 0 "" train classify --train train.tsv $size --positions learned \
    --longest 4 --tokens words --epochs 1 --quiet --out learned
check "in use too" run 0 "too long to be read at once" classify -m learned --input valid.txt
check "characters" run 0 "" train classify --train train.tsv $size --tokens characters --steps 3 --quiet --out characters
check "classifies" run 0 "" classify -m characters --input valid.txt

# ---- what a training tells first ----
cp train.tsv some.tsv
printf 'neg\t\npos\t \nvery long indeed, and 很长很长很长很长很长很长很长的一个标签\tfilm\n' >>some.tsv
for i in 1 2 3 4 5 6 7 8 9; do printf 'class-number-%d\tgreat %d\n' $i $i; done >>some.tsv
"$qkv" train classify --train some.tsv --valid valid.tsv $size --tokens words --steps 8 --out told 2>told.err
contains "texts, classes, vocabulary, size and length" "$(cat told.err)" "texts       210 of 212; left out: 2 empty" "validation  40" \
    "classes     12: class-number-1 (1), " "neg (100), pos (100)" "vocabulary  " " words" "parameters  " "updates     8, " \
    "memory      " "speed       " "time        "
check "in 80 columns" awk '/^qkv: / { next } { gsub(/[^ -~]+/, "&&"); if (length > 80) { print; exit 1 } }' told.err
contains "the record has them" "$(tr -d ' \n' <told/training.json)" '"left_out":{"empty":2,"too_long":0}' '"pos":100' '"vocabulary":' '"parameters":'
plan() { grep -E '^(texts|documents|pairs|validation|classes|vocabulary|parameters|updates|  )' "$@"; }
"$qkv" train classify --train some.tsv --valid valid.tsv $size --tokens words --steps 8 --dry-run --out dry 2>err | plan >dry.said
same "a dry run tells the same" "$(plan told.err)" "$(cat dry.said)"
"$qkv" train classify --train some.tsv $size --tokens words --steps 8 --quiet --out hushed 2>err
same "nothing when quiet" "" "$(cat err)"

# ---- what rules choose is told, and gives the same bytes when it is typed ----
"$qkv" example translate --pairs 500 --out pairs-of-lines --quiet
# chosen FILE: the options that a summary says were chosen
chosen() { sed -n '/^chosen/,/^updates/p' "$1" | sed 's/^chosen//; /^updates/d' | tr -s ' \n' ' '; }
for job in translate classify generate mask; do
    case $job in translate) text=pairs-of-lines/train.tsv ;; classify) text=train.tsv ;; *) text=valid.txt ;; esac
    by_hand="--train $text --dim 16 --heads 2 --layers 1 --vocab 300 --steps 6"
    check "train $job by its rules" run 0 "chosen      --" train $job $by_hand --out by-rule-$job
    cp err by-rule-$job.err
    check "train $job with all of it typed" run 0 "" train $job $by_hand $(chosen err) --quiet --out typed-$job
    check "train $job: the same model" cmp by-rule-$job/model.safetensors typed-$job/model.safetensors
    check "train $job: the same options" cmp by-rule-$job/config.json typed-$job/config.json
    check "train $job with the paper's settings" run 0 "" train $job --paper $by_hand --quiet --out paper-$job
    refuse "train $job: they are others" cmp -s by-rule-$job/model.safetensors paper-$job/model.safetensors
    "$qkv" train $job $by_hand --dry-run --out none >said
    same "train $job: a dry run chooses the same" "$(chosen said)" "$(chosen by-rule-$job.err)"
done

# ---- rules of classify: by the amount of text, Chinese included, which has no spaces ----
# labelled N TEXT: N rows of two classes
labelled() { awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) print (i % 2 ? "good\t" : "bad\t") text }'; }
rules() { "$qkv" train classify --train "$1" --dim 16 --heads 2 --layers 1 --dry-run --out none >said && chosen said; }
labelled 600 "as a text goes" >few.tsv
labelled 600 "文本" >few.zh.tsv
labelled 20000 "中文没有空格的文本中文没有空格的文本中文没有空格的文本很多" >many.zh.tsv
contains "few texts" "$(rules few.tsv)" "--tokens wordpunct " "--max-length 512 " "--lr 0.0005 " "--epochs 3"
contains "few Chinese texts" "$(rules few.zh.tsv)" "--tokens characters " "--max-length 512 " "--lr 0.0005 " "--epochs 3"
contains "much Chinese text" "$(rules many.zh.tsv)" "--tokens characters " "--max-length 400 " "--lr 0.001 " "--epochs 2"

# ---- generate and perplexity ----
awk 'BEGIN { split("ab cd ef gh", w); x = 3
    for (i = 0; i < 150; i++) { s = ""; n = 2 + i % 6
        for (k = 0; k < n; k++) { x = (x * 1103515245 + 12345) % 2147483648; s = s (k ? " " : "") w[1 + int(x / 65536) % 4] }
        print s } }' >all.txt
head -120 all.txt >train.txt
tail -30 all.txt >heldout.txt
generate() {
    "$qkv" train generate --train train.txt --valid heldout.txt $size --tokens characters --context 9 --lr 0.01 --schedule constant \
        --valid-every 20 --quiet "$@"
}
check "train generate" generate --steps 60 --save-every 7 -t 1 --out tongue
wanted=$(files tongue)
for threads in 2 4; do
    generate --steps 60 -t $threads --out tongue$threads
    same "the same bytes at $threads threads" "$wanted" "$(files tongue$threads)"
done
generate --steps 13 --out tongue13 && generate --steps 60 --resume --out tongue13
same "stopped and resumed" "$wanted" "$(files tongue13)"
reported=$(awk -F'"valid_loss": ' '/"best": true/ { split($2, v, ","); loss = v[1] } END { print loss }' tongue/log.jsonl)
measured=$("$qkv" perplexity -m tongue --input heldout.txt --context 9 --json | sed 's/.*"nats_per_token": \([0-9.]*\).*/\1/')
check "perplexity is the loss that training reports: $reported and $measured" \
    awk -v a="$reported" -v b="$measured" 'BEGIN { exit !(a > 0 && a - b < 5e-6 && b - a < 5e-6) }'
contains "in words" "$("$qkv" perplexity -m tongue --input heldout.txt --context 9)" "documents    30" "nats/token" "bits/byte"
tokens() { "$qkv" perplexity -m tongue --input heldout.txt --context 9 --json "$@" | sed 's/.*"tokens": \([0-9]*\).*/\1/'; }
same "a smaller stride counts as many tokens" "$(tokens)" "$(tokens --stride 2)"
same "which are the characters and an end a line" "$(wc -m <heldout.txt | tr -d ' ')" "$(tokens)"
check "generate" run 0 "" generate -m tongue -p "ab" --max-tokens 10
for kind in paragraphs files; do
    check "documents by $kind" run 0 "" train generate --train train.txt --documents $kind $size --steps 2 --quiet --out by-$kind
done

contains "what a language model reads is told" "$("$qkv" train generate --train train.txt --valid heldout.txt $size --context 9 --steps 2 \
    --out told-tongue 2>&1)" "documents   120, cut into " " windows" "validation  30" "vocabulary  " " byte pairs" "parameters  " "updates     2, "

# ---- mask, embed, similar ----
cut -f2 train.tsv >plain.txt
contains "what an encoder reads is told" "$("$qkv" train mask --train plain.txt $size --steps 2 --out told-mask 2>&1)" "documents   200" \
    "vocabulary  " "updates     2, "
mask() {
    "$qkv" train mask --train plain.txt --valid valid.txt $size --tokens words --lr 0.01 --schedule constant --valid-every 20 --quiet "$@"
}
check "train mask" mask --steps 40 -t 1 --out encoder
wanted=$(files encoder)
for threads in 2 4; do
    mask --steps 40 -t $threads --out encoder$threads
    same "the same bytes at $threads threads" "$wanted" "$(files encoder$threads)"
done
mask --steps 11 --out encoder11 && mask --steps 40 --resume --out encoder11
same "stopped and resumed" "$wanted" "$(files encoder11)"
check "its words are guessed better in the end" awk -F'"valid_loss": ' '/valid_loss/ { split($2, v, ","); if (!first) first = v[1]; last = v[1] }
    END { exit !(last < first) }' encoder/log.jsonl
tune() { "$qkv" train classify --train train.tsv --from encoder --max-tokens 256 --schedule constant --quiet "$@"; }
check "classify starts from it" tune --steps 1 --lr 1e-20 --out tuned
"$qkv" embed -m encoder --input valid.txt >vectors
same "with its weights" "$(cksum <vectors)" "$("$qkv" embed -m tuned --input valid.txt | cksum)"
tune --steps 12 --out tuned12 && tune --steps 5 --out tuned5 && tune --steps 12 --resume --out tuned5
same "and may stop and resume" "$(files tuned12)" "$(files tuned5)"
same "a vector a line, of length 1" 40 "$(awk 'NF == 16 { s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s > 0.9999 && s < 1.0001) n++ } END { print n }' vectors)"
same "raw ones are not" 0 "$("$qkv" embed -m encoder --raw --input valid.txt |
    awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s > 0.9999 && s < 1.0001) n++ } END { print n + 0 }')"
contains "as JSON" "$("$qkv" embed -m encoder --format json --input valid.txt | sed -n 1p)" "[" ", " "]"
check "as .npy" run 0 "wrote vectors.npy" embed -m encoder --input valid.txt --out vectors.npy
"$qkv" embed -m encoder --format json --input valid.txt | tr -d '[],' >vectors.json
for text in vectors vectors.json; do
    # shellcheck disable=SC2046
    "$make_npy" read.npy f4 40,16 $(cat $text)
    same "$text read back: the same bits" "$(tail -c 2560 vectors.npy | cksum)" "$(tail -c 2560 read.npy | cksum)"
done
same "of 40 x 16 numbers" 2688 "$(wc -c <vectors.npy | tr -d ' ')"
for pooling in first last; do check "by $pooling" run 0 "" embed -m encoder --pooling $pooling --input valid.txt; done
check "attention pooling, of a classifier that has it" run 0 "" embed -m pairs --pooling attention --input valid.txt
same "the nearest line is the line itself" "1.0000 3" "$(sed -n 3p valid.txt | "$qkv" similar -m encoder --corpus valid.txt --top 1 | awk 'NR == 2 { print $1, $2 }')"
same "as many as asked for" 4 "$(echo great | "$qkv" similar -m encoder --corpus valid.txt --top 3 | wc -l | tr -d ' ')"
"$make_model" translator pair plain.txt
check "a translator's encoder serves" run 0 "" embed -m translator --input valid.txt

# ---- classify as chosen: words without punctuation, and counts of them beside attention ----
awk 'BEGIN { split("refund parcel login", w); split("please, now thanks today asap soon", e, " "); for (i = 0; i < 60; i++)
    print w[1 + i % 3] "s\t" (i % 2 ? "my " : "the ") w[1 + i % 3] " " e[1 + int(i / 3) % 6] }' >tickets.tsv
chosen() { "$qkv" train classify --train tickets.tsv --valid tickets.tsv --schedule constant --steps 9 --valid-every 3 --quiet "$@"; }
check "as chosen" chosen -t 1 --out counted
contains "counts are chosen" "$(cat counted/config.json)" '"ngrams": 524288'
printf 'refund!\n(refund)\n"Refund"...\nREFUND\n' >signs.txt
same "punctuation does not hide a word" "refunds refunds refunds refunds" "$("$qkv" classify -m counted --input signs.txt | cut -f1 | tr '\n' ' ' | sed 's/ $//')"
chosen -t 3 --out counted3
same "the same bytes at 3 threads" "$(files counted)" "$(files counted3)"
chosen --steps 4 --out halves && chosen --resume --out halves
same "stopped and resumed" "$(weights counted)" "$(weights halves)"
chosen --ngrams 524288 --tokens wordpunct --out typed
same "typed, the counts give the same" "$(files counted)" "$(files typed)"
chosen --ngrams 0 --out uncounted
refuse "and without them there are others" cmp -s counted/model.safetensors uncounted/model.safetensors
"$qkv" classify -m counted --input signs.txt >alone
same "a line alone, and among others" "$(head -1 alone)" "$(printf 'refund!\n' | "$qkv" classify -m counted)"
check "in 8 bits" run 0 "" classify -m counted --int8 --input signs.txt
same "the counts stay" "refunds" "$(cut -f1 out | sort -u)"
check "attention is there to be seen" run 0 "" attend -m counted "refund!"
check "and what it is due to" run 0 "" why -m counted --json "refund!"
refused "export says how to do without" 5 "--ngrams 0" export -m counted --as modernbert -o exported
refused "several labels have none" 2 "--ngrams is for texts with one label" train classify --train tickets.tsv --label-separator , --ngrams 64 --out no

# ---- tables as spreadsheets write them ----
awk -F'\t' 'BEGIN { printf "\357\273\277id;Text;Art\r\n" } { gsub(/"/, "\"\"", $2); printf "%d;\"%s; so, so\";%s%s\r\n", NR, $2,
    NR % 50 ? $1 : toupper($1), NR % 3 ? "" : " " }' train.tsv >german.csv
german="train classify $size --tokens words --label-column Art --text-column Text --steps 40 --lr 0.01 --schedule constant"
check "CSV with semicolons" run 0 '4 labels differ only in case or white space: "NEG" (2), "neg" (98); "POS" (2), "pos" (98): --merge-labels merges them' \
    $german --train german.csv --out german
contains "the summary shows it" "$(cat err)" 'columns     separated by ";"'
"$qkv" $german --train german.csv --merge-labels --out merged --quiet
contains "labels are merged" "$(tr -d ' \n' <merged/training.json)" '"classes":{"neg":'
same "two of them" 2 "$("$qkv" info -m merged | grep -c '^ *neg$\|^ *pos$\|neg, pos' | sed 's/^1$/2/')"
iconv -f UTF-8 -t UTF-16 german.csv >wide.csv
for other in "german.csv --separator ;" "german.csv --separator semicolon" "wide.csv"; do
    "$qkv" $german --train $other --merge-labels --out other --quiet 2>err || cat err
    same "$other gives the same" "$(weights merged)" "$(weights other)"
    rm -rf other
done
"$qkv" $german --ngrams 64 --train german.csv --out counted --quiet
"$qkv" why -m counted "great" >out 2>err
contains "attributions are a part of it" "$(cat err)" "this classifier also counts words and pairs of words"
"$qkv" attend -m counted "great" >out 2>err
contains "so is attention" "$(cat err)" "this classifier also counts words and pairs of words"
printf 'L\344nge;Text\nx;good\n' >latin.csv
check "a header that is not UTF-8" run 4 "latin.csv: line 1 is not UTF-8: replaced by U+FFFD" $german --train latin.csv --out no
refused "another separator" 4 'the header has no column "Art", it has: id;Text;Art' $german --train german.csv --separator , --out no
refused "a column in another case" 4 'the header has no column "art": did you mean "Art"?' $german --label-column art --train german.csv --out no
refused "no separator" 2 '"x" separates no columns: expected tab, or one of , ; |' $german --train german.csv --separator x --out no
contains "the columns of the training are read again" "$("$qkv" classify -m merged --eval german.csv)" "(200 of 200)"
"$qkv" classify -m merged --eval valid.tsv >/dev/null 2>err
same "unless the file has others" "" "$(cat err)"
printf '\357\273\277id;Text;prediction\r\n1;"great; ""long""";x\r\n2; ;\r\n\r\n3;"dull\nfilm";"a;b"\r\n' >new.csv
check "classify a table" run 0 "new.csv: empty texts: 2, the first is line 3: no prediction" classify -m merged -i new.csv -o said.csv
printf '\357\273\277id;Text;prediction;prediction_2;probability\n1;"great; ""long""";x;pos;P\n2; ;;;\n;;;;\n3;"dull\nfilm";"a;b";neg;P\n' >wanted.csv
sed 's/0\.[0-9]*$/P/' said.csv >found.csv
check "its columns and the predictions" cmp wanted.csv found.csv
same "the rows at any batch" "$(cat said.csv)" "$("$qkv" classify -m merged -i new.csv -o batch.csv --batch 1 --quiet; cat batch.csv)"
same "a line each without such a file" "pos - - neg" "$("$qkv" classify -m merged -i new.csv --quiet | cut -f1 | sed 's/^$/-/' | tr '\n' ' ' | sed 's/ $//')"
same "the same of standard input" "$("$qkv" classify -m merged -i new.csv --quiet)" "$("$qkv" classify -m merged --text-column Text --quiet <new.csv)"
cat new.csv | "$qkv" classify -m merged --text-column Text --quiet -i /dev/stdin >out
same "and of a pipe that has a name" "$("$qkv" classify -m merged -i new.csv --quiet)" "$(cat out)"
contains "as JSON" "$("$qkv" classify -m merged -i new.csv --json --quiet)" '{"line": 2, "label": "pos", ' '{"line": 3, "label": null}' '{"line": 5, "label": "neg"'
"$qkv" classify -m merged -i new.csv -o said.tsv --all --quiet
contains "with all classes, as TSV" "$(head -1 said.tsv)" "id	Text	prediction	prediction_2	probability	neg	pos"
cut -f2 valid.tsv | head -3 >texts.tsv
"$qkv" classify -m whole -i texts.tsv -o out.tsv
same "a table of texts alone" "$("$qkv" classify -m whole <texts.tsv | paste texts.tsv -)" "$(cat out.tsv)"
"$qkv" classify -m whole -i valid.tsv -o out.tsv
same "text behind its label, as in training" "$("$qkv" classify -m whole <valid.txt | paste valid.tsv -)" "$(cat out.tsv)"
printf '{"text": "great", "n": {"a": 1}}\n{"text": null}\n{"text":"dull","prediction":"?"} \n' >new.jsonl
"$qkv" classify -m whole -i new.jsonl -o said.jsonl --quiet
sed 's/0\.[0-9]*}/P}/' said.jsonl >found.jsonl
printf '{"text": "great", "n": {"a": 1}, "prediction": "pos", "probability": P}\n{"text": null, "prediction": null, "probability": null}\n{"text":"dull","prediction":"?", "prediction_2": "neg", "probability": P}\n' >wanted.jsonl
check "JSON lines" cmp wanted.jsonl found.jsonl
refused "a workbook" 2 "no workbooks are written: give a name that ends in .csv" classify -m whole -i new.csv -o said.xlsx
refused "JSON lines as a table" 2 "JSON lines have no columns" classify -m whole -i new.jsonl -o said.csv
refused "a table as JSON lines" 2 "a table does not become JSON lines" classify -m whole -i new.csv -o said.jsonl
refused "the table itself" 2 "is the file that is read" classify -m merged -i new.csv -o new.csv
refused "columns of a text" 2 "columns are of tables" classify -m merged --text-column 1 "a text"
refused "a column that is not there" 4 'no column "Betreff"' classify -m merged -i new.csv --text-column Betreff
printf 'id,a,b\n1,x,y\n' >which.csv
refused "a column that nobody named" 4 'the header has no column "text", it has: id,a,b' classify -m whole -i which.csv -o said.csv
printf 'text\ngreat\n"dull\n' >open.csv
check "what comes before a row that is refused" run 4 "open.csv: line 3 opens a quote that is never closed" classify -m whole -i open.csv
same "is classified" pos "$(cut -f1 out)"

# ---- refused ----
train="train classify $size --tokens words --quiet --steps 2 --out no"
printf 'neg\tdull\nmeh\tso so\n' >unknown.tsv
refused "strict: an unknown label at evaluation" 4 'line 2: the model does not know the label "meh"' classify -m whole --eval unknown.tsv --strict
refused "strict: an unknown label in --valid" 4 'line 2: the label "meh" is not in train.tsv' $train --train train.tsv --valid unknown.tsv --strict
check "else it is counted" run 0 'unknown.tsv: texts with an unknown label: 1, the first is line 2, "meh": left out' \
    classify -m whole --eval unknown.tsv
contains "and not measured" "$(cat out)" "accuracy 1.0000 (1 of 1)"
check "in --valid too" run 0 'unknown.tsv: texts with an unknown label: 1, the first is line 2, "meh": left out' \
    train classify $size --tokens words --steps 2 --train train.tsv --valid unknown.tsv --out unknown
printf 'meh\tso so\n' >strange.tsv
refused "unknown labels alone" 4 'strange.tsv: line 1: the label "meh" is not in train.tsv, nor is any other' $train --train train.tsv --valid strange.tsv
refused "at evaluation too" 4 'line 1: the model does not know the label "meh"' classify -m whole --eval strange.tsv
grep ^neg train.tsv >one.tsv
refused "one class" 4 'every text has the label "neg"' $train --train one.tsv
printf 'neg\t \npos\t\n' >blank.tsv
refused "empty texts alone" 4 "blank.tsv: there are no texts" $train --train blank.tsv
refused "at evaluation too" 4 "blank.tsv: there are no texts" classify -m whole --eval blank.tsv --quiet
cat blank.tsv >>unknown.tsv
check "some empty texts are counted" run 0 "unknown.tsv: empty texts: 2, the first is line 3" train classify $size --steps 2 --train unknown.tsv --out some

# ---- labelled text that is not what it is taken for ----
(printf 'label\tsentence\r\n'; cat train.tsv) >headed.tsv
(printf 'Label\tcontent\n'; cat valid.tsv) >headed.valid.tsv
awk -F'\t' '{ print $2 "\t" $1 }' train.tsv >swapped.tsv
(printf 'review\tsentiment\n'; cat swapped.tsv) >both.tsv
classes() { "$qkv" train classify $size --steps 2 --dry-run --out no "$@" 2>&1 | grep '^classes'; }
refused "a header is no text" 4 'headed.tsv: line 1, "label" with the text "sentence", is a header: give --header' $train --train headed.tsv
same "it is passed over" "classes     2: neg (100), pos (100)" "$(classes --train headed.tsv --header --valid headed.valid.tsv)"
same "or names the columns" "classes     2: neg (100), pos (100)" "$(classes --train headed.tsv --label-column label --text-column sentence)"
refused "strict: a header of the other text alone" 4 'line 1: the label "Label" is not in train.tsv: if line 1 is a header, give --header' \
    $train --train train.tsv --valid headed.valid.tsv --strict
check "a header at evaluation is no text" run 0 'line 1, "Label": left out; if line 1 is a header, give --header' \
    classify -m whole --eval headed.valid.tsv
contains "and not measured" "$(cat out)" "of 40"
contains "where --header helps" "$("$qkv" classify -m whole --eval headed.valid.tsv --header)" "of 40"
refused "text before label" 4 'different labels, such as "' $train --train swapped.tsv
contains "the option is named" "$(cat err)" "swapped.tsv: 200 texts have 1" "--label-column 2 --text-column 1"
same "and helps" "classes     2: neg (100), pos (100)" "$(classes --train swapped.tsv --label-column 2 --text-column 1)"
refused "with a header" 4 "give --label-column sentiment --text-column review" $train --train both.tsv
same "whose names help" "classes     2: neg (100), pos (100)" "$(classes --train both.tsv --label-column sentiment --text-column review)"
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 10100; i++) print "a text of its own " i "\tpos" }' >thousands.tsv
refused "among thousands of labels too" 4 "give --label-column label --text-column text" $train --train thousands.tsv
tail -n +2 thousands.tsv >headless.tsv
refused "before they are counted to the end" 4 "10000 different labels" $train --train headless.tsv
same "nothing was trained" "" "$(ls no 2>/dev/null)"
refused "columns of a CSV by other names" 4 "--label-column and --text-column choose columns" $train --train train.csv --text-column words
awk 'BEGIN { for (i = 0; i < 24; i++) print "class" i % 13 "\ta text of class " i % 13 }' >few.tsv
refused "labels for more than half of the texts" 4 "Then --label-column 1 says so" $train --train few.tsv
contains "are what they are where it is said" "$(classes --train few.tsv --label-column 1)" "classes     13: class0 (2)"
(echo label,text; tr '\t' , <few.tsv) >few.csv
contains "or has a name" "$(classes --train few.csv)" "classes     13: class0 (2)"
while read -r label text; do mkdir -p "few/$label"; echo "$text" >"few/$label/$(ls "few/$label" | wc -l).txt"; done <few.tsv
contains "or is a folder" "$(classes --train few)" "classes     13: class0 (2)"
(echo 'Klasse	der Text'; cat train.tsv) >maybe.tsv
check "what may be a header is told" run 0 'the label "Klasse" of line 1 occurs nowhere else: if line 1 is a header, give --header' \
    train classify $size --steps 2 --train maybe.tsv --out maybe
awk -F'\t' 'NR % 20 == 1' swapped.tsv >fewer.tsv
check "and labels longer than texts" run 0 "the labels are longer than the texts" train classify $size --steps 2 --train fewer.tsv --out fewer
check "a warning is no error, and no word when quiet" run 0 "" train classify $size --steps 2 --quiet --train maybe.tsv --out quiet
same "no word" "" "$(cat err)"

printf 'label,text\npos,fine\nneg,"never ends\nand so\n' >open.csv
refused "a CSV with an open quote" 4 "open.csv: line 3" $train --train open.csv
printf '{"label": "a", "text": "b"}\n[1, 2]\n' >list.jsonl
refused "a JSONL line that is not an object" 4 "list.jsonl: line 2" $train --train list.jsonl
printf '{"label": "a\\tb", "text": "b"}\n' >tab.jsonl
refused "a label with a TAB" 4 "TAB" $train --train tab.jsonl
refused "a column that is not there" 4 "stars" $train --train train.csv --label-column stars
refused "a missing file" 3 "none.tsv" $train --train none.tsv
refused "a missing model" 3 "nowhere" classify -m nowhere
refused "a missing input" 3 "none.txt" classify -m whole --input none.txt
refused "not a classifier" 5 'translator: the model has no head for "classify": it can translate' classify -m translator --input valid.txt
refused "a matrix without --eval" 2 "--confusion needs --eval" classify -m whole --confusion matrix.csv
refused "a threshold of one label" 2 "--threshold is for models of several labels a text, and whole is none" classify -m whole --threshold 0.3 x
refused "a line that is no pair" 4 "line 1: a pair has a TAB" classify -m pairs --pairs --input valid.txt
refused "a translator has no perplexity" 5 'no head for "generate": it can translate' perplexity -m translator --input heldout.txt
refused "a stride longer than the context" 2 "--stride 10 is more than --context 9" perplexity -m tongue --input heldout.txt --context 9 --stride 10
: >nothing.txt
refused "perplexity of nothing" 4 "there is no text" perplexity -m tongue --input nothing.txt
refused "perplexity of a missing file" 3 "none.txt" perplexity -m tongue --input none.txt
refused "a language model does not embed" 5 'no head for "embed": it can generate' embed -m tongue --input valid.txt
refused "attention pooling without its weights" 2 "pooling" embed -m encoder --pooling attention --input valid.txt
refused "similar to nothing" 4 "nothing.txt" similar -m encoder --corpus nothing.txt
refused "training on nothing" 4 "there is no text" train generate $size --train nothing.txt --quiet --out no
refused "a context longer than the positions" 2 "--context 9 is more than the 4 positions" train generate $size --train train.txt \
    --context 9 --positions learned --longest 4 --quiet --out no9
check "a chosen context is no longer than the positions" run 0 "" train generate --train train.txt --dim 16 --heads 2 --layers 1 --inner 32 --vocab 300 \
    --max-tokens 256 --positions learned --longest 64 --steps 2 --quiet --out short
contains "but as long" "$(cat short/training.json)" '"context": "64"'
refused "a rate of 1" 2 "--rate" train mask $size --train plain.txt --rate 1 --quiet --out no
refused "a mask that the tokenizer lacks" 5 "<mask>" train mask --from whole --train plain.txt --quiet --out no6
refused "a decoder is no start for a classifier" 2 "layer" train classify --from tongue --train train.tsv --quiet --out no7
refused "the width is decided already" 2 "--dim cannot be changed" train classify --from encoder --dim 32 --train train.tsv --quiet --out no8
refused "another job's folder" 2 "" train generate --train train.txt $size --resume --quiet --out whole
finish
