#!/bin/sh
# install.sh: an installed library can be used through pkg-config. usage: install.sh BUILD SANITIZERS CC...
. "$(dirname "$0")/cases.sh"
build=$1 sanitizers=$2
shift 2
[ "$sanitizers" = none ] || set -- "$@" "-fsanitize=$sanitizers"

check "meson install into a DESTDIR" env DESTDIR="$folder/root" meson install -C "$build" --no-rebuild --quiet
pc=$(cd "$folder/root" && find . -name qkv.pc)
same "one qkv.pc" 1 "$(echo "$pc" | grep -c .)"
export PKG_CONFIG_PATH="$folder/root/$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$folder/root"
library_folder=$(dirname "$PKG_CONFIG_PATH")
same "pkg-config knows the version" "$(sed -n 's/#define QKV_VERSION_STRING "\(.*\)"/\1/p' "$(dirname "$0")/../include/qkv/base.h")" \
    "$(pkg-config --modversion qkv)"
for file in libqkv.so libqkv.so.1 libqkv.a; do check "$file is installed" test -e "$library_folder/$file"; done
contains "the soname is versioned" "$(objdump -p "$library_folder/libqkv.so")" "libqkv.so.1"
installed=$(cd "$folder/root" && find . -type f)
contains "command, headers and manual are installed" "$installed" bin/qkv include/qkv/qkv.h include/qkv/base.h man1/qkv.1 zh_CN/man1/qkv.1 \
    cmake/qkv/qkvConfigVersion.cmake share/locale/zh_CN/LC_MESSAGES/qkv.mo
contains "the installed command finds its Chinese texts" \
    "$("$folder/root/$(echo "$installed" | grep 'bin/qkv$')" learn --lang zh 2>&1)" "亲手计算查询、键和值"

contains "the command alone is built with them" "$(ninja -C "$build" -t query app/qkv)" po/zh_CN/LC_MESSAGES/qkv.mo
mkdir -p "$folder/moved/src" && cp -r "$build/app" "$build/po" "$folder/moved" && cp "$build"/src/libqkv.so* "$folder/moved/src"
contains "a build folder that was moved finds them" "$("$folder/moved/app/qkv" --help --lang zh 2>&1)" "用法"
contains "also by the locale" "$(LC_ALL=zh_CN.UTF-8 "$folder/moved/app/qkv" --help 2>&1)" "用法"

cat >"$folder/use.c" <<'END'
#include <qkv/qkv.h>
#include <stdio.h>
int main(void)
{
    qkv_tape *t = qkv_tape_new(NULL);
    const float one[] = { 1 };
    int64_t shape[] = { 1, 1 };
    qkv_tensor *x = qkv_constant(t, 2, shape, one);
    printf("%s %g\n", qkv_version(), (double)qkv_tensor_item(qkv_attention(x, x, x, NULL, NULL)));
    qkv_tape_free(t);
    qkv_shutdown();
    return 0;
}
END
wanted="$(pkg-config --modversion qkv) 1"
# shellcheck disable=SC2046
check "a program builds with pkg-config" "$@" "$folder/use.c" $(pkg-config --cflags --libs qkv) -o "$folder/use"
same "and runs" "$wanted" "$(LD_LIBRARY_PATH=$library_folder "$folder/use" 2>&1)"
for sample in "$(dirname "$0")"/../examples/*.c; do
    # shellcheck disable=SC2046
    check "$(basename "$sample") builds as C11" "$@" -std=c11 -Wall -Wextra -Werror "$sample" $(pkg-config --cflags --libs qkv) \
        -o "$folder/sample"
done
if command -v cmake >/dev/null; then
    mkdir "$folder/project"
    cp "$folder/use.c" "$folder/project"
    cat >"$folder/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(use C)
find_package(qkv ${WANTED} REQUIRED)
add_executable(use use.c)
target_link_libraries(use PRIVATE qkv::qkv)
END
    # with_cmake FOLDER VERSION
    with_cmake() {
        CC=$compiler cmake -S "$folder/project" -B "$1" -DCMAKE_PREFIX_PATH="$folder/root$prefix" -DWANTED="$2"
    }
    prefix=$(pkg-config --variable=prefix qkv) compiler=$*
    prefix=${prefix#"$folder/root"}
    version=$(pkg-config --modversion qkv)
    check "a CMake project finds the package" with_cmake "$folder/project/build" "${version%.*}"
    check "and builds" cmake --build "$folder/project/build"
    same "and runs" "$wanted" "$("$folder/project/build/use" 2>&1)"
    minor=${version#*.}
    refuse "another minor version is refused" with_cmake "$folder/project/other" "${version%%.*}.$((${minor%.*} - 1))"
    refuse "so is another major version" with_cmake "$folder/project/other" "$((${version%%.*} + 1)).0"
else
    skipped "a CMake project: there is no cmake"
fi
if command -v c++ >/dev/null; then
    sample=$(dirname "$0")/../examples/10_cpp.cpp
    [ "$sanitizers" = none ] || sanitized="-fsanitize=$sanitizers"
    # shellcheck disable=SC2046,SC2086
    check "the C++17 sample builds" c++ ${sanitized:-} -std=c++17 -Wall -Wextra -pedantic -Werror "$sample" $(pkg-config --cflags --libs qkv) \
        -o "$folder/sample"
    printf 'I love you\tich liebe dich\nI see you\tich sehe dich\n' >"$folder/pairs.tsv"
    same "and runs" "trained for 4 steps|translated 1 text|read 1 token|" \
        "$(LD_LIBRARY_PATH=$library_folder "$folder/sample" "$folder/pairs.tsv" 2>&1 | tr '\n' '|')"
else
    skipped "the C++17 sample: there is no c++"
fi
rm -f "$library_folder"/libqkv.so*
# shellcheck disable=SC2046
check "the static library builds with pkg-config --static" \
    "$@" "$folder/use.c" $(pkg-config --static --cflags --libs qkv) -o "$folder/use_static"
same "and runs alone" "$wanted" "$("$folder/use_static" 2>&1)"
if command -v cmake >/dev/null; then
    check "a CMake project takes it then" with_cmake "$folder/project/static" ""
    check "and builds with it" cmake --build "$folder/project/static"
    same "and runs with it" "$wanted" "$("$folder/project/static/use" 2>&1)"
fi
finish
