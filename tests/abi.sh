#!/bin/sh
# abi.sh: the ABI of include/qkv/*.h is the one that is written down in golden/abi.xml.gz. usage: abi.sh LIBRARY ROOT CC...; QKV_ABI=renew writes it
# What abidiff compares is made of the public headers: a library with every function that they declare, and nothing in it,
# with the types that the compiler writes down for debuggers. The real library has the same names.
. "$(dirname "$0")/cases.sh"
library=$1 root=$2
shift 2
golden=$root/tests/golden/abi.xml.gz
# declared HEADER..: each of their functions with an empty body.
declared() {
    cat "$@" | sed 's/^[ \t]*#.*//' | tr '\n' ' ' | sed 's,/\*[^*]*\**\([^/*][^*]*\*\**\)*/, ,g' |
        grep -o 'QKV_API [^;]*' | sed 's/^QKV_API //; s/$/ { __builtin_trap(); }/'
}
{ echo '#include <qkv/qkv.h>'; declared "$root"/include/qkv/*.h; } >"$folder/declared.c"
{
    echo '#define QKV_UNSTABLE'
    for header in "$root"/include/qkv/unstable/*.h; do echo "#include <qkv/unstable/$(basename "$header")>"; done
    declared "$root"/include/qkv/unstable/*.h
} >"$folder/unstable.c"
check "what the headers declare compiles" "$@" -std=c11 -g -O0 -ffile-prefix-map="$folder=." -shared -fPIC -fvisibility=hidden -I "$root/include" \
    -o "$folder/libqkv.so" "$folder/declared.c"
check "what the unstable headers declare compiles" "$@" -std=c11 -shared -fPIC -fvisibility=hidden -I "$root/include" \
    -o "$folder/unstable.so" "$folder/unstable.c"
names() { nm -D --defined-only "$1" | awk '$NF ~ /^qkv_/ { print $NF }' | sort; }
same "the library has the functions of the headers, and no others" "$( (names "$folder/libqkv.so"; names "$folder/unstable.so") | sort)" "$(names "$library")"

if command -v abidw >/dev/null && command -v abidiff >/dev/null; then
    abidw --headers-dir "$root/include" --no-show-locs --no-corpus-path --no-comp-dir-path "$folder/libqkv.so" >"$folder/now.xml"
    if [ "${QKV_ABI:-}" = renew ]; then gzip -9n <"$folder/now.xml" >"$golden" && echo "renewed $golden"; fi
    gunzip -c "$golden" >"$folder/then.xml"
    same "the ABI is as it was (docs/api.md says what to do when it is not)" "" "$(abidiff "$folder/then.xml" "$folder/now.xml" 2>&1)"
    sed 's/int64_t n_best/int n_best/; s/qkv_shutdown/qkv_threads_end/' "$folder/declared.c" >"$folder/other.c"
    "$@" -std=c11 -g -O0 -ffile-prefix-map="$folder=." -shared -fPIC -fvisibility=hidden -I "$root/include" -o "$folder/other.so" "$folder/other.c" 2>/dev/null
    abidw --headers-dir "$root/include" "$folder/other.so" >"$folder/other.xml"
    contains "another one would be noticed" "$(abidiff "$folder/then.xml" "$folder/other.xml" 2>&1)" qkv_shutdown
else
    skipped "the ABI: there is no abidiff (Debian's abigail-tools)"
fi
finish
