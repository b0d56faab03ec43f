#!/bin/sh
# cli.sh: the command, as a user types it. usage: cli.sh QKV MAKE_NPY
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_npy=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset QKV_ISA QKV_THREADS OMP_NUM_THREADS

floats() { od -An -v -tf4 -j128 "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'; }
shape_of() { head -c 128 "$1" | tr -d '\0' | LC_ALL=C sed -n "s/.*'shape': \(([0-9, ]*)\).*/\1/p" | tr -d ' '; }

# ---- the worked examples ----
"$make_npy" q.npy f4 3,2 0.83469225 0.97844849 -0.22140911 -0.50136356 -0.38048561 -0.49219428
"$make_npy" k.npy f8 3,2 0.93336044 1.38711376 -0.4832162 -0.40850584 -0.40378534 -0.55737316
"$make_npy" v.npy f4 3,4 1.0333236 -0.07687391 1.94313157 -1.26162928 1.18221604 -0.0298283 -1.46568319 1.37369452 \
    -0.13959719 -0.50792964 -0.88052409 1.52022357
weights="0.804 0.101 0.095 0.172 0.406 0.422 0.153 0.417 0.430"
output="0.937 -0.113 1.331 -0.732 0.598 -0.240 -0.632 0.982 0.591 -0.243 -0.694 1.035"

check "attention writes output and weights" "$qkv" attention --q q.npy --k k.npy --v v.npy --out o.npy --weights w.npy
near "its output" "$output" "$(floats o.npy)" 0.0005
near "its weights" "$weights" "$(floats w.npy)" 0.0005
same "their shapes" "(3,4) (3,3)" "$(shape_of o.npy) $(shape_of w.npy)"
same "--quiet writes and says nothing" "" "$("$qkv" attention --q=q.npy --k=k.npy --v=v.npy --out o2.npy --quiet 2>&1)"
check "asking for the weights changes no bit of the output" cmp o.npy o2.npy
for n in 1 2 3; do "$qkv" attention --q q.npy --k k.npy --v v.npy --out "o$n.npy" --quiet -t "$n"; done
check "nor does the number of threads" sh -c 'cmp o1.npy o2.npy && cmp o1.npy o3.npy'
contains "without --out it prints" "$("$qkv" attention --q q.npy --k k.npy --v v.npy)" "output (3, 4)" 0.936715 "weights (3, 3)" 0.804228

explained=$("$qkv" explain)
contains "explain shows the tokens" "$explained" "hajimi, a cat" "哈基咪 (133)" "南北 (23)" "绿豆 (58)"
# shellcheck disable=SC2086
contains "explain shows scores, scaled, weights and output" "$(echo "$explained" | tr -s ' ')" \
    "2.136 -0.803 -0.882" "-0.902 0.312 0.369" "-1.038 0.385 0.428" "1.511 -0.568 -0.624" "-0.638 0.220 0.261" \
    "-0.734 0.272 0.303" "0.804 0.101 0.095 | 1.000" "0.172 0.406 0.422 | 1.000" "0.153 0.417 0.430 | 1.000" \
    "0.937 -0.113 1.331 -0.732" "0.598 -0.240 -0.632 0.982" "0.591 -0.243 -0.694 1.035"
same "explain says the same for arrays from files" "$(echo "$explained" | grep -c 0.804)" \
    "$("$qkv" explain --q q.npy --k k.npy --v v.npy --tokens "哈基咪 南北 绿豆" | grep -c 0.804)"
contains "explain --causal hides the future" "$("$qkv" explain --causal | tr -s ' ')" \
    "1.511 -inf -inf" "1.000 /// /// | 1.000"
same "its columns line up: every row of a table ends in one place" 1 "$(echo "$explained" | sed -n '/^5\./,/^6\./p' |
    grep '^    ' | sed 's/[^ -~]/WW/g' | awk '{ print length($0) }' | sort -u | wc -l)"

