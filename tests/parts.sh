#!/bin/sh
# The command without cairo, pango and libmicrohttpd, and the options that leave each of them and libedit out. tools/variants builds
# and tests each of these. usage: parts.sh QKV_WITHOUT MAKE_MODEL ROOT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2") root=$3
cd "$folder" || exit 1

readelf -d "$qkv" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >needed
same "it needs no library for pictures or HTTP" libc.so.6 "$(grep -E 'libc\.|cairo|pango|glib|gobject|microhttpd' needed)"

printf '%s\n' 'the cat sat on the mat' 'I love you' >corpus
check "a model" "$make_model" pair pair corpus
printf '1 2 3\n4 5 6\n' >array.txt
# without NAME COMMAND...: it ends with 5 and says what is missing
without() {
    what=$1
    shift
    said=$("$qkv" "$@" 2>&1)
    same "qkv $1 $2 ends with 5" 5 $?
    contains "and says why" "$said" "built without $what"
}
without "cairo and pango" show array array.txt -o x.png
without "cairo and pango" show model --dim 4 --heads 2 --d-ff 16 -o x.svg
without "cairo and pango" attend -m pair 'the cat' -o x.png
without libmicrohttpd serve -m pair --port 0
check "arrays are shown as text" "$qkv" show array array.txt
check "attention goes to a page" "$qkv" attend -m pair 'the cat' -o x.html
check "a model translates" sh -c "echo 'the cat' | '$qkv' translate -m pair"

# The options are known and a build without all of these parts can be set up.
if said=$(meson setup build "$root" --libdir=lib -Dcairo=disabled -Dpango=disabled -Dmicrohttpd=disabled -Dlibedit=disabled \
    -Dtests=disabled 2>&1); then ok "a build without all parts"; else not_ok "a build without all parts" "$said"; fi
same "it compiles the stand-ins" 2 "$(ninja -C build -t targets all 2>/dev/null | grep -cE '^app/libqkvapp.a.p/(draw_no_pictures|serve_no_server).c.o:')"
finish
