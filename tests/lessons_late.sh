#!/bin/sh
# lessons_late.sh: lessons 11 to 19 and the summary say what is true, in English and in Chinese. usage: lessons_late.sh QKV
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset LANGUAGE

# between NAME LEAST VALUE MOST
between() { check "$1: $2 <= $3 <= $4" awk -v a="$2" -v x="$3" -v b="$4" 'BEGIN { exit !(x != "" && a <= x && x <= b) }'; }
# says LESSON NAME PIECE...: in English, as one line with single spaces
says() {
    lesson=$1 what=$2
    shift 2
    contains "$lesson: $what" "$(tr -s ' \n' ' ' <"$lesson.en")" "$@"
}

for i in 11 12 13 14 15 16 17 18 19 summary; do
    check "lesson $i takes less than 10 seconds" timeout 10 "$qkv" learn "$i" --lang en --answer -t 1 -o pictures
    "$qkv" learn "$i" --lang en --answer -t 1 >"$i.en" 2>"$i.err"
    "$qkv" learn "$i" --lang zh --answer -t 1 >"$i.zh" 2>>"$i.err"
    "$qkv" learn "$i" --lang zh --answer -t 2 >"$i.zh2" 2>>"$i.err"
    same "lesson $i: nothing on stderr" "" "$(cat "$i.err")"
    check "lesson $i: the same bytes with 1 and 2 threads" cmp "$i.zh" "$i.zh2"
    same "lesson $i: the same numbers in both languages" \
        "$(grep -oE '[0-9]+\.[0-9]{3,}' "$i.en" | sort)" "$(grep -oE '[0-9]+\.[0-9]{3,}' "$i.zh" | sort)"
    same "lesson $i: no English paragraph in Chinese" "" "$(grep -v -e '^ ' -e 'the the' "$i.zh" | grep -E '[a-z]{2,} [a-z]{2,} [a-z]{2,}')"
    # GB18030 has one byte for a Latin letter and two for a Chinese one, as many as they take on a terminal
    same "lesson $i: no line is wider than 90 columns" "" \
        "$(sed 's/[“”]/"/g' "$i.zh" | iconv -f UTF-8 -t GB18030 | LC_ALL=C awk 'length($0) > 90 { print NR }')"
    [ "$i" = summary ] || contains "lesson $i: question and answer" "$(cat "$i.en" "$i.zh")" "Question: " "Answer: " "问题：" "答案："
done
same "a picture of the warm-up" "137 80 78 71" "$(od -An -tu1 -N4 pictures/warmup.png 2>&1 | xargs)"

says 11 "shapes" "source embedded, with positions (2, 5, 128)" "decoder's output (2, 4, 128)" "every word (2, 4, 100)" \
    "of the source (2, 4, 5, 5)" "causal (2, 4, 4, 4)" "of the memory (2, 4, 4, 5)"
says 11 "masks hide" "its padding is 0 in the encoder and 0 in the cross-attention" "later token in the decoder is 0."
says 11 "causality" "0 of the 384 numbers of the tokens before it change, and 128 of its own 128"
says 11 "the formulas count what is made" "The small one has 938496 weights" "it should have 938496." "base 6 512 8 2048 64 18.9 18.9 25.2 63.1" \
    "big 6 1024 16 4096 64 37.9 75.6 100.7 214.2"

says 12 "a look-up is a product" "elsewhere): largest difference 0.0000."
says 12 "sizes" "0.7071, whatever d is. At d = 512 it is 16 times as loud" "0.71 times the multiplied one"
says 12 "positions" "PE(0) 0.0000 1.0000 0.0000 1.0000" "PE(4) -0.7568 -0.6536 0.0400 0.9992" "both pairs give 1.5403" \
    "gather: id 512 at place 0 is outside 0..511"
# word + PE(4) is what stands under it
same "12: the sum is the sum" "" "$(awk '$1 == "E" && $2 == "sqrt(d)" { split($0, e) } $1 == "PE(4)" { split($0, p) }
    $1 == "sum" && $3 == 4 { for (i = 0; i < 4; i++) { d = e[3 + i] + p[2 + i] - $(4 + i); if (d > 2e-4 || d < -2e-4) print d } }' 12.en)"
says 12 "softmax" "x 0.6590 0.2424 0.0986 | 1.0000" "x + 100 0.6590 0.2424 0.0986" "2 x 0.8638 0.1169 0.0193" "[0.2247, -0.1598, -0.0650]"
says 12 "tied" "18.9 million weights, so two more would add 37.9 million to the 63.1 million"

says 13 "by hand" "max(0, x) 0.0 0.0 0.0 0.5 2.0" "0 3.0 -1.0 1.0" "0 5.5 -1.0 1 8.5 -4.0 2 0.5 1.0 3 2.5 2.0"
says 13 "tokens are alone" "2 numbers of the result change, and 0 of them belong to other" "largest difference is 0.000000: a window"
says 13 "what a line cannot" "no ReLU 0.5000 0.5000 0.5000 0.5000" "error is 0.2500 without"
between "13: and ReLU can" 0 "$(awk '$1 == "with" && $2 == "ReLU" { e = $3 + (1 - $4) + (1 - $5) + $6; print e < 0 ? -e : e }' 13.en)" 0.01
says 13 "sizes" "have 2099712 weights" "beside it 1050624"