same "line prints the regression" "step w b loss
0 0.28 0.10 33.000
20 1.98 0.73 0.123
40 2.07 0.79 0.015
60 2.06 0.82 0.012
80 2.06 0.84 0.009" "$("$qkv" line | sed 's/^ *//' | tr -s ' ')"

# ---- shapes and masks ----
"$make_npy" q1.npy f4 1,2 1 0
"$make_npy" k3.npy f4 3,2 1 0 0 1 1 0
"$make_npy" v3.npy f4 3,2 10 0 0 20 30 0
run1() { "$qkv" attention --q q1.npy --k k3.npy --v v3.npy --out o.npy --weights w.npy --quiet "$@"; }
run1 && near "example 2" "0.401112 0.197776 0.401112 16.044484 3.955516" "$(floats w.npy) $(floats o.npy)" 0.000002
run1 --lengths 2 && near "--lengths hides keys" "0.669762 0.330238 0" "$(floats w.npy)" 0.000001
run1 --lengths 0 && same "a length of 0 gives zeros" "0 0 0 0 0" "$(floats w.npy) $(floats o.npy)"
"$make_npy" keep.npy b1 3 0 1 1
run1 --keep keep.npy && near "--keep of one dimension" "0 0.330238 0.669762" "$(floats w.npy)" 0.000001
"$make_npy" bias.npy f4 1,3 0 -inf 0
run1 --bias bias.npy && near "--bias of -inf hides" "0.5 0 0.5" "$(floats w.npy)" 0.000001
run1 --bias bias.npy --keep keep.npy && near "masks combine" "0 0 1" "$(floats w.npy)" 0.000001
run1 --causal && near "causal: the last query sees all" "0.401112 0.197776 0.401112" "$(floats w.npy)" 0.000001
run1 --scale 0.00000001 && near "--scale" "0.333333 0.333333 0.333333" "$(floats w.npy)" 0.000001

"$make_npy" q3d.npy f4 2,1,2 1 0 1 0
"$make_npy" k4d.npy f4 1,1,1,2 1 0
"$make_npy" k3d.npy f4 2,3,2 1 0 0 1 1 0 1 0 0 1 1 0
"$make_npy" keep3d.npy i4 2,1,3 1 1 1 0 1 1
"$qkv" attention --q q3d.npy --k k3d.npy --v k3d.npy --lengths 3,2 --keep keep3d.npy --out o.npy --weights w.npy --quiet
near "3 dimensions: a mask and a length for each sequence" "0.401112 0.197776 0.401112 0 1 0" "$(floats w.npy)" 0.000001
same "and their shapes" "(2,1,2) (2,1,3)" "$(shape_of o.npy) $(shape_of w.npy)"
"$make_npy" heads.npy f4 1,2,4 1 0 0 1 0 1 1 0
"$make_npy" kv.npy f4 1,2,2 1 0 0 1
"$qkv" attention --q heads.npy --k kv.npy --v kv.npy --heads 2 --kv-heads 1 --out o.npy --weights w.npy --quiet
near "--heads with one key head" "0.669762 0.330238 0.330238 0.669762 0.330238 0.669762 0.669762 0.330238" "$(floats w.npy)" 0.000001
same "and their shapes too" "(1,2,4) (1,2,2,2)" "$(shape_of o.npy) $(shape_of w.npy)"
"$make_npy" heads2.npy f4 2,4 1 0 0 1 0 1 1 0
"$make_npy" kv2.npy f4 2,2 1 0 0 1
"$qkv" attention --q heads2.npy --k kv2.npy --v kv2.npy --heads 2 --kv-heads 1 --out o.npy --weights w.npy --quiet
same "--heads with 2 dimensions" "(2,4) (2,2,2)" "$(shape_of o.npy) $(shape_of w.npy)"
"$make_npy" q4d.npy f4 1,2,2,2 1 0 0 1 0 1 1 0
"$make_npy" k4d.npy f4 1,1,2,2 1 0 0 1
"$qkv" attention --q q4d.npy --k k4d.npy --v k4d.npy --out o.npy --weights w.npy --quiet
same "4 dimensions" "(1,2,2,2) (1,2,2,2)" "$(shape_of o.npy) $(shape_of w.npy)"
"$make_npy" none.npy f4 0,2
check "no queries, no output" "$qkv" attention --q none.npy --k k3.npy --v v3.npy --out o.npy --quiet
same "of the right shape" "(0,2)" "$(shape_of o.npy)"

