#!/bin/sh
# tour.sh: docs/tour.md names functions that are there, and every file that a document names exists. usage: tour.sh ROOT
#
# In the tour a function, written `name()`, is defined in the file that was named last before it in the same paragraph or item.
. "$(dirname "$0")/cases.sh"
root=$1
tour=$root/docs/tour.md

# steps FILE: a line "FILE FUNCTION" for each function that a tour names, "- FUNCTION" where no file is named before it.
steps() {
    awk '
    /^$/ || /^ *[0-9]+\. / || /^#/ { file = "-" }
    !/^    +\$/ {
        n = split($0, span, "`")
        for (i = 2; i < n; i += 2)
            if (span[i] ~ /^[a-z][a-z_]*\/.*\.[a-z]+$/) file = span[i]
            else if (span[i] ~ /^[a-z_0-9]+\(\)$/) print file, substr(span[i], 1, length(span[i]) - 2)
    }' "$1"
}

# is_defined FILE FUNCTION: a definition, also of a kernel; neither a call nor a declaration.
is_defined() {
    [ -f "$root/$1" ] || { echo "there is no file $1"; return 1; }
    awk -v name="$2" '
    /^[A-Za-z_]/ && $0 ~ "(^|[ *])(" name "|NAME\\(" name "\\))\\(" { is_near = 1 }
    is_near && /[{;]/ {
        sub(/;.*/, ";") # what comes first
        if (/\{/) found = 1
        is_near = 0
    }
    END { exit !found }' "$root/$1" || { echo "$1 defines no $2()"; return 1; }
}

# holds FILE: every step of this tour is right.
holds() {
    steps "$1" >"$folder/steps"
    [ -s "$folder/steps" ] || { echo "it names no function"; return 1; }
    wrong=0
    while read -r file function; do is_defined "$file" "$function" || wrong=1; done <"$folder/steps"
    return $wrong
}

# questions FILE: ten, each with one function.
questions() {
    sed -n '/^## Ten questions/,$p' "$1" | grep '^[0-9]' >"$folder/questions"
    steps "$folder/questions" >"$folder/answers"
    [ "$(grep -c '?' "$folder/questions")" = 10 ] && [ "$(grep -c -v '^-' "$folder/answers")" = 10 ]
}

check "every function of the tour is in its file" holds "$tour"
check "ten questions, each answered by one function" questions "$tour"

# worse NAME EDIT: a tour with this edit does not hold.
worse() {
    sed "$2" "$tour" >"$folder/edited.md"
    if cmp -s "$tour" "$folder/edited.md"; then not_ok "$1" "the edit changes nothing"
    else refuse "$1" holds "$folder/edited.md"; fi
}
worse "a function that is not there is noticed" 's/`qkv__search_penalty()`/`qkv__search_penalties()`/'
worse "a function of another file is noticed" 's/`qkv_backward()`/`qkv_attend()`/'
worse "a function that is only called there is noticed" 's/`search_all()`/`qkv_session_encode()`/'
worse "a function that is only declared there is noticed" 's/`src\/tensor\/tape.c`/`include\/qkv\/tensor.h`/'
worse "a kernel that is not there is noticed" 's/`attend_paged()`/`attend_pages()`/'
worse "a file that is not there is noticed" 's/`src\/nn\/mha.c`/`src\/nn\/heads.c`/'
worse "a function without a file is noticed" 's/^1\. `app\/cli\/main.c`: /1. /'
sed '/length penalty?/d' "$tour" >"$folder/nine.md"
refuse "nine questions are noticed" questions "$folder/nine.md"

# paths FILE: every file that a document names in backquotes is there; a * stands for some.
paths() {
    wrong=0
    for path in $(awk '{ n = split($0, span, "`"); for (i = 2; i < n; i += 2) print span[i] }' "$1" |
                  grep -E '^(src|app|include|examples|tests|tools|docs|web|bench|po)/[^ ]*$' | sort -u); do
        (cd "$root" && ls -d $path) >/dev/null 2>&1 || { echo "there is no $path"; wrong=1; }
    done
    return $wrong
}
for document in "$root"/*.md "$root"/docs/*.md "$root"/docs/math/*.md; do
    check "the files of ${document#"$root"/} are there" paths "$document"
done
echo 'see `src/nn/heads.c`' >"$folder/bad.md"
refuse "a document that names no file is noticed" paths "$folder/bad.md"
finish
