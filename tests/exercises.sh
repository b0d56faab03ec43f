#!/bin/sh
# exercises.sh: solutions pass, holes fail, and what else can happen to them. usage: exercises.sh QKV CC...
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1")
shift
export CC="$*" LC_ALL=C.UTF-8
unset LANGUAGE
cd "$folder" || exit 1
: >in
names="exercise: "

"$qkv" exercise >list
n=$(grep -cE '^ +[0-9]+  ' list)
check "at least 12 exercises: $n" test "$n" -ge 12
i=0
while [ $((i += 1)) -le "$n" ]; do
    name=$(awk -v i=$i '$1 == i { print $2 }' list)
    check "$name: written" "$qkv" exercise $i -o work --lang en
    check "$name: with a hole" grep -q TODO "work/$name.c"
    same "$name: no solution in it" 0 "$(grep -c SOLUTION "work/$name.c")"
    "$qkv" exercise $i --check "work/$name.c" >out 2>err
    same "$name: the hole does not pass" 1 $?
    contains "$name: and is told" "$(cat out err)" "FAILED" "Not yet." "does not pass yet"
    "$qkv" exercise $i --solution >solution.c
    check "$name: the solution passes" "$qkv" exercise $i --check solution.c
    same "$name: in Chinese too" "通过 全部通过。" "$("$qkv" exercise $i --check solution.c --lang zh | sed 's/  .*//' | sort -ru | xargs)"
    contains "$name: a hint" "$("$qkv" exercise $i --hint --lang en)" "Hint: "
    contains "$name: in Chinese" "$("$qkv" exercise $i --hint --lang zh)" "提示："
    same "$name: no English sentence in Chinese" "" "$("$qkv" exercise $i --lang zh | grep -vE '[;{}]|^#|TODO|^(void|double|float) ' | grep -E '[a-z]{2,} [a-z]{2,} [a-z]{2,}')"
    "$qkv" exercise $i --check "work/$name.c" --lang zh >out 2>&1
    same "$name: no English in what fails" "" "$(sed 's/^qkv: exercise: [^：]*//' out | grep -E '[a-z]{2,} [a-z]{2,}|FAILED|passed')"
done
check "by make, which needs no qkv" make -C work softmax
refuse "the same result" work/softmax

mkdir mine && echo "all:" >mine/Makefile
check "a folder with a Makefile" "$qkv" exercise 1 -o mine
same "which stays" "all:" "$(cat mine/Makefile)"
refused "your work is not replaced" 3 "it is not replaced" exercise 1 -o work
refused "no such exercise" 2 "there is no exercise 99" exercise 99
refused "no number" 2 "which exercise?" exercise --hint
refused "no such file" 3 "nothing.c: cannot be read" exercise 1 --check nothing.c
echo 'void softmax(' >broken.c
"$qkv" exercise 1 --check broken.c >out 2>err
same "what does not compile" 1 $?
contains "is told" "$(cat err)" "broken.c: does not compile"
printf '#include <stdlib.h>\nvoid softmax(const float *x, int n, float *y) { abort(); }\n' >crash.c
check "a crash" run 1 "crash.c: crashed: Aborted" exercise 1 --check crash.c
CC=no-such-compiler check "no compiler" run 5 "there is no C compiler" exercise 1 --check solution.c
printf 'void softmax(const float *x, int n, float *y) { for (volatile int i = 0;; i++) continue; }\n' >loop.c
check "what does not end" env QKV_EXERCISE_SECONDS=1 sh -c '"$1" exercise 1 --check loop.c 2>err; test $? = 1 && grep -q "was ended after 1 seconds" err' sh "$qkv"
mkdir tmp
TMPDIR=$PWD/tmp "$qkv" exercise 1 --check crash.c >out 2>err
same "nothing is left behind" "" "$(ls tmp)"
TMPDIR=$PWD/tmp "$qkv" exercise 1 --check loop.c >out 2>err &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e tmp/qkv-exercise-*/program ] && break; sleep 0.2; done
check "a check that runs" test -e tmp/qkv-exercise-*/program
kill -TERM $pid
wait $pid
same "ends by a signal" 143 $?
same "and then too" "" "$(ls tmp)$(cat err)"
: >file
refused "a folder that cannot be made" 3 "file/x: cannot make the folder" exercise 1 -o file/x
# ---- what does not play by the rules ----
printf '#include <stdlib.h>\nvoid softmax(const float *x, float *y, int n) { (void)x, (void)y, (void)n; exit(0); }\n' >quits.c
refused "a program that ends before its checker does not pass" 1 "does not pass yet" exercise 1 --check quits.c
mkdir folder.c
refused "a folder" 3 "expected a regular file" exercise 1 --check folder.c
"$qkv" exercise 1 --solution >-x.c 2>/dev/null
check "a name that looks like an option" "$qkv" exercise 1 --check -x.c

finish
