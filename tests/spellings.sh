#!/bin/sh
# spellings.sh: a special token is spelled in one file alone, include/qkv/tokenizer.h; elsewhere it has a name. usage: spellings.sh ROOT
. "$(dirname "$0")/cases.sh"
header=include/qkv/tokenizer.h

# strings FILE..: "file: line: text" for each line's strings; comments are none.
strings() {
    awk 'FNR == 1 { inside = 0 }
    {
        line = $0
        gsub(/\\\\|\\"/, "", line)
        text = ""
        while (line != "") {
            if (inside) { if (!(i = index(line, "*/"))) break; line = substr(line, i + 2); inside = 0 }
            else if (match(line, /^"[^"]*"/)) { text = text substr(line, 2, RLENGTH - 2) " "; line = substr(line, RLENGTH + 1) }
            else if (substr(line, 1, 2) == "/*") { inside = 1; line = substr(line, 3) }
            else line = substr(line, 2)
        }
        if (text != "") printf "%s: %d: %s\n", FILENAME, FNR, text
    }' "$@"
}

# spelled ROOT: where a string outside the header has one of the spellings that are named there; fails where one does.
spelled() (
    cd "$1" || exit 2
    sed -n 's/^#define QKV_SPECIAL_[A-Z0-9_]* "\(.*\)".*/\1/p' $header >"$folder/spellings"
    [ "$(wc -l <"$folder/spellings")" -ge 2 ] || { echo "$header names no spellings"; exit 1; }
    find src app include -name '*.[ch]' -o -name '*.def' | grep -vx $header >"$folder/files"
    strings $(cat "$folder/files") | grep -F -f "$folder/spellings" && exit 1
    exit 0
)
check "special tokens are spelled in one file" spelled "$1"

# What it sees, and what it does not mind.
for side in src/token app/cli app/learn; do mkdir -p "$folder/p/$side"; done
mkdir -p "$folder/p/include/qkv"
cp "$1/$header" "$folder/p/$header"
# refused_line NAME FILE LINE: a project with this line is refused, and not without it.
refused_line() {
    check "before: $1" spelled "$folder/p"
    echo "$3" >"$folder/p/$2"
    refuse "$1" spelled "$folder/p"
    rm "$folder/p/$2"
}
echo '/* "<s>" begins a text,
 * "</s>" ends it */ int a = ids[MASK]; // [MASK]' >"$folder/p/src/token/right.c"
refused_line "a spelling in the library" src/token/a.c 'int32_t id = qkv_tokenizer_id(t, "<s>");'
refused_line "in a sentence" src/token/a.h 'return fail(QKV_USAGE, /* says */ "a \"text\" needs a token </s> to end with");'
refused_line "BERT's, in the command" app/cli/a.c '    .help = "such as [CLS]",'
refused_line "in a list" src/token/a.def 'X(gpt2, "<|endoftext|>")'
refused_line "in a lesson" app/learn/a.c 'puts("fill up with <pad>");'
finish
