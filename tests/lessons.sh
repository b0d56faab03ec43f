#!/bin/sh
# lessons.sh: lessons 1 to 5 say what is true, in English and in Chinese. usage: lessons.sh QKV ROOT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") root=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset LANGUAGE

# between NAME LEAST VALUE MOST
between() { check "$1: $2 <= $3 <= $4" awk -v a="$2" -v x="$3" -v b="$4" 'BEGIN { exit !(x != "" && a <= x && x <= b) }'; }

for i in 1 2 3 4 5; do
    check "lesson $i, in time" timeout 60 "$qkv" learn "$i" --lang en -o "pictures$i"
    "$qkv" learn "$i" --lang en --answer -t 1 >"$i.en" 2>"$i.err"
    "$qkv" learn "$i" --lang zh --answer -t 1 >"$i.zh" 2>>"$i.err"
    "$qkv" learn "$i" --lang zh --answer -t 2 >"$i.zh2" 2>>"$i.err"
    same "lesson $i: nothing on stderr" "" "$(cat "$i.err")"
    check "lesson $i: the same bytes with 1 and 2 threads" cmp "$i.zh" "$i.zh2"
    contains "lesson $i: question and answer" "$(cat "$i.en")" "Question: " "Answer: "
    contains "lesson $i: question and answer in Chinese" "$(cat "$i.zh")" "问题：" "答案："
    same "lesson $i: the numbers are the same in both languages" \
        "$(grep -oE '[0-9]\.[0-9]{3,}' "$i.en" | sort)" "$(grep -oE '[0-9]\.[0-9]{3,}' "$i.zh" | sort)"
    # GB18030 has one byte for a Latin letter and two for a Chinese one, as many as they take on a terminal
    same "lesson $i: no paragraph is wider than 80 columns" "" \
        "$(grep -v ' | ' "$i.zh" | sed 's/[“”]/"/g' | iconv -f UTF-8 -t GB18030 | LC_ALL=C awk 'length($0) > 80 { print NR }')"
done

# ---- the list ----
list=$("$qkv" learn)
contains "the list has titles" "$list" "1  Query, key and value by hand" "5  Self-attention against cross-attention"
contains "the list in Chinese" "$("$qkv" learn --lang zh)" "1  亲手计算查询、键和值" "5  自注意力与交叉注意力"
without=$("$qkv" learn 1)
contains "without --answer it says how to get it" "$without" 'qkv learn 1 --answer'
case $without in *"Answer: "*) not_ok "and keeps it" ;; *) ok "and keeps it" ;; esac

# ---- the language ----
first() { "$@" | head -1; }
for set in LC_ALL=zh_CN.UTF-8 "LC_ALL= LC_MESSAGES=zh_TW" "LC_ALL= LC_MESSAGES= LANG=zh_CN" "LC_ALL=zh_CN.GBK"; do
    # shellcheck disable=SC2086
    same "$set" "亲手计算查询、键和值" "$(first env $set "$qkv" learn 1)"
done
for set in LC_ALL=C LC_ALL=C.UTF-8 "LC_ALL=en_US.UTF-8 LANG=zh_CN" "LC_ALL= LC_MESSAGES= LANG=de_DE LANGUAGE=zh_CN"; do
    # shellcheck disable=SC2086
    same "$set" "Query, key and value by hand" "$(first env $set "$qkv" learn 1)"
done
same "--lang goes before the locale" "Query, key and value by hand" "$(first env LC_ALL=zh_CN.UTF-8 "$qkv" learn 1 --lang en)"
same "--lang zh in the plain locale" "亲手计算查询、键和值" "$(first env LC_ALL=C "$qkv" learn 1 --lang zh)"

# ---- what is wrong ----
contains "no such lesson" "$("$qkv" learn 99 2>&1)" 'there is no lesson "99"' "1, 2, 3, 4, 5" "19, imdb, summary, and all"
refuse "no such lesson fails" "$qkv" learn 99
refuse "two lessons" "$qkv" learn 1 2
refuse "--data for another lesson" "$qkv" learn 1 --data x
refuse "another language" "$qkv" learn 1 --lang fr
: >file
contains "a folder that cannot be made" "$("$qkv" learn 1 -o file/pictures 2>&1)" "file/pictures: cannot make the folder"
refuse "pictures where a file is" "$qkv" learn 1 -o file
refuse "no space for the text" sh -c '"$1" learn 1 >/dev/full' sh "$qkv"