# ---- bad input: a sentence, a status, nothing written ----
rm -f o.npy w.npy o?.npy
bad() { # bad NAME STATUS PIECE ARGUMENTS...: with an output asked for that must not appear
    bad_name=$1 bad_status=$2 bad_piece=$3
    shift 3
    fails "$bad_name" "$bad_status" "$bad_piece" attention "$@" --out o.npy --weights w.npy
}
"$make_npy" rank1.npy f4 2 1 0
"$make_npy" rank5.npy f4 1,1,1,1,2 1 0
"$make_npy" rank7.npy f4 1,1,1,1,1,1,2 1 0
"$make_npy" wide.npy f4 3,3
"$make_npy" short.npy f4 2,2
"$make_npy" h3.npy f4 1,3,2,2
"$make_npy" keep_bad.npy f4 3 0 0.5 1
"$make_npy" keep_nan.npy f4 3 0 nan 1
"$make_npy" keep_four.npy f4 4 1 1 1 1
"$make_npy" bias_nan.npy f4 3 0 nan 0
"$make_npy" bias_inf.npy f4 3 0 inf 0
"$make_npy" bias_rows.npy f4 2,3
"$make_npy" bias_5.npy f4 1,1,1,1,3
"$make_npy" nan.npy f4 1,2 nan 0
"$make_npy" object.npy O8 1,2
"$make_npy" huge.npy f4 4611686018427387904,4611686018427387904 no_data
"$make_npy" large.npy f4 1000000000000,2 no_data
"$make_npy" negative.npy f4 -1,2 no_data
echo "this is text" >text.npy
: >empty.npy
qkv_files="--q q1.npy --k k3.npy --v v3.npy"
# shellcheck disable=SC2086
{
bad "q of 1 dimension" 2 rank1.npy --q rank1.npy --k k3.npy --v v3.npy
bad "q of 5 dimensions" 2 rank5.npy --q rank5.npy --k k3.npy --v v3.npy
bad "q of 7 dimensions" 6 rank7.npy --q rank7.npy --k k3.npy --v v3.npy
bad "q of 2 dimensions, k of 3" 2 "k3d.npy: has 3" --q q1.npy --k k3d.npy --v v3.npy
bad "q and k of different widths" 2 attention --q q1.npy --k wide.npy --v v3.npy
bad "k and v of different lengths" 2 attention --q q1.npy --k k3.npy --v short.npy
bad "heads that do not divide the width" 2 attention --q heads.npy --k heads.npy --v heads.npy --heads 3
bad "key heads that do not divide the heads" 2 attention --q heads.npy --k heads.npy --v heads.npy --heads 4 --kv-heads 3
bad "3 heads on 2 key heads" 2 attention --q h3.npy --k q4d.npy --v q4d.npy
bad "--heads with 4 dimensions" 2 --heads --q q4d.npy --k k4d.npy --v k4d.npy --heads 2
bad "--kv-heads without --heads" 2 --kv-heads $qkv_files --kv-heads 1
bad "a keep map of 0.5" 2 "keep_bad.npy: number 1 is 0.5" $qkv_files --keep keep_bad.npy
bad "a keep map with NaN" 8 "keep_nan.npy: number 1 is nan" $qkv_files --keep keep_nan.npy
bad "a keep map that does not stretch" 2 keep $qkv_files --keep keep_four.npy
bad "a bias with NaN" 8 "bias_nan.npy: number 1 is nan" $qkv_files --bias bias_nan.npy
bad "a bias of +inf" 8 "bias_inf.npy: number 1 is inf" $qkv_files --bias bias_inf.npy
bad "a bias with too many rows" 2 bias $qkv_files --bias bias_rows.npy
bad "a bias of 5 dimensions" 2 bias_5.npy $qkv_files --bias bias_5.npy
bad "too many lengths" 2 --lengths $qkv_files --lengths 1,2
bad "a length longer than the keys" 2 4 $qkv_files --lengths 4
bad "a length that is no number" 2 --lengths $qkv_files --lengths 1x
bad "a negative length" 2 --lengths $qkv_files --lengths -1
bad "a length beyond whole numbers" 2 --lengths $qkv_files --lengths 99999999999999999999
bad "queries with NaN" 8 "nan.npy: number 0 is nan" --q nan.npy --k k3.npy --v v3.npy
bad "a file that is not there" 3 missing.npy --q missing.npy --k k3.npy --v v3.npy
bad "a folder instead of a file" 3 . --q . --k k3.npy --v v3.npy
bad "objects instead of numbers" 5 object.npy --q object.npy --k k3.npy --v v3.npy
bad "a shape larger than the file" 4 large.npy --q large.npy --k k3.npy --v v3.npy
bad "a negative shape" 4 negative.npy --q negative.npy --k k3.npy --v v3.npy
bad "text instead of an array" 4 text.npy --q text.npy --k k3.npy --v v3.npy
bad "an empty file" 4 empty.npy --q empty.npy --k k3.npy --v v3.npy
bad "a scale of 0" 2 --scale $qkv_files --scale 0
bad "a scale that is not finite" 2 --scale $qkv_files --scale nan
bad "0 threads" 2 --threads $qkv_files --threads 0
fails "too many threads" 2 "--threads 1000: at most 256" info --threads 1000
bad "too many threads" 2 256 $qkv_files -t 257
fails "output into a folder that is not there" 3 no/o.npy attention $qkv_files --out no/o.npy
fails "weights into a folder that is not there: no output either" 3 no/w.npy attention $qkv_files --out o.npy --weights no/w.npy
mkdir -p folder.npy
fails "output into a folder" 3 "folder.npy: it is a folder" attention $qkv_files --out folder.npy
mkfifo pipe
timeout 10 cat pipe >piped.npy & reader=$!
timeout 20 "$qkv" attention $qkv_files --out pipe --quiet || kill $reader 2>/dev/null
wait $reader
"$qkv" attention $qkv_files --out straight.npy --quiet
check "output into a pipe, which stays one" test -p pipe -a "$(cksum <piped.npy)" = "$(cksum <straight.npy)"
check "output to standard output" test "$("$qkv" attention $qkv_files --out /proc/self/fd/1 --quiet | cksum)" = "$(cksum <straight.npy)"
echo before >log
"$qkv" attention $qkv_files --out /proc/self/fd/1 --quiet >>log
check "which is not replaced" test "$( (echo before; cat straight.npy) | cksum)" = "$(cksum <log)"
fails "output and weights into one file" 2 same attention $qkv_files --out o.npy --weights o.npy
}
"$qkv" attention --q huge.npy --k k3.npy --v v3.npy --out o.npy 2>/dev/null
case $? in 4 | 6) check "a shape beyond counting" test ! -e o.npy ;; *) not_ok "a shape beyond counting" ;; esac

