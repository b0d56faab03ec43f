#!/bin/sh
# strings.sh: no string of the shared library names an option of the command, and it translates nothing. usage: strings.sh LIBRARY
. "$(dirname "$0")/cases.sh"

named() { grep -E '(^|[ (])--[a-z]'; }

same "no string names an option" "" "$(strings -n 4 "$1" | named)"
same "the pattern would notice" "$(printf -- '--steps 3\ngive --steps\nsteps (--steps)')" \
    "$(printf -- '--steps 3\n-- steps\na--b\ngive --steps\nsteps (--steps)\n---\n' | named)"
same "it translates nothing" "" "$(nm -D --undefined-only "$1" | grep -E 'gettext|textdomain')"
finish
