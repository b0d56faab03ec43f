#!/bin/sh
# hardening.sh: what the linker and the compiler were asked for is in the files. usage: hardening.sh QKV LIBRARY OPTIMIZATION
. "$(dirname "$0")/cases.sh"
for file in "$1" "$2"; do
    name=$(basename "$file")
    contains "$name: its tables are read-only, and bound at the start" "$(readelf -lW "$file") $(readelf -dW "$file")" GNU_RELRO BIND_NOW
    contains "$name: at any address" "$(readelf -hW "$file")" "DYN "
    called=$(nm -D --undefined-only "$file")
    contains "$name: buffers are guarded" "$called" __stack_chk_fail
    case $3 in
        0 | g | plain) skipped "$name: calls with a bound need an optimized build" ;;
        *) contains "$name: calls have a bound" "$called" __snprintf_chk ;;
    esac
    same "$name: the stack is no program" "" "$(readelf -lW "$file" | grep GNU_STACK | grep RWE)"
done
finish