cut=0 wrong=
size=$(wc -c <k3.npy)
while [ "$cut" -lt "$size" ]; do
    head -c "$cut" k3.npy >cut.npy
    "$qkv" attention --q cut.npy --k k3.npy --v v3.npy --out o.npy 2>err
    status=$?
    { [ "$status" = 4 ] && [ "$(wc -l <err)" = 1 ] && [ ! -e o.npy ]; } || wrong="$wrong $cut:$status"
    cut=$((cut + 1))
done
rm -f err
same "a file cut at any of its $size bytes" "" "$wrong"

# ---- score ----
printf 'the the the the cat the the\n' >hyp.txt
printf 'the cat is on the mat\n' >ref.txt
same "score prints BLEU and chrF as sacreBLEU does" \
"BLEU 14.5 42.9/16.7/10.0/6.2 (BP = 1.000 ratio = 1.167 hyp_len = 7 ref_len = 6)
     nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:qkv-0.1.0
chrF2 30.2 (precision = 23.9 recall = 32.3)
     nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:qkv-0.1.0" "$("$qkv" score --ref ref.txt --hyp hyp.txt)"
same "and reads standard input" "$("$qkv" score --ref ref.txt --hyp hyp.txt)" "$("$qkv" score --ref ref.txt <hyp.txt)"
same "from where it stands" "$("$qkv" score --ref ref.txt --hyp hyp.txt)" \
    "$({ echo "a line for another"; cat hyp.txt; } >both.txt; { read -r _; "$qkv" score --ref ref.txt; } <both.txt)"
