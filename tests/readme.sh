#!/bin/sh
# readme.sh: the program and the output that README.md shows are those of the example. usage: readme.sh ROOT EXAMPLE
. "$(dirname "$0")/cases.sh"
sed -n '/^```c$/,/^```$/p' "$1/README.md" | sed '1d;$d' >"$folder/shown.c"
check "the program in README.md is examples/04_line.c" cmp "$folder/shown.c" "$1/examples/04_line.c"
same "and prints what README.md says" "$("$2")" "$(sed -n '/^It prints$/,/^The other/p' "$1/README.md" | sed -n 's/^    //p')"
for link in $(sed -n 's/.*](\([^)h][^)]*\)).*/\1/p' "$1/README.md"); do check "README.md: $link is there" test -e "$1/$link"; done
finish
