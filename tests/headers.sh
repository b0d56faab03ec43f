#!/bin/sh
# headers.sh: every public header compiles alone, in C11 and C++17. usage: headers.sh ROOT CC...
. "$(dirname "$0")/cases.sh"
root=$1
shift
for header in "$root"/include/qkv/*.h "$root"/include/qkv/unstable/*.h; do
    name=${header#"$root/include/qkv/"} unstable=
    case $name in unstable/*)
        unstable=-DQKV_UNSTABLE
        refuse "$name needs QKV_UNSTABLE" "$@" -std=c11 -x c -fsyntax-only -I "$root/include" "$header" ;;
    esac
    [ "$name" = qkv.h ] || contains "$name says what threads may do" "$(cat "$header")" " * Threads: "
    check "$name in C11" "$@" -std=c11 -x c -fsyntax-only -Wall -Wextra -pedantic -Werror $unstable -I "$root/include" "$header"
    if command -v c++ >/dev/null; then
        check "$name in C++17" c++ -std=c++17 -x c++ -fsyntax-only -Wall -Wextra -pedantic -Werror $unstable -I "$root/include" "$header"
    else
        skipped "$name in C++17: there is no c++"
    fi
done
{
    echo '#include <qkv/model.h>'
    echo 'const struct { const char *key; size_t at; } keys[] = {'
    echo '#define QKV_OPTION(member, kind, key, ...) { key, offsetof(qkv_config, member) },'
    echo '#include <qkv/transformer.def>'
    echo '};'
} >"$folder/options.h"
check "transformer.def in C11" "$@" -std=c11 -x c -fsyntax-only -Wall -Wextra -pedantic -Werror -I "$root/include" -include stddef.h \
    "$folder/options.h"
if command -v c++ >/dev/null; then
    check "transformer.def in C++17" c++ -std=c++17 -x c++ -fsyntax-only -Wall -Wextra -pedantic -Werror -I "$root/include" \
        -include cstddef "$folder/options.h"
fi

# Names as the compiler sees them: without comments and strings.
code() { cat "$@" | tr '\n' ' ' | sed 's,/\*[^*]*\**\([^/*][^*]*\*\**\)*/, ,g; s/"[^"]*"//g'; }
names() { code "$@" | grep -oiE '\bqkv_[a-z0-9_]+' | sort -u; }
twins() { awk '{ low = tolower($0); if (low in seen) print seen[low], $0; seen[low] = $0 }'; }
names "$root"/include/qkv/*.h "$root"/include/qkv/unstable/*.h >"$folder/names"
contains "names are found" "$(cat "$folder/names")" QKV_SHAPE qkv_tensor_shape qkv_translate_opts QKV_CAN_EMBED
same "no internal name is shown" "" "$(grep '^qkv__' "$folder/names")"
same "no two names differ by case alone" "" "$(twins <"$folder/names")"
# Functions that comments and the table of docs/api.md call.
code "$root"/include/qkv/*.h "$root"/include/qkv/unstable/*.h | grep -oE '\bqkv_[a-z0-9_]+\(' | sort -u >"$folder/functions"
{ cat "$root"/include/qkv/*.h "$root"/include/qkv/unstable/*.h | grep -oE '\bqkv_[a-z0-9_]+\(\)' | tr -d ')'
    grep '^|' "$root/docs/api.md" | grep -oE '`qkv_[a-z0-9_]+`' | sed 's/`\(.*\)`/\1(/'; } | sort -u >"$folder/called"
contains "calls are found" "$(cat "$folder/called")" "qkv_translate(" "qkv_train("
same "what comments and docs/api.md call is declared" "" "$(comm -13 "$folder/functions" "$folder/called")"
same "two that do would be noticed" "QKV_WORDS qkv_words" "$(printf 'QKV_WORDS\nqkv_word\nqkv_words\n' | twins)"

cat >"$folder/options.c" <<'END'
#include <qkv/qkv.h>
int beam_of(void);
int beam_of(void)
{
    qkv_translate_opts o = QKV_OPTS(qkv_translate_opts);
    o.beam_size = 4;
#ifndef __cplusplus
    o = QKV_OPTS(qkv_translate_opts, .beam_size = 8, .n_best = 2);
#endif
    return o.size == sizeof o ? o.beam_size : 0;
}
END
check "QKV_OPTS in C11" "$@" -std=c11 -x c -fsyntax-only -Wall -Wextra -pedantic -Werror -I "$root/include" "$folder/options.c"
if command -v c++ >/dev/null; then
    check "QKV_OPTS in C++17" c++ -std=c++17 -x c++ -fsyntax-only -Wall -Wextra -pedantic -Werror -I "$root/include" \
        "$folder/options.c"
fi
echo '#include <no_such_header.h>' >"$folder/bad.h"
refuse "a header that does not compile is noticed" "$@" -std=c11 -x c -fsyntax-only "$folder/bad.h"
finish
