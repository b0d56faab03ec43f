#!/bin/sh
# example.sh: qkv example: the files it makes, and what it refuses. usage: example.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1
export LC_ALL=C

# make FOLDER OPTIONS...
make() {
    to=$1
    shift
    "$qkv" example translate --out "$to" "$@" >out 2>err
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

# ---- what is refused ----
refused "no job" 2 "one of: translate" example
refused "an unknown job" 2 "one of: translate" example compose --out x
refused "no --out" 2 "--out is missing" example translate
refused "no pairs" 2 "whole number from 1" example translate --out x --pairs 0
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
contains "is named" "$(cat err)" "taken/train.tsv: cannot write"
if [ -e /dev/full ]; then
    mkdir full
    ln -s /dev/full full/test.tsv
    refused "a full disk" 3 "full/test.tsv: cannot write: No space" example translate --out full
fi
contains "help" "$("$qkv" example translate --help)" --out --pairs --seed --quiet train.tsv
finish
