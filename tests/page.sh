#!/bin/sh
# page.sh: the explorer page, or the live page, in a real Chromium; screenshots stay in BUILD/page.
# usage: page.sh QKV BUILD explorer|live
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") build=$(realpath "$2") which=$3 here=$(cd "$(dirname "$0")/page" && pwd)
export LC_ALL=C.UTF-8

skip_all() { skipped "the $which page: $1"; exit 0; }
engine=$build/wasm/engine.wasm.gz
[ "$which" = explorer ] || [ -e "$engine" ] || skip_all "there is no WebAssembly engine (make wasm makes it)"
for needed in node npm chromium; do
    command -v $needed >/dev/null || skip_all "$needed is not installed (tools/deps test installs it)"
done
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip_all "it needs Node.js 18 or newer"

# What npm installs goes into the build folder, once, by whichever of the two tests is there first.
mkdir -p "$build/page"
out=$build/page
install_packages() {
    cmp -s "$here/package-lock.json" "$out/installed" && return
    cp "$here/package.json" "$here/package-lock.json" "$out"
    (cd "$out" && npm ci --no-audit --no-fund >npm.log 2>&1) && cp "$here/package-lock.json" "$out/installed"
}
(flock 9 && install_packages) 9>"$out/lock" ||
    skip_all "npm cannot install playwright-core and axe-core (see $out/npm.log)"

cd "$folder" || exit 1
check "sentence pairs" "$qkv" example translate --out pairs --pairs 4000 --quiet
check "a translator" "$qkv" train translate --train pairs/train.tsv --valid pairs/valid.tsv --out translator --preset tiny \
    --vocab 600 --max-tokens 1024 --schedule linear --lr 2e-3 --warmup 20 --steps 60 --valid-every 20 --keep 9
for heads in 12 16 32; do
    check "$heads heads" "$qkv" train translate --train pairs/valid.tsv --out heads$heads --preset tiny --vocab 600 --dim 96 \
        --heads $heads --steps 1
done
check "reviews" "$qkv" example classify --out reviews --pairs 300 --quiet
check "a classifier" "$qkv" train classify --train reviews/train.tsv --valid reviews/valid.tsv --out classifier --preset tiny \
    --tokens words --steps 10
check "a toy language" "$qkv" example generate --out toy --lines 400
check "a language model" "$qkv" train generate --train toy/train.txt --valid toy/valid.txt --out language --preset tiny \
    --steps 10
check "one with a short memory" "$qkv" train generate --train toy/train.txt --valid toy/valid.txt --out learned --preset tiny \
    --positions learned --longest 32 --max-length 31 --steps 2
tr '\n' ' ' <toy/train.txt | cut -d ' ' -f 1-1050 >long.txt
[ "$failures" = 0 ] || finish || exit 1
if [ "$which" = explorer ]; then
    node "$here/page.test.mjs" "$qkv" "$out" translator classifier language long.txt heads12 heads16 heads32 || failures=1
else
    for model in translator classifier language learned heads12 heads16; do
        check "the live page of $model" "$qkv" page -m $model -o $model.html --engine "$engine" --quiet
    done
    node "$here/views.test.mjs" "$qkv" "$out" translator.html classifier.html language.html heads12.html heads16.html || failures=1
    node "$here/remarks.test.mjs" "$qkv" "$out" . || failures=1
fi
finish
