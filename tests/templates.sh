#!/bin/sh
# templates.sh: published chat templates, compared with what npm's @huggingface/jinja writes, where the files are given:
#   QKV_TEMPLATES=DIR      DIR/NAME.jinja, conversations DIR/N.json (the variables), and DIR/NAME.N.txt (what that program wrote)
# tests/golden/render_templates.js makes the last of the other two. usage: templates.sh RENDER_TEMPLATE
. "$(dirname "$0")/cases.sh"
render=$(realpath "$1")
[ -n "${QKV_TEMPLATES:-}" ] || { skipped "published templates: QKV_TEMPLATES is not set"; exit 0; }
for wanted in "$QKV_TEMPLATES"/*.*.txt; do
    name=${wanted%.txt} number=${wanted%.txt}
    name=${name%.*} number=${number##*.}
    "$render" "$name.jinja" "$QKV_TEMPLATES/$number.json" 1720000000 >"$folder/out" 2>"$folder/err"
    if cmp -s "$folder/out" "$wanted"; then ok "${name##*/} $number"
    else not_ok "${name##*/} $number" "$(cat "$folder/err")"; fi
done
finish
