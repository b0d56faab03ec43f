#!/bin/sh
# layers.sh: the layering of this project holds, and tools/layers sees it when it does not. usage: layers.sh ROOT
. "$(dirname "$0")/cases.sh"
layers=$1/tools/layers

check "the project keeps its layers" "$layers" "$1"

# wrong NAME FILE LINE: a project with this line in this file is refused.
wrong() {
    rm -rf "$folder/src" "$folder/cli" "$folder/learn"
    mkdir -p "$folder/$(dirname "$2")" "$folder/src/base" "$folder/cli"
    echo '#include "a.h"' | tee "$folder/src/base/right.c" >"$folder/cli/right.c"
    check "before: $1" "$layers" "$folder"
    echo "$3" >"$folder/$2"
    refuse "$1" "$layers" "$folder"
}
wrong "io may not include op" src/io/a.c '#include "../op/op.h"'
wrong "base may not include a public header above it" src/base/a.c '#include <qkv/op.h>'
wrong "kern may not include all of qkv" src/kern/a.h '  #  include <qkv/qkv.h>'
wrong "nn may not include kern" src/nn/a.c '#include "../kern/kern.h"'
wrong "an include may not leave src" src/op/a.c '#include "../../cli/term/print.h"'
wrong "cli may not look inside" cli/a.c '#include "../src/base/file.h"'
wrong "lessons may not look inside" learn/a.c '#include "../src/nn/layer.h"'
wrong "the terminal knows no lessons" cli/term/a.c '#include "../../learn/lesson.h"'
wrong "scores know no models" src/score/a.c '#include "../model/config.h"'
wrong "a folder without a row" src/utils/a.c 'int x;'
wrong "a source outside the layers" src/a.c 'int x;'

# table FILE: the first two columns of its table of folders, as tools/layers --rows prints them.
table() { sed -n '/^| folder |/,/^$/s/^\(| `[^`]*` |[^|]*|\).*/\1/p' "$1" | tr -s ' ' | sort; }
rows=$("$layers" --rows "$1" | tr -s ' ' | sort)
document=$1/docs/architecture.md
same "the table of docs/architecture.md has the rows of tools/layers" "$rows" "$(table "$document")"

# other NAME EDIT: a document with this edit has another table.
other() {
    sed "$2" "$document" >"$folder/edited.md"
    if [ "$rows" = "$(table "$folder/edited.md")" ]; then not_ok "$1"; else ok "$1"; fi
}
other "a row that allows more is noticed" 's/^| `src\/score` | base text |/| `src\/score` | base text model |/'
other "a missing row is noticed" '/^| `learn` |/d'
other "a row too many is noticed" '/^| `learn` |/{p;s/learn/src\/utils/}'
finish
