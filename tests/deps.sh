#!/bin/sh
# deps.sh: tools/deps says what is missing where it cannot install it. usage: deps.sh ROOT
. "$(dirname "$0")/cases.sh"
deps=$1/tools/deps

# No test installs anything: this apt-get never works.
mkdir "$folder/bin" "$folder/offline"
printf '#!/bin/sh\necho "no network" >&2\nexit 100\n' | tee "$folder/offline/apt-get" >"$folder/offline/sudo"
chmod +x "$folder"/offline/*

# A system with nothing but what the script itself needs.
for tool in sh grep id basename tail mktemp rm; do ln -s "$(command -v $tool)" "$folder/bin/"; done
bare() { env -i PATH="$folder/bin" sh "$deps" "$@" 2>&1; }
offline() { env -i PATH="$folder/offline:$folder/bin" sh "$deps" "$@" 2>&1; }

same "nothing is missing where the tests run, and it says nothing" "" "$(PATH=$folder/offline:$PATH CC='' "$deps" test 2>&1)"
refuse "a bare system is refused" bare build
contains "with the packages by name" "$(bare build)" "no apt-get" gcc meson ninja-build pkg-config libutf8proc-dev libpcre2-dev zlib1g-dev
contains "tests need more" "$(bare test)" libcmocka-dev g++
contains "and so does the benchmark" "$(bare bench)" libopenblas0-pthread libblis4-pthread python3-torch python3-numpy
contains "and so does WebAssembly" "$(bare wasm)" clang libclang-rt-dev-wasm32 lld
same "one message" 1 "$(bare all | wc -l)"
contains "another compiler is asked for by its name" "$(env -i PATH="$folder/bin" CC="clang -m64" sh "$deps" build 2>&1)" " clang"
refuse "a system without network is refused" offline build
contains "and told what to install" "$(offline build)" "please install" meson libutf8proc-dev
contains "before apt-get runs it says so" "$(offline build | head -n 1)" "running apt-get to install" meson libutf8proc-dev
refuse "an unknown word is refused" "$deps" everything
finish
