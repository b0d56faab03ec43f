#!/bin/sh
# live.sh: pages of "qkv page" run by Node, Chromium and Firefox, against the native engine. usage: live.sh QKV BUILD [STORIES]
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") build=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd) stories=${3:-none}
export LC_ALL=C.UTF-8
engine=$build/wasm/engine.wasm.gz
cd "$folder" || exit 1
: >in

check "reviews" "$qkv" example classify --out reviews --pairs 300 --quiet
check "a classifier" "$qkv" train classify --train reviews/train.tsv --valid reviews/valid.tsv --out classifier --preset tiny \
    --tokens words --steps 10
gzip -c reviews/train.tsv >other.gz
refused "an engine that is none" 4 "is not the engine" page -m classifier -o page.html --engine reviews/train.tsv
refused "an engine that is not there" 3 "nothing.gz" page -m classifier -o page.html --engine nothing.gz
refused "a model that is not there" 3 "nothing" page -m nothing -o page.html --engine other.gz
for bits in 4 0 4294967304; do
    refused "$bits bits" 2 "--bits $bits: expected 8, 16 or 32" page -m classifier -o page.html --engine other.gz --bits $bits
done
check "nothing was written" test ! -e page.html
check "a page, whatever the engine is" run 0 "wrote page.html" page -m classifier -o page.html --engine other.gz
contains "which may ask nobody anything" "$(head -c 2000 page.html)" "connect-src 'none'" "default-src 'none'" "'wasm-unsafe-eval'"
[ ! -e "$here/../docs/live.html" ] || check "the page in docs has less than 3 MB" test "$(wc -c <"$here/../docs/live.html")" -lt 3000000
check "the same with 8 bits" run 0 "" page -m classifier -o page8.html --engine other.gz --bits 8 --quiet
for page in page.html page8.html; do check "$page begins with sentences of the training" grep -q '"examples.txt":' $page; done

skip_rest() { skipped "pages in a browser: $1"; finish; exit $?; }
[ -e "$engine" ] || skip_rest "there is no WebAssembly engine (make wasm makes it)"
command -v node >/dev/null || skip_rest "node is not installed (tools/deps test installs it)"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip_rest "it needs Node.js 18 or newer"

check "sentence pairs" "$qkv" example translate --out pairs --pairs 2000 --quiet
check "a translator" "$qkv" train translate --train pairs/train.tsv --valid pairs/valid.tsv --out translator --preset tiny \
    --vocab 600 --max-tokens 1024 --schedule linear --lr 2e-3 --warmup 20 --steps 60
check "a toy language" "$qkv" example generate --out toy --lines 400
check "a language model" "$qkv" train generate --train toy/train.txt --valid toy/valid.txt --out language --preset tiny --steps 10
for model in translator classifier language; do
    check "a page of the $model" run 0 "wrote" page -m $model -o $model.html --engine "$engine"
done
check "and one of 8 bits" run 0 "wrote" page -m translator -o translator8.html --engine "$engine" --bits 8
cut -f1 pairs/test.tsv | head -n 10 >sentences
pages="translator.html classifier.html language.html"
if [ -r "$stories/hf/config.json" ]; then # a published generator
    cp -r "$stories/hf" stories && chmod -R u+w stories && cp "$stories/tok512.model" stories/tokenizer.model
    check "a page of stories260K" run 0 "wrote" page -m stories -o stories.html --engine "$engine"
    pages="$pages stories.html"
else skipped "a page of stories260K: the model is not here"; fi
[ "$failures" = 0 ] || finish || exit 1
mkdir -p "$build/live"
node "$here/live/live.test.mjs" "$qkv" "$build/live" sentences translator.html translator8.html classifier.html language.html || failures=1
# shellcheck disable=SC2086
node "$here/live/browsers.test.mjs" "$qkv" "$build/live" sentences $pages || failures=1
finish
