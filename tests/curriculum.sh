#!/bin/sh
# curriculum.sh: every command of docs/curriculum.md shows what it says. usage: curriculum.sh QKV ROOT CC...
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1") page=$(realpath "$2")/docs/curriculum.md
shift 2
export CC="$*" LC_ALL=C.UTF-8 PATH="$folder/bin:$PATH"
unset LANGUAGE COLUMNS
cd "$folder" || exit 1
mkdir bin && ln -s "$program" bin/qkv

sed -n '/^```sh$/,/^```$/p' "$page" | sed '1d;$d' >files.sh
check "the files that it uses, by its own lines" sh -e files.sh

# "command TAB pieces" of each row that has a command; pieces as "`one`, `two`"
sed -n 's/^| [^|]* | `\(qkv [^`|]*\)` | \(`.*`\) |$/\1\t\2/p' "$page" >rows
same "rows" 176 "$(grep -v '^| what | command\|^| ---' "$page" | grep -c '^|')"
without=$(grep -c '^| [^|]* | - | [^|]* |$' "$page")
check "without a command: $without" test "$without" -le 8
same "every row is read" 176 "$(($(wc -l <rows) + without))"
while IFS="$(printf '\t')" read -r command pieces; do
    said=said_$(printf %s "$command" | cksum | tr ' ' _)
    if [ ! -f "$said" ]; then # once, however many rows it has
        sh -c "$command" </dev/null >printed 2>&1 || not_ok "$command" "it fails"
        tr -s ' \n' ' ' <printed >"$said"
    fi
    printf '%s\n' "$pieces" | sed 's/^`//; s/`$//; s/`, `/\n/g' >list
    while read -r piece; do contains "$command: $piece" "$(cat "$said")" "$piece"; done <list
done <rows
finish