says 14 "head 1" "哈基咪 0.4011 0.1978 0.4011 | 1.0000 南北 0.1978 0.4011 0.4011 | 1.0000 绿豆 0.2483 0.2483 0.5035"
says 14 "head 2" "哈基咪 0.4011 0.4011 0.1978 | 1.0000 南北 0.4011 0.4011 0.1978"
says 14 "concatenated" "哈基咪 2.5989 4.0000 1.0000 -0.6044 南北 3.0056 4.4067 1.0000 -0.6044 绿豆 3.0070 4.5105 1.0000 0.0070"
says 14 "the first number" "2.5989 * 1 + 4.0000 * 0 + 1.0000 * 1 + -0.6044 * 0 = 3.5989." "difference is 0.000000."
says 14 "shapes" "d_k (2, 5, 8, 64)" "d_k (2, 8, 5, 64)" "keys (2, 8, 5, 5)" "times W_O (2, 5, 512)" "1050624 weights"

says 15 "patterns" "x x x x x x x x x x x x x x x x decoder only" "x / / / x x / / x x x / x x x x both"
says 15 "the words" BERT GPT RNN LSTM CNN "qkv train mask" "qkv train generate" "qkv train translate"
between "15: persons named" 17 "$(tr '\n' ' ' <15.en | sed -n 's/.*right person in \([0-9]*\)\..*/\1/p')" 18
between "15: 他 looks at 小明" 0.9 "$(awk '$1 == "他" && NF == 6 { print $2 }' 15.en)" 1
between "15: 她 looks at 小红" 0.9 "$(awk '$1 == "她" && NF == 6 { print $4 }' 15.en)" 1

says 16 "warm-up" "4000 0.0006988" "8000 0.0004941" "(512 * 4000)^-0.5 = 0.000699"
says 16 "Adam" "1 / (1 - beta2) is 50 steps, where the usual 0.999 is 1000" "goes 0.001000 for a gradient of 0.0001 and 0.001000 for one of 100"
says 16 "smoothing" "0 0.90 0.05 0.05 1 0.05 0.90 0.05" "it is 0.101642," "added, 0.394398," "perplexity 4.67 and BLEU 25.3, with it 4.92 and 25.8"
apart=$(tr '\n' ' ' <16.en | sed -n 's/.*their mean distance is \([0-9.]*\), the distance of their average \([0-9.]*\)\. .*/\1 \2/p')
between "16: the average is nearer" 0.0001 "${apart#* }" "$(echo "${apart% *}" | awk '{ print $1 * 0.7 }')"
says 16 "results" "Transformer (base) 27.3 38.1" "Transformer (big) 28.4 41.8" "h 1: 24.9 4: 25.5 16: 25.8 32: 25.4" "F1 91.3" "92.7" "--inner-dropout"

says 17 "pairs" "es 9 st 9 we 8 lo 7" "es est lo low ew new newest dest" "lowest low est" "newer new e r" "wide w i d e"
says 17 "beam" "= 0.15; B would have given 0.4 * 0.9 = 0.36."
same "17: wider is never worse" "" "$(awk '/^ *[1248] +-[0-9.]+ +[0-9]+$/ { if (n++ && $2 < last) print; last = $2 }' 17.en)"
between "17: and finds better" 1 "$(awk '/^ *8 +-[0-9.]+ +[0-9]+$/ { print $3 }' 17.en)" 40
says 17 "BLEU" "p2 = 6 / 7 = 0.8571" "p4 = 4 / 5 = 0.8000" "BP = exp(1 - 9 / 8) = 0.8825" "= 76.7280. By the library, qkv_bleu(): 76.7280."

says 18 "rotary" "[0.5403, 0.8415] = [cos 1, sin 1]"
same "18: a score depends on the distance" 1 "$(awk '$1 == "p" && NF == 7 { print $4, $5, $6, $7 }' 18.en | sort -u | wc -l | xargs)"
says 18 "grouped" "largest difference 0.000000." "= 128 KiB. With 32 heads it would be 512 KiB" "64 GiB instead of 16."
says 18 "norms and gates" "RMSNorm 0.8716 0.9339 0.9961 1.0584 1.1206 RMSNorm(10 x) 0.8716" "SiLU -0.0719 -0.2689 0.0000 0.7311 3.9281"
says 18 "sizes" "has 234816 weights, by formula 234816" "8B 8.030 16.1" "70B 70.554" "405B 405.853" "3.8e+25"

says 19 "perplexity" "so the perplexity is 4.2729"
says 19 "sampling" "softmax 0.5297 0.2380 0.1596 0.0531 0.0160 0.0036 | 1.0000" "top-k 3 0.5713 0.2567 0.1721 0.0000 0.0000 0.0000 | 1.0000"
between "19: draws are as likely as they should be" 5150 "$(awk '$1 == "softmax" && $2 ~ /^[0-9]+$/ { print $2 }' 19.en)" 5450

contains "summary: formulas" "$(cat summary.en)" "softmax(Q K^T / sqrt(d_k)) V" "Concat(head_1..head_h) W_O" "28.4 EN-DE and 41.8 EN-FR"
contains "summary in Chinese" "$(cat summary.zh)" "束搜索" "残差连接" "词表"
same "all lessons are listed" "21" "$("$qkv" learn | grep -cE '^ +([0-9]+|imdb|summary)  ')"
refuse "--data with all" "$qkv" learn all --data x
finish
