#!/bin/sh
# curriculum.sh: every command of docs/curriculum.md shows what it says. usage: curriculum.sh QKV ROOT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") root=$(realpath "$2")
cd "$folder" || exit 1
export LC_ALL=C.UTF-8
unset LANGUAGE

# "command TAB shows" of each row
sed -n 's/^| [^|]* | [^|]* | `qkv \([^`]*\)` | \(.*\) |$/\1\t\2/p' "$root/docs/curriculum.md" >rows
check "rows: $(wc -l <rows)" test "$(wc -l <rows)" -ge 75
same "every row is read" "$(grep -c '^| [a-zA-Z]' "$root/docs/curriculum.md")" "$(($(wc -l <rows) + 1))"
while IFS="$(printf '\t')" read -r command shows; do
    said=said_$(echo "$command" | tr ' ' _)
    # shellcheck disable=SC2086
    [ -f "$said" ] || "$qkv" $command </dev/null 2>&1 | tr -s ' \n' ' ' >"$said"
    contains "qkv $command: $shows" "$(cat "$said")" "$shows"
done <rows
finish
