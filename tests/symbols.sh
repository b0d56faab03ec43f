#!/bin/sh
# symbols.sh: what the shared library shows and what it calls. usage: symbols.sh LIBRARY
. "$(dirname "$0")/cases.sh"

shown() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'; }
called() { nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'; }

shown "$1" >"$folder/shown"
called "$1" >"$folder/called"

contains "its public names are there" "$(cat "$folder/shown")" qkv_version qkv_attention qkv_tape_new qkv_translate
same "it shows qkv_ names only" "" "$(grep -v '^qkv_[^_]' "$folder/shown")"

# Whatever ends the process or prints; snprintf and its family write to memory and are fine.
ending='exit|_exit|_Exit|quick_exit|abort|__assert_fail|__assert_perror_fail|raise|kill'
printing='v?f?printf|__v?f?printf_chk|puts|fputs|putchar|putc|fputc|_IO_putc|perror|psignal|vdprintf|dprintf|stdout|stderr'
same "it neither ends the process nor prints" "" "$(grep -Ex "$ending|$printing" "$folder/called")"
same "the list would notice" "$(printf 'abort\n__printf_chk\nstderr')" \
    "$(printf 'abort\nmemcpy\n__printf_chk\nsnprintf\n__snprintf_chk\nstderr\n' | grep -Ex "$ending|$printing")"
finish
