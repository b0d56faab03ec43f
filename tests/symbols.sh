#!/bin/sh
# symbols.sh: what the shared library shows and what it calls, how large it is, and what a program with it loads.
# usage: symbols.sh LIBRARY PROGRAM MOST       MOST: bytes of the stripped library; 0: any
. "$(dirname "$0")/cases.sh"

shown() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'; }
called() { nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'; }

shown "$1" >"$folder/shown"
called "$1" >"$folder/called"

contains "its public names are there" "$(cat "$folder/shown")" qkv_version qkv_attention qkv_tape_new qkv_translate
same "it shows qkv_ names only" "" "$(grep -v '^qkv_[^_]' "$folder/shown")"

# A conversation is read back from its JSON; whatever else makes text, JSON or CSV is the program's.
same "it renders nothing" "" "$(grep -E '_(text|json|csv)$' "$folder/shown" | grep -vxE 'qkv_chat_(from|to)_json')"

# Whatever ends the process or prints; snprintf and its family write to memory and are fine.
ending='exit|_exit|_Exit|quick_exit|abort|__assert_fail|__assert_perror_fail|raise|kill'
printing='v?f?printf|__v?f?printf_chk|puts|fputs|putchar|putc|fputc|_IO_putc|perror|psignal|vdprintf|dprintf|stdout|stderr'
same "it neither ends the process nor prints" "" "$(grep -Ex "$ending|$printing" "$folder/called")"
same "the list would notice" "$(printf 'abort\n__printf_chk\nstderr')" \
    "$(printf 'abort\nmemcpy\n__printf_chk\nsnprintf\n__snprintf_chk\nstderr\n' | grep -Ex "$ending|$printing")"

# Names may have another form where libc is in parts.
loaded=$(ldd "$2" | awk '{ sub(/.*\//, "", $1); sub(/\.so.*/, "", $1); print $1 }' | grep -vxE 'linux-(vdso|gate)|ld-.*|libpthread|libdl' | sort)
same "a program that translates loads little" "$(printf 'libc\nlibm\nlibpcre2-8\nlibqkv\nlibutf8proc\nlibz')" "$loaded"
strip -o "$folder/stripped" "$1"
size=$(wc -c <"$folder/stripped")
if [ "$3" = 0 ]; then skipped "the size of the library: it counts with gcc and -O3 on x86-64 ($size bytes)"
else check "the stripped library has at most $3 bytes ($size)" test "$size" -le "$3"; fi
finish
