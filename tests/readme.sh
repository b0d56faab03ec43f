#!/bin/sh
# readme.sh: the program and the output that README.md shows are those of the example, and README.zh-CN.md says the same in Chinese.
# usage: readme.sh ROOT EXAMPLE
. "$(dirname "$0")/cases.sh"
root=$1
for readme in README.md README.zh-CN.md; do
    sed -n '/^```c$/,/^```$/p' "$root/$readme" | sed '1d;$d' >"$folder/shown.c"
    check "the program in $readme is examples/04_line.c" cmp "$folder/shown.c" "$root/examples/04_line.c"
    same "and prints what $readme says" "$("$2")" "$(sed -n '/^```$/,/^## /p' "$root/$readme" | sed -n 's/^    //p')"
    for link in $(grep -o '](\([^)h][^)]*\))' "$root/$readme" | sed 's/](//; s/)$//'); do
        check "$readme: $link is there" test -e "$root/$link"
    done
done
# commands README: what is typed, without remarks; figures README: the numbers of tables, line by line; shape: headings and tables.
commands() { sed -n 's/^    //p' "$root/$1" | sed 's/ *# .*//; /blank to\|空白到/d; /^$/d'; }
figures() {
    grep '^|' "$root/$1" | while read -r line; do echo "$line" | grep -oE '[0-9]+([.,][0-9]+)*' | sort | tr '\n' ' ' && echo; done
}
shape() { sed -n 's/^\(##*\) .*/\1/p; s/^\(| ---.*\)/\1/p; s/^\(- \).*/\1/p; s/^\(!\[\).*/\1/p' "$root/$1"; }
same "the same commands in both" "$(commands README.md)" "$(commands README.zh-CN.md)"
same "the same shape" "$(shape README.md)" "$(shape README.zh-CN.md)"
same "the same figures, row by row" "$(figures README.md)" "$(figures README.zh-CN.md)"
finish
