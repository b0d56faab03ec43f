#!/bin/sh
# layers.sh: folders use each other as tools/layers says, and it notices when they do not. usage: layers.sh ROOT BUILD CC..
. "$(dirname "$0")/cases.sh"
root=$1 build=$2 layers=$1/tools/layers
shift 2

check "the project keeps its layers" "$layers" "$build"

# compile FILE SYMBOL USED: an object of the tree that defines one symbol and uses another
cc="$*"
compile() {
    file=$folder/tree/$1 defined=$2 used=$3
    mkdir -p "$(dirname "$file")"
    printf 'void %s(void);\nvoid %s(void);\nvoid %s(void) { %s(); }\n' "$used" "$defined" "$defined" "$used" >"$folder/x.c"
    $cc -c "$folder/x.c" -o "$file"
}

# wrong NAME FILE SYMBOL USED: a tree with such an object is refused, and not without it.
wrong() {
    rm -rf "$folder/tree"
    compile src/lib.p/base_a.c.o qkv__base free
    compile src/lib.p/kern_a.c.o qkv__kern qkv__base
    compile src/lib.p/tensor_a.c.o qkv__tensor qkv__kern
    compile app/lib.p/cli_a.c.o qkv__cli qkv__tensor
    check "before: $1" "$layers" "$folder/tree"
    compile "$2" "$3" "$4"
    refuse "$1" "$layers" "$folder/tree"
}
wrong "a cycle: base uses kern" src/lib.p/base_b.c.o qkv__b qkv__kern
wrong "a cycle: kern uses tensor" src/lib.p/kern_b.c.o qkv__b qkv__tensor
wrong "the library uses the application" src/lib.p/tensor_b.c.o qkv__b qkv__cli
wrong "scores use tensors" src/lib.p/score_b.c.o qkv__b qkv__tensor
wrong "the terminal uses commands" app/lib.p/term_b.c.o qkv__b qkv__cli
wrong "a folder without a row" src/lib.p/utils_b.c.o qkv__b qkv__base
mkdir -p "$folder/empty/src" "$folder/empty/app"
refuse "a build folder without objects" "$layers" "$folder/empty"

rm "$folder/tree/app/lib.p/term_b.c.o" 2>/dev/null
rm -f "$folder/tree/src/lib.p/utils_b.c.o"
check "the tree without it" "$layers" "$folder/tree"
# other_rows NAME EDIT: rows with this edit are refused.
other_rows() {
    sed "$2" "$layers" >"$folder/layers"
    if cmp -s "$layers" "$folder/layers"; then not_ok "$1" "the edit changes nothing"; else refuse "$1" sh "$folder/layers" "$folder/tree"; fi
}
other_rows "a row that names one below it" 's/^src\/base:$/src\/base: kern/'
other_rows "a row of six" 's/^src\/train: /src\/train: kern task /'

# table FILE: the first two columns of its table of folders, as tools/layers --rows prints them.
table() { sed -n '/^| folder |/,/^$/s/^\(| `[^`]*` |[^|]*|\).*/\1/p' "$1" | tr -s ' ' | sort; }
rows=$("$layers" --rows | tr -s ' ' | sort)
document=$root/docs/architecture.md
same "the table of docs/architecture.md has the rows of tools/layers" "$rows" "$(table "$document")"

# other NAME EDIT: a document with this edit has another table.
other() {
    sed "$2" "$document" >"$folder/edited.md"
    if [ "$rows" = "$(table "$folder/edited.md")" ]; then not_ok "$1"; else ok "$1"; fi
}
other "a row that allows more is noticed" 's/^| `src\/score` | |/| `src\/score` | model |/'
other "a missing row is noticed" '/^| `app\/learn` |/d'
other "a row too many is noticed" '/^| `app\/learn` |/{p;s/learn/utils/}'
finish
