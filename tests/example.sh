#!/bin/sh
# example.sh: qkv example: the files it makes, and what it refuses. usage: example.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1
export LC_ALL=C

job=translate
# make FOLDER OPTIONS...
make() {
    to=$1
    shift
    "$qkv" example $job --out "$to" "$@" >out 2>err
}
# refused NAME STATUS PIECE ARGUMENTS...: the exit status, one sentence with PIECE, no result.
refused() {
    case_name=$1 wanted=$2 piece=$3
    shift 3
    "$qkv" "$@" >out 2>err
    status=$?
    if [ "$status" = "$wanted" ] && [ "$(wc -l <err)" = 1 ] && grep -q "^qkv: .*$piece" err && [ ! -s out ]; then ok "$case_name"
    else not_ok "$case_name" "status $status, wanted $wanted and \"$piece\":" "$(cat err)" "$(cat out)"; fi
}
lines() { wc -l <"$1" | tr -d ' '; }

# ---- the files ----
check "a folder is made" make one
contains "and what was written is told" "$(cat err)" "one/train.tsv: 20000 pairs" "one/valid.tsv: 500" "one/test.tsv: 500"
same "nothing on stdout" 0 "$(wc -c <out | tr -d ' ')"
same "their sizes" "20000 500 500" "$(lines one/train.tsv) $(lines one/valid.tsv) $(lines one/test.tsv)"
same "each line is two texts" 21000 "$(cat one/*.tsv | awk -F'\t' 'NF == 2 && $1 != "" && $2 != ""' | wc -l | tr -d ' ')"
same "the three files share no sentence, and none has one twice" 21000 "$(cut -f1 one/*.tsv | sort -u | wc -l | tr -d ' ')"
same "a sentence starts with a capital letter" 0 "$(cut -f1 one/*.tsv | grep -vc '^[A-Z]')"
same "has single spaces, and no full stop" 0 "$(cut -f1 one/*.tsv | grep -c '  \|\.\| $\|^ ')"
same "a question asks in both languages" "" \
    "$(awk -F'\t' '($1 ~ /\?$/) != ($2 ~ /吗？$/)' one/train.tsv one/valid.tsv one/test.tsv | head -3)"
same "Chinese has no ASCII" 0 "$(cut -f2 one/*.tsv | grep -c '[ -~]')"
check "and is UTF-8" "$qkv" tokenizer --train one/train.tsv one/valid.tsv one/test.tsv --strict --size 300 --out t.json
printf 'I love you\t我爱你\nThe cat sat on the mat\t猫坐在垫子上\n' >named
printf 'Xiao Ming went to the shop to buy apples, then he went home\t小明去商店买了苹果，然后他回家了\n' >>named
head -n 3 one/test.tsv >first
check "the three named sentences are the first to be tested" cmp first named