# ---- pictures ----
is_png() { same "$1 is a PNG" "137 80 78 71 13 10 26 10" "$(od -An -tu1 -N8 "$1" 2>&1 | xargs)"; }
for picture in pictures1/by_hand pictures2/scaling_largest pictures2/scaling_gradient pictures3/masks_none pictures3/masks_causal \
    pictures3/masks_padding pictures3/masks_both pictures4/heads \
    pictures4/heads_loss pictures5/cross pictures5/cross_encoder pictures5/cross_decoder; do
    is_png "$picture.png"
done
"$qkv" learn 1 --lang en -o pictures1 >with 2>told
"$qkv" learn 1 --lang en >without
check "pictures change nothing that is printed" cmp with without
same "where they are" "Picture: pictures1/by_hand.png" "$(cat told)"

# ---- 1: the worked numbers ----
for language in en zh; do
    announced=$([ $language = en ] && echo "Written as matrices, a token a row:" || echo "写成矩阵，一行一个词元：")
    contains "1: the formula follows what announces it, $language" "$(grep -B 2 '^    Attention(Q, K, V)' 1.$language | head -n 1)" "$announced"
done
contains "1: scores, scaled, weights, output" "$(cat 1.en)" \
    "2.136  -0.803  -0.882" "-0.902   0.312   0.369" "-1.038   0.385   0.428" \
    "1.511  -0.568  -0.624" "-0.638   0.220   0.261" "-0.734   0.272   0.303" \
    "0.804   0.101   0.095" "0.172   0.406   0.422" "0.153   0.417   0.430" \
    "0.937  -0.113   1.331  -0.732" "0.598  -0.240  -0.632   0.982" "0.591  -0.243  -0.694   1.035" "绿豆 (58)" \
    "hajimi"
contains "1: the small one" "$(cat 1.en)" "0.401112  0.197776  0.401112" "[16.04448, 3.95552]" "[20, 0]"

# ---- 2: variance, largest weight, entropy, gradient, median; first without scaling, then with ----
row() { awk -v d="$1" -v nth="$2" -v column="$3" '/^ *d_k = / && $3 == d { if (++n == nth) print $(3 + column) }' 2.en; }
for d in 4 16 64 256 1024; do
    between "2: the variance at d_k = $d is near it" "$(awk -v d=$d 'BEGIN { print 0.9 * d }')" "$(row $d 1 1)" \
        "$(awk -v d=$d 'BEGIN { print 1.1 * d }')"
    between "2: scaled it is near 1" 0.9 "$(row $d 2 1)" 1.1
    between "2: and the largest weight stays" 0.2 "$(row $d 2 2)" 0.3
    between "2: and the entropy" 2.2 "$(row $d 2 3)" 2.5
done
between "2: without scaling one key takes all" 0.9 "$(row 1024 1 2)" 1
between "2: with no entropy left" 0 "$(row 1024 1 3)" 0.3
between "2: and no gradient for half of the queries" 0 "$(row 1024 1 5)" 0.001
between "2: which scaling keeps" 0.05 "$(row 1024 2 5)" 0.1

# ---- 3: masks ----
contains "3: the causal mask" "$(cat 3.en)" "I     0.000   -inf   -inf   -inf" "love  0.000  0.000   -inf   -inf" \
    "I     1.000    ///    ///    ///  |  1.000"
contains "3: the future changes nothing" "$(tr '\n' ' ' <3.en)" "Of the 12 output numbers of the words before it, 0 change"
contains "3: padding gets nothing" "$(cat 3.en)" "its ids are 9 5 0 0"
same "3: rows of padding masks end in what is hidden" 8 "$(grep -cE '^ *(thank|you|<pad>) .* ///    ///  \|  1\.000$' 3.en)"
contains "3: nothing to see" "$(cat 3.en)" "softmax as written    nan" "-1e9 for -inf       0.250  0.250  0.250  0.250  |  1.000" \
    "this library        0.000  0.000  0.000  0.000  |  0.000" "the keys is 0."