contains "--metric chooses" "$("$qkv" score --ref ref.txt --hyp hyp.txt --metric chrf++,chrf)" "chrF2 " "chrF2++ "
same "one or many" 2 "$("$qkv" score --ref ref.txt --hyp hyp.txt --metric chrf | wc -l)"
contains "--json has every digit" "$("$qkv" score --ref ref.txt --hyp hyp.txt --metric bleu --json)" \
    '"score": 14.53576842420548' '"matches": [3, 1, 0, 0]' '"totals": [7, 6, 5, 4]' '"hyp_len": 7' '"ref_len": 6' '"bp": 1,' tok:13a
printf '我爱你。\n\n' >hyp.zh
printf '我爱你。\n\n' >ref.zh
contains "Chinese with zh" "$("$qkv" score --ref ref.zh --hyp hyp.zh --tokenize zh)" "BLEU 100.0" "hyp_len = 4" tok:zh
contains "Chinese with 13a is one word" "$("$qkv" score --ref ref.zh --hyp hyp.zh 2>hint)" "BLEU 0.0" "hyp_len = 1"
contains "with a hint" "$(cat hint)" "separates words at spaces, which ref.zh hardly has: use --tokenize zh"
same "no hint for --tokenize 13a, chrF alone or English" "" "$({ "$qkv" score --ref ref.zh --hyp hyp.zh --tokenize 13a
    "$qkv" score --ref ref.zh --hyp hyp.zh --metric chrf
    "$qkv" score --ref ref.txt --hyp hyp.txt; } 2>&1 >/dev/null)"