# ---- seeds ----
check "--quiet" make again --seed 1 --quiet
same "says nothing" "" "$(cat err)"
for name in train valid test; do check "the same seed gives the same $name.tsv" cmp one/$name.tsv again/$name.tsv; done
check "another seed" make two --seed 2
for name in train valid test; do refuse "gives another $name.tsv" cmp -s one/$name.tsv two/$name.tsv; done
check "seed 0" make zero --seed 0 --pairs 1
same "and one pair" 1 "$(lines zero/train.tsv)"
check "many pairs" make many --seed 3 --pairs 200000
cat one/*.tsv two/*.tsv many/*.tsv | sort -u >all
same "a sentence has one translation, whatever the seed" "" "$(cut -f1 all | uniq -d | head -3)"
check "a folder that is there is used again" make zero --pairs 10
same "and its files replaced" 10 "$(lines zero/train.tsv)"

# ---- labelled sentences ----
job=classify
check "labelled sentences" make reviews
contains "and what was written is told" "$(cat err)" "reviews/train.tsv: 20000 pairs" "reviews/test.tsv: 500 pairs"
same "their sizes" "20000 500 500" "$(lines reviews/train.tsv) $(lines reviews/valid.tsv) $(lines reviews/test.tsv)"
same "each line is a label and a sentence" 21000 "$(cat reviews/*.tsv | grep -Ecx '(pos|neg)	[A-Z][a-zI]*( [a-zI]+)+')"
same "no sentence comes twice" 21000 "$(cut -f2 reviews/*.tsv | sort -u | wc -l | tr -d ' ')"
half=$(cut -f1 reviews/train.tsv | grep -c pos)
check "half of them are praise" test "$half" -gt 9500 -a "$half" -lt 10500
"$qkv" example classify --out many-reviews --pairs 200000 --seed 5 --quiet
cat many-reviews/*.tsv reviews/*.tsv | sort -u >all-reviews
same "a sentence has one label, whatever the seed" "" "$(cut -f2 all-reviews | sort | uniq -d | head -3)"
cat >simple.awk <<'EOF'
BEGIN {
    split("good great funny wonderful strong clever gripping elegant fresh beautiful superb moving honest charming", a, " ")
    for (i in a) praise[a[i]] = 1
}
$2 ~ /^Th(e|is) [a-z]+ (was|were) (never )?[a-z]+$/ || $2 ~ /^Th(e|is) [a-z]+ (was|were) not [a-z]+ at all$/ {
    n = split($2, words, " ")
    denied = $2 ~ / (not|never) /
    adjective = words[$2 ~ / at all$/ ? n - 2 : n]
    if (((adjective in praise) != denied) != ($1 == "pos") && !wrong++) print
    seen[denied]++
}
END { exit wrong || seen[0] < 100 || seen[1] < 100 }
EOF
check "what is denied counts as its opposite" awk -F'\t' -f simple.awk all-reviews
sed 's/^pos/xyz/; s/^neg/pos/; s/^xyz/neg/' all-reviews >all-wrong
refuse "which would be noticed" awk -F'\t' -f simple.awk all-wrong
# labels PATTERN: those of the sentences that fit it
labels() { grep -E "$1" all-reviews | cut -f1 | sort -u | xargs; }
same "what was hoped for counts as its opposite" "pos neg" \
    "$(labels 'I expected a (dull|bad|weak) [a-z]+ but the [a-z]+ was (fresh|great|funny|clever)$') $(
    labels 'I expected a (clever|great) [a-z]+ but the [a-z]+ was (dull|weak|bad)$')"
same "the clause after \"but in the end\" counts" "pos neg" \
    "$(labels 'in the end the [a-z]+ was (very |quite |so )(great|funny)$') $(
    labels 'in the end the [a-z]+ was (very |quite |so )(dull|weak)$')"
same "and the one before \"even if\"" "pos neg" \
    "$(labels '	The [a-z]+ was (very |quite |so )(great|funny) even if') $(
    labels '	The [a-z]+ was (very |quite |so )(dull|weak) even if')"
same "no word decides: the best of them is right in less than two cases of three" "" "$(awk -F'\t' '
    { n = split(tolower($2), words, " "); split("", seen)
      for (i = 1; i <= n; i++) if (!seen[words[i]]++) { all[words[i]]++; if ($1 == "pos") pos[words[i]]++ } }
    END { for (w in all) { p = pos[w] / all[w]; if (all[w] > 100 && (p > 2 / 3 || p < 1 / 3)) print w, p } }' \
    reviews/train.tsv)"
check "the same seed again" make reviews-again --seed 1
check "gives the same files" diff -r reviews reviews-again
check "another seed" make reviews-two --seed 2 --pairs 100
same "and fewer sentences" 100 "$(lines reviews-two/train.tsv)"
refuse "gives others" cmp -s reviews/test.tsv reviews-two/test.tsv

# ---- reports and their summaries ----
job=summarize
check "reports" make reports
same "their sizes" "10000 500 500" "$(lines reports/train.tsv) $(lines reports/valid.tsv) $(lines reports/test.tsv)"
same "no report comes twice" 11000 "$(cut -f1 reports/*.tsv | sort -u | wc -l | tr -d ' ')"
same "each has three or four sentences" 0 "$(cut -f1 reports/*.tsv | grep -Evcx '([A-Z][A-Za-z ]+\. ){2,3}[A-Z][A-Za-z ]+\.')"
cat >summary.awk <<'EOF'
{
    n = split($2, s, "[ .]") # The TEAM won MORE to FEWER in CITY.
    won = $1 ~ "The " s[2] " won by " s[4] " goals to " s[6] "\\." || $1 ~ "With " s[4] " goals to " s[6] " the " s[2] " won\\."
    if (n != 9 || !won || $1 !~ " in " s[8] "\\." || gsub(/ won/, "", $1) != 1) wrong++
}
END { exit wrong > 0 }
EOF
check "a summary tells what its report says" awk -F'\t' -f summary.awk reports/train.tsv reports/valid.tsv reports/test.tsv
sed '7s/ won \([a-z]*\) to \([a-z]*\) in/ won \2 to \1 in/' reports/test.tsv >broken
refuse "which would be noticed" awk -F'\t' -f summary.awk broken
check "some name a team that did not win" grep -Eq 'The (Lions|Bears) played in .*The (Foxes|Wolves) won' reports/train.tsv

# ---- the toy language ----
job=generate
check "lines of a toy language" make toy
same "their sizes" "20000 500 500" "$(lines toy/train.txt) $(lines toy/valid.txt) $(lines toy/test.txt)"
contains "and their surprise is told" "$(cat err)" "toy/train.txt: 20000 lines, " "nats a line" "a character"
# The mean of 20000 lines is within 5 deviations (5 nats a line each) of what the rules give.
same "which is that of the language" close "$(awk '/train.txt/ { mean = $6 } /language itself/ { entropy = $6 }
    END { d = mean - entropy; print (mean > 5 && d < 0.18 && d > -0.18) ? "close" : mean " for " entropy }' err)"
same "and is told a character too" close "$(awk -v bytes="$(wc -c <toy/test.txt)" '/test.txt/ { line = $6; each = $10 }
    END { d = 500 * line / bytes - each; print (d < 0.0001 && d > -0.0001) ? "close" : 500 * line / bytes " for " each }' err)"
# Nouns and verbs on a stack: a verb takes the noun before it on its level, an object after a verb none.
cat >rules.awk <<'EOF'
BEGIN {
    split("cat dog bird fox hen frog goat mouse", one); for (i in one) noun[one[i]] = "one"
    split("cats dogs birds foxes hens frogs goats mice", many); for (i in many) noun[many[i]] = "many"
    split("sleeps runs sings jumps hides waits sees likes follows hears helps finds", a); for (i in a) verb[a[i]] = "one"
    split("sleep run sing jump hide wait see like follow hear help find", b); for (i in b) verb[b[i]] = "many"
}
{
    depth = 0; wrong = ""
    subjects = 0; done = 0
    for (i = 1; i <= NF; i++) {
        if ($i == "(" || $i == "[") { open[++depth] = $i; was_done[depth] = done; done = 0 }
        else if ($i == ")" || $i == "]") {
            if (depth < 1 || (open[depth] == "(") != ($i == ")")) wrong = "bracket"
            done = was_done[depth--]
        } else if ($i in noun) { if (!done) stack[++subjects] = noun[$i] }
        else if ($i in verb) {
            if (subjects < 1 || stack[subjects--] != verb[$i]) wrong = "agreement"
            done = subjects == depth
        } else if ($i !~ /^(the|that|small|big|old|young|quiet|red)$/) wrong = "word " $i
    }
    if (depth || subjects || wrong != "") { print wrong ": " $0; bad++ }
}
END { exit bad > 0 }
EOF
check "verbs agree and brackets close" awk -f rules.awk toy/train.txt toy/valid.txt toy/test.txt
echo "the cats [ the dog sleeps ] runs" >broken
refuse "which would be noticed" awk -f rules.awk broken
echo "the cats [ the dog sleeps ) run" >broken
refuse "of brackets too" awk -f rules.awk broken
check "agreement reaches over brackets and clauses" grep -q "s that the [a-z]*[a-rt-z] [a-z]*s [a-z]*[a-rt-z] the" toy/train.txt
check "the same seed again" make toy-again --quiet
same "quietly" "" "$(cat err)"
check "gives the same files" diff -r toy toy-again
check "another seed" make toy-two --seed 2 --lines 7
same "and few lines" 7 "$(lines toy-two/train.txt)"
refuse "gives others" cmp -s toy/test.txt toy-two/test.txt

# ---- what is refused ----
refused "no job" 2 "one of: translate" example
refused "an unknown job" 2 "one of: translate" example compose --out x
refused "no --out" 2 "--out is missing" example translate
refused "no pairs" 2 "whole number from 1" example translate --out x --pairs 0
refused "too many lines" 2 "--lines: at most 200000" example generate --out x --lines 200001
refused "pairs of lines" 2 "unknown option" example generate --out x --pairs 3
refused "too many labelled sentences" 2 "at most 200000" example classify --out x --pairs 200001
refused "too many pairs" 2 "at most 200000" example translate --out x --pairs 200001
refused "a seed that is no number" 2 "whole number from 0" example translate --out x --seed one
refused "an unknown option" 2 "did you mean \"--pairs\"" example translate --out x --pair 3
refused "an argument too many" 2 "unexpected argument" example translate x
check "and none of them made a folder" test ! -e x
refused "a folder in no folder" 3 "no/x: cannot make the folder" example translate --out no/x
: >file
refused "a file for a folder" 3 "file/test.tsv: cannot write" example translate --out file
mkdir taken taken/train.tsv
"$qkv" example translate --out taken >out 2>err
same "a folder in the place of a file" 3 $?
contains "is named" "$(cat err)" "taken/train.tsv: it is a folder"
if [ -e /dev/full ]; then
    mkdir full
    ln -s /dev/full full/test.tsv
    refused "a full disk" 3 "full/test.tsv: cannot write: No space" example translate --out full
fi
contains "help of each" "$("$qkv" example classify --help; "$qkv" example generate --help)" --pairs --lines test.tsv test.txt
contains "help" "$("$qkv" example translate --help)" --out --pairs --seed --quiet train.tsv
finish