# ---- 4: one head stays above one half, two go far below ----
awk '/^    [0-2] +[0-9.]+ +[0-9.]+$/' 4.en >starts
same "4: three starts" 3 "$(wc -l <starts)"
while read -r start one two; do
    between "4: one head, start $start" 0.5 "$one" 0.501
    between "4: two heads, start $start" 0 "$two" 0.001
done <starts
between "4: at first both are bad" 0.9 "$(awk '/step 0 / { print $4 }' 4.en)" 2

# ---- 5: translations and alignments of sentences that were held out ----
flat=$(tr '\n' ' ' <5.en)
right=$(echo "$flat" | sed -n 's/.*Of the 900 sentences held out it translates \([0-9]*\) without.*/\1/p')
between "5: right of 900" 890 "$right" 900
between "5: aligned of 4200" 3900 "$(echo "$flat" | sed -n 's/.*translates? \([0-9]*\) times of 4200.*/\1/p')" 4200
# weight NTH ROW COLUMN: of the NTH table that has the row
weight() { awk -v nth="$1" -v row="$2" -v column="$3" '$1 == row && NF > 5 && ++n == nth { print $(1 + column) }' 5.en; }
between "5: 昨天 looks at yesterday" 0.8 "$(weight 2 昨天 5)" 1
between "5: 苹果 looks at apples" 0.8 "$(weight 2 苹果 3)" 1
same "5: <s> sees itself alone" "1.00 /// /// /// /// ///" "$(awk '$1 == "<s>" && NF == 7 { $1 = ""; print substr($0, 2) }' 5.en)"

# ---- every text has its translation ----
cd "$root" || exit 1
check "the translations are well made" msgfmt --check -o /dev/null po/zh_CN.po
tools/catalogue "$qkv" po/zh_CN.po >"$folder/all.po" 2>"$folder/all.err"
same "the texts can be read" "" "$(cat "$folder/all.err")"
between "there are texts" 100 "$(grep -c '^msgid' "$folder/all.po")" 3000
same "none is without a translation" "" "$(msgattrib --untranslated --no-obsolete "$folder/all.po")"
same "none is unsure" "" "$(msgattrib --only-fuzzy --no-obsolete "$folder/all.po")"
same "none is left over" "" "$(msgattrib --only-obsolete "$folder/all.po")"
# Wrong statements, and English that is not of the field.
for wrong in "softmax is flat" "shows heads" "has read to itself" "Both meet every" "with the root of the step" 0.318545; do
    same "no $wrong" "" "$(grep -n "$wrong" learn/*.c learn/*.def)"
done
# Said in other words than the field has them, or word by word from English; and one name for the library.
for wrong in 一袋词 只知道两个词 移动参数 没有相加 有了相加 拉动它 完全确定 五种规则 和规则相配 都到达了 能到达 遇到每个键 与每个键相遇 \
    '"循环"' '"卷积"' 顺序步数 最长路径 磨损 把自己分给 补齐 什么也得不到， '有 %d 个改变' 空无一物 这个库 逐词写 说出下一个词; do
    same "no $wrong" "" "$(grep -n "^msgstr.*$wrong" po/zh_CN.po)"
done
# One term for one thing: what docs/glossary.zh.md says not to use is not used, and what it says is.
awk -F' *[|] *' '/^[|] / && $2 !~ /^(English|---)/ { n = split($4, wrong, " "); for (i = 1; i <= n; i++) print wrong[i] }' \
    docs/glossary.zh.md >"$folder/wrong"
between "the glossary has words to avoid" 60 "$(wc -l <"$folder/wrong")" 500
same "none of them is in the translations" "" "$(grep '^msgstr' po/zh_CN.po | grep -oFf "$folder/wrong")"
awk -F' *[|] *' '/^[|] / && $2 !~ /^(English|---)/ { n = split($3, terms, "、"); for (i = 1; i <= n; i++) { sub(/（.*/, "", terms[i]); print terms[i] } }' \
    docs/glossary.zh.md | while read -r term; do grep -qF "$term" po/zh_CN.po || echo "$term"; done >"$folder/unused"
same "every term is used" "" "$(cat "$folder/unused")"
finish