printf 'THE CAT IS ON THE MAT' >upper.txt
contains "--lowercase; a last line without its end" "$("$qkv" score --ref ref.txt --hyp upper.txt --lowercase)" "BLEU 100.0" case:lc
printf '\n\n' >blank.txt
contains "nothing but empty lines" "$("$qkv" score --ref ref.zh --hyp blank.txt)" "BLEU 0.0 0.0/0.0/0.0/0.0 (BP = 0.000" "chrF2 0.0"
contains "nor in the references" "$("$qkv" score --ref blank.txt --hyp blank.txt)" "BLEU 0.0 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000"
printf 'good\nb\303(d\n' >bad.txt
printf 'good\nb\0d\n' >nul.txt
: >none.txt
fails "one file longer" 2 "ref.txt has 1 line, hyp.zh has 2 (first extra line: 2)" score --ref ref.txt --hyp hyp.zh
fails "the other longer" 2 "hyp.txt has 1 line, ref.zh has 2 (first extra line: 2)" score --ref ref.zh --hyp hyp.txt
fails "one file empty" 2 "none.txt has 0 lines, ref.txt has 1" score --ref ref.txt --hyp none.txt
fails "both empty" 4 "none.txt and none.txt are empty" score --ref none.txt --hyp none.txt
fails "not UTF-8" 4 "bad.txt: line 2: byte 2 is not UTF-8" score --ref ref.zh --hyp bad.txt
fails "references that are not UTF-8" 4 "bad.txt: line 2: byte 2 is not UTF-8" score --ref bad.txt --hyp hyp.zh
printf '\357\273\277' | cat - hyp.zh >marked.txt
same "a byte order mark is no part of the text" "$("$qkv" score --ref ref.zh --hyp hyp.zh)" "$("$qkv" score --ref ref.zh --hyp marked.txt)"
printf '\357\273\277' >mark.txt
fails "nor is it a line" 2 "mark.txt has 0 lines, ref.txt has 1" score --ref ref.txt --hyp mark.txt
iconv -f UTF-8 -t UTF-16 hyp.zh >wide.txt
fails "UTF-16" 5 "wide.txt: it is UTF-16, not text in UTF-8: convert it first" score --ref ref.zh --hyp wide.txt
fails "a NUL" 4 "nul.txt: line 2: byte 2 is NUL" score --ref ref.zh --hyp nul.txt
fails "a file that is not there" 3 "missing.txt: cannot open" score --ref missing.txt --hyp hyp.txt
fails "a folder" 3 ".: cannot read" score --ref . --hyp hyp.txt
fails "an unknown tokenizer" 2 '--tokenize: "14a" is not one of 13a, zh, char, intl, none' score --ref ref.txt --hyp hyp.txt --tokenize 14a
fails "an unknown metric" 2 '--metric: "ter" is not one of bleu, chrf, chrf++' score --ref ref.txt --hyp hyp.txt --metric bleu,ter
fails "a metric too few" 2 '--metric: "" is not one of' score --ref ref.txt --hyp hyp.txt --metric bleu,
fails "no references" 2 "--ref is missing" score --hyp hyp.txt

# ---- usage ----
fails "no command" 2 --help
fails "an unknown command" 2 'did you mean "attention"' atention
fails "a command like no other" 2 "qkv --help" xylophone
fails "an unknown option" 2 'did you mean "--causal"' attention --caussal
fails "an option like no other" 2 "qkv attention --help" attention --xylophone
fails "an unknown letter" 2 "-x" attention -x
fails "letters that are swapped" 2 'did you mean "--train"' train translate --trian x
fails "a short name that is far" 2 '"--lpx": see "qkv train translate --help"' train translate --lpx 1
fails "the beginning of a name" 2 'did you mean "--label-smoothing"' train translate --label 0.1
fails "a name and more" 2 'did you mean "--temp"' generate --temperature 1
fails "a graphics card" 2 "qkv runs on the CPU" train translate --gpu
fails "a device" 2 "qkv runs on the CPU" generate --device=cuda
fails "half precision" 2 "qkv computes in float32" translate --fp16
for pair in learning-rate:lr learning_rate:lr batch-size:max-tokens num-train-epochs:epochs max-update:steps warmup-steps:warmup \
    hidden-size:dim transformer-dim-ffn:inner accum-count:update-freq save-dir:out vocab-size:vocab num-workers:threads \
    val-split:split validation_split:split time:minutes max-minutes:minutes length-penalty:fit; do
    fails "--${pair%:*} of others" 2 "did you mean \"--${pair#*:}\"?" train translate "--${pair%:*}" 1
