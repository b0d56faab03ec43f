#!/bin/sh
# strings.sh: no string of the shared library names an option of the command, and it translates nothing. usage: strings.sh LIBRARY
. "$(dirname "$0")/cases.sh"

named() { grep -E '(^|[ (])--[a-z]'; }

# Those that still do. The list only shrinks: a sentence that is gone from the library is removed here too.
LC_ALL=C sort >"$folder/known" <<'KNOWN'
%s holds a model already: give another folder (--from it starts with its weights)
%s holds a training already: continue it with --resume, or give another folder
%s; a training with --like %s makes one that can
%s; a training with --like %s or --like %s makes one that can be saved as that
--epochs reached
--minutes reached
--patience: validation stopped improving
--steps reached
cannot resume %s: its schedule was made for %lld steps, and this one is for %lld: to train longer, start another training with --from
its classifier has no naive Bayes: train with --ngrams 0
KNOWN
strings -n 4 "$1" | named | LC_ALL=C sort >"$folder/found"
same "no other string names an option" "$(cat "$folder/known")" "$(cat "$folder/found")"
same "the pattern would notice" "$(printf -- '--steps 3\ngive --steps\nsteps (--steps)')" \
    "$(printf -- '--steps 3\n-- steps\na--b\ngive --steps\nsteps (--steps)\n---\n' | named)"
same "it translates nothing" "" "$(nm -D --undefined-only "$1" | grep -E 'gettext|textdomain')"
finish
