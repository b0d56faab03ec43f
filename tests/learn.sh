#!/bin/sh
# learn.sh: the examples learn what there is to learn, and nothing where there is nothing. usage: learn.sh QKV CLASSIFY GENERATE
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") classify=$(realpath "$2") generate=$(realpath "$3")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
"$qkv" example classify --out . --pairs 4000 --quiet
"$qkv" example generate --out . --lines 4000 2>told

# between NAME LEAST VALUE MOST
between() { check "$1: $2 <= $3 <= $4" awk -v a="$2" -v x="$3" -v b="$4" 'BEGIN { exit !(x != "" && a <= x && x <= b) }'; }

# ---- classes; a label that another sentence had says nothing ----
accuracy() { "$classify" "$@" | awk '/accuracy/ { print $NF }'; }
awk -F'\t' '{ label[NR] = $1; text[NR] = $2 } END { for (i = 1; i <= NR; i++) print label[(i * 1777 + 5) % NR + 1] "\t" text[i] }' \
    train.tsv >mixed.tsv
same "mixed labels are as many of each" "$(cut -f1 train.tsv | sort | cksum)" "$(cut -f1 mixed.tsv | sort | cksum)"
between "it tells praise from blame" 0.85 "$(accuracy train.tsv test.tsv 600)" 1
between "but not by mixed labels" 0.4 "$(accuracy mixed.tsv test.tsv 600)" 0.6

# ---- a language; words in any order have none ----
nats() { "$generate" "$@" | awk '/nats a line/ { print $1 }'; }
# mix SEED: all words in another order, in lines as long as they were
mix() {
    awk -v x="$1" '{ n[NR] = NF; for (i = 1; i <= NF; i++) w[m++] = $i }
        END { for (i = m - 1; i > 0; i--) { x = (x * 1103515245 + 12345) % 2147483648; j = int(x / 2147483648 * (i + 1))
                  t = w[i]; w[i] = w[j]; w[j] = t }
              for (r = 1; r <= NR; r++) { s = ""; for (i = 0; i < n[r]; i++) s = s (i ? " " : "") w[k++]; print s } }'
}
# alone TRAIN TEST: nats a line for one who knows how often each word comes, and no more
alone() {
    awk 'FNR == NR { for (i = 1; i <= NF; i++) c[$i]++; c["\n"]++; n += NF + 1; next }
        { for (i = 1; i <= NF; i++) s -= log((c[$i] + 0.5) / n); s -= log(c["\n"] / n); lines++ }
        END { printf "%.3f", s / lines }' "$1" "$2"
}
mix 1 <train.txt >train.mixed
mix 2 <test.txt >test.mixed
bound=$(awk '/test.txt/ { sub(/.*lines, /, ""); print $1 }' told)
words=$(alone train.txt test.txt)
between "it knows the language nearly as it is" "$(awk -v b="$bound" 'BEGIN { print 0.99 * b }')" "$(nats train.txt test.txt 300)" \
    "$(awk -v b="$bound" 'BEGIN { print 1.08 * b }')"
between "which is far from knowing its words alone" 0 "$(awk -v b="$bound" 'BEGIN { print 1.08 * b }')" \
    "$(awk -v w="$words" 'BEGIN { print 0.75 * w }')"
between "but no more than words where there is no order" "$(awk -v w="$words" 'BEGIN { print 0.93 * w }')" \
    "$(nats train.mixed test.mixed 300)" "$(awk -v w="$words" 'BEGIN { print 1.1 * w }')"
finish