done
fails "a batch of lines" 2 'did you mean "--batch"' translate --batch-size=8
fails "a batch of what generates" 2 'see "qkv generate --help"' generate --batch-size 8
fails "a word after one dash" 2 'did you mean "--input"' translate -src x
fails "nothing but dashes and an equals sign" 2 '"--=x"' translate --=x
fails "a text with a dash" 2 "put -- before a text that starts with a dash" translate "- a text"
fails "a command with letters swapped" 2 'did you mean "train"' trian
fails "a command of others" 2 'did you mean "export"' convert
fails "a download" 2 "qkv downloads nothing" download x
fails "no name at all" 2 'unknown command ""' ""
fails "a job that is nearly one" 2 '"train" has no job "translat": did you mean "train translate"?' train translat
fails "a job that is none" 2 '"train" needs a job, one of: translate, classify, generate, mask' train --out x
fails "an unknown first option" 2 "--xylophone" --xylophone
fails "a missing value" 2 "--q needs a value" attention --q
fails "an empty value" 2 "--q" attention --q ""
fails "a value for a flag" 2 "--causal" attention --causal=yes
fails "a missing array" 2 "--v is missing" attention --q q1.npy --k k3.npy
fails "an argument too many" 2 '"o.npy"' line o.npy
fails "explain needs all three arrays" 2 "--q, --k and --v" explain --q q1.npy
contains "explain takes one of a batch" "$("$qkv" explain --q q3d.npy --k k3d.npy --v k3d.npy --sequence 1)" "Sequence 1 of a batch of 2."
fails "which is there" 2 "--q holds sequences 0 to 1" explain --q q3d.npy --k k3d.npy --v k3d.npy --sequence 2
fails "and nothing of 4 dimensions" 2 "k4d.npy" explain --q q3d.npy --k k4d.npy --v k4d.npy
fails "a learning rate of 0" 2 "--lr" line --lr 0
"$qkv" line --lr 10 >/dev/null 2>err
same "a line that diverges" 8 $?
contains "and what to do" "$(cat err)" "try a smaller --lr"
if [ -e /dev/full ]; then
    "$qkv" explain >/dev/full 2>err
    same "a full disk" 3 $?
    contains "is reported" "$(cat err)" "standard output"
fi
"$qkv" explain >&- 2>/dev/null
same "a closed standard output" 3 $?
mkfifo gone
exec 9<>gone 8>gone 9<&- # a pipe that nobody reads any more, as after "| head"
for command in explain "help all" --man "learn 1" "quiz --answers" info "show flow" "info --json" "show array 1"; do
    # shellcheck disable=SC2086
    same "$command ends quietly when nobody reads" "141 " "$("$qkv" $command 2>&1 >&8; echo $?) "
done
exec 8>&-
"$qkv" attention --q q1.npy --k k3.npy --v v3.npy --out o.npy --quiet >&-
same "nothing printed, nothing lost" 0 $?

# ---- help ----
help_lists() { # help_lists COMMAND OPTION...
    topic=$1
    shift
    contains "qkv $topic --help --all lists its options" "$("$qkv" "$topic" --help --all)" "usage: qkv $topic" "$@" -t --threads -h --help
}
help_lists attention --q --k --v --causal --lengths --keep --bias --heads --kv-heads --scale --out --weights --print --quiet
help_lists explain --q --k --v --x --wq --wo --heads --mask --causal --bias --model --layer --head --token --json --latex --lang
help_lists line --lr --steps --every
help_lists score --ref --hyp --metric --tokenize --lowercase --json
help_lists info --json
same "qkv help COMMAND is the same" "$("$qkv" line --help)" "$("$qkv" help line)"
contains "qkv help all lists the commands" "$("$qkv" help all)" attention explain line score info
contains "under headings" "$("$qkv" help all)" "use a model:" "train a model:" "look inside:"
same "qkv --help --all is the same" "$("$qkv" help all)" "$("$qkv" --help --all)"
same "qkv --help fits 80x24" "" "$("$qkv" --help | awk 'NR > 23 || length($0) > 80')"
same "with 12 commands in 5 groups" "12 5" "$("$qkv" --help | grep -c '^  [a-z]') $("$qkv" --help | grep -c ':$')"
contains "and the way to the others" "$("$qkv" --help)" '"qkv help all" lists all'
"$qkv" help all | sed -n 's/^  \(.\{17\}\) [^ ].*/\1/p' >commands
for c in "show array" info "train mask"; do check "which are read off it, $c too" grep -q "^$c *$" commands; done
while read -r c; do
    # shellcheck disable=SC2086
    "$qkv" help $c --all >>helps || echo "no help of $c" >>helps
done <commands
same "every command has its help" "$(wc -l <commands)" "$(grep -c '^usage: qkv ' helps)"
same "no line of any help is wider than 80 columns" "" "$("$qkv" help all | cat - helps | awk 'length($0) > 80')"
for c in "train translate" "train classify" "train generate" "train mask"; do
    # shellcheck disable=SC2086
    same "the options of $c come under headings" \
        "data model optimizer_and_schedule regularization validation_and_stopping output_and_checkpoints other_options example " \
        "$("$qkv" help $c --all | sed -n '/^[a-z]/s/:$//p' | tr ' \n' '_ ')"
done
contains "each under its own" "$("$qkv" help train classify --all | sed -n '/^validation/,/^$/p')" --metric --patience --steps
n_options() { grep -c '^  \(-., \|    \)--'; }
same "the short help of a training has about 20 options" "" \
    "$("$qkv" help train translate | n_options | awk '$1 < 18 || $1 > 26')"
contains "and says where the rest is" "$("$qkv" train translate --help)" \
    "\"qkv train translate --help --all\" lists all $("$qkv" help train translate --all | n_options | awk '{ print $1 - 3 }') options."
same "every default has one form" "" "$(grep -n 'unless given\|by rule' helps)"
check "a rare option is in the manual" sh -c '"$1" --man | grep -q "\\\\-\\\\-without\\\\-head"' sh "$qkv"
contains "qkv train --help" "$("$qkv" train --help)" "usage: qkv train JOB" "train translate" "train mask"
same "qkv help train is the same" "$("$qkv" train --help)" "$("$qkv" help train)"
contains "qkv show -h" "$("$qkv" show -h)" "show model" "show array"
same "a short help has one heading" "options example " "$("$qkv" line --help | sed -n '/^[a-z]/s/:$//p' | tr '\n' ' ')"
same "qkv --version" "qkv 0.1.0" "$("$qkv" --version)"
contains "serve: a request of each of two jobs" "$("$qkv" help serve)" '"q": "I love you"' '"text": "refund!"'
same "qkv version" "qkv 0.1.0" "$("$qkv" version)"
for c in "help version" "help help" help -h; do
    # shellcheck disable=SC2086
    same "qkv $c is qkv --help" "$("$qkv" --help)" "$("$qkv" $c)"
done
contains "qkv info" "$("$qkv" info -t 2)" "version" "0.1.0" "instruction set" "available" "threads                2" "compiler"
contains "qkv info tells where the count came from" "$(QKV_THREADS=3 "$qkv" info)" "3 (from QKV_THREADS)"
contains "qkv info shows the wish" "$(QKV_ISA=ref "$qkv" info)" "instruction set        ref" "QKV_ISA                ref"
QKV_ISA='no"such' "$qkv" info --json >info.json 2>/dev/null
same "an impossible wish" 5 $?
contains "is shown all the same" "$(cat info.json)" '"isa": null' '"isa_wish": "no\u0022such"'
export QKV_ISA=no_such
fails "and nothing computes" 5 no_such attention --q q1.npy --k k3.npy --v v3.npy
unset QKV_ISA

# ---- the manual ----
"$qkv" --man >qkv.1
contains "the manual has every option" "$(sed 's/\\-/-/g' qkv.1)" --q --k --v --causal --lengths --keep --bias --heads --kv-heads \
    --scale --out --weights --print --quiet --lr --steps --every --ref --hyp --metric --tokenize --lowercase --json --threads "EXIT STATUS" QKV_ISA
contains "and its headings" "$(cat qkv.1)" ".I optimizer and schedule" ".I other options"
if command -v mandoc >/dev/null; then
    same "mandoc finds nothing wrong" "" "$(mandoc -T lint -W warning qkv.1)"
elif command -v groff >/dev/null; then
    same "groff finds nothing wrong" "" "$(groff -man -Tutf8 -ww -z qkv.1 2>&1)"
    same "no line of the manual is wider than 80 columns" "" "$(groff -man -Tascii -P-cbou -rLL=80n qkv.1 | awk 'length($0) > 80')"
else
    skipped "the manual's form: neither mandoc nor groff is here"
fi
finish
