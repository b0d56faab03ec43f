# A thin front over meson and ninja.
#
#   make                     build into build/
#   make test                build and run every test; SAN=1 with the address and undefined-behaviour sanitizers
#   make demo                train a small translator, translate, and see what it attends to
#   make bench               measure against the machine and other libraries; BENCH="--quick products -1" for a part of it
#   make wasm                the engine as WebAssembly, for "qkv page"
#   make docs/live.html      the page of the demo's model that the documentation holds, after a change of page or engine
#   make install             PREFIX=/usr/local, DESTDIR= for packagers
#   make abi                 write down the ABI anew, after a change of it that is meant
#   make mutate              300 changes of the upper layers, one at a time: what the tests miss; an hour or more
#   make format              apply .clang-format
#   make clean               remove what was built
#
# CC=clang builds with another compiler, into a folder of its own.

PREFIX ?= /usr/local
BENCH ?=
own_compiler := $(filter-out default,$(origin CC))
BUILD ?= build$(if $(SAN),-san)$(if $(own_compiler),-$(notdir $(firstword $(CC))))

options := --libdir=lib
ifdef SAN
options += -Db_sanitize=address,undefined -Db_lundef=false
export ASAN_OPTIONS ?= halt_on_error=1:detect_leaks=1:abort_on_error=0
export UBSAN_OPTIONS ?= halt_on_error=1:print_stacktrace=1
endif

.NOTPARALLEL: # what is missing is installed before anything is built; ninja uses all cores by itself

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# Where what it is made with cannot be had the rest goes on without it; an engine that does not build is an error.
wasm_if_ready = if $(MAKE) --no-print-directory wasm-ready; then $(MAKE) --no-print-directory wasm; else echo "goes on without the engine for browsers" >&2; fi

test: $(BUILD)/with-tests
	@ninja -C $(BUILD) --quiet
	@$(wasm_if_ready)
	@tools/run-tests $(BUILD)

demo: deps-demo $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet app/qkv
	@$(wasm_if_ready)
	@tools/demo $(BUILD)

bench: deps-bench $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet bench/bench
	@$(BUILD)/bench/bench $(BENCH)

wasm-ready: deps-wasm
	@tools/wasm-sources $(BUILD)/wasm/deps

# Found by the command in the same folder; needs no configured build.
wasm: wasm-ready
	@$(MAKE) --no-print-directory -j$$(nproc) -f tools/wasm.mk OUT=$(BUILD)/wasm

# With the model of the last demo, or a new one.
docs/live.html: wasm $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet app/qkv
	@test -e demo/model/model.safetensors || tools/demo $(BUILD)
	@$(BUILD)/app/qkv page -m demo/model -o $@ --name demo
	@test $$(wc -c <$@) -lt 3000000 || { echo "$@ has 3 MB or more" >&2; exit 1; }

install: all
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)
	@test ! -e $(BUILD)/wasm/engine.wasm.gz || install -Dm644 $(BUILD)/wasm/engine.wasm.gz $(DESTDIR)$(abspath $(PREFIX))/share/qkv/engine.wasm.gz
	@test -n "$(DESTDIR)" || ldconfig 2>/dev/null || echo "now run ldconfig as root, or set LD_LIBRARY_PATH=$(PREFIX)/lib"

abi: $(BUILD)/with-tests
	@ninja -C $(BUILD) --quiet
	@QKV_ABI=renew meson test -C $(BUILD) abi --quiet

# SEED=2 draws another 300; MUTATE="-w /tmp/mutants" keeps the copies of the project for the next time.
SEED ?= 1
mutate: deps-test
	@tools/mutate -n 300 -s $(SEED) $(MUTATE) src/task src/chat src/decode src/train src/model

# MINUTES=1 for less; READER="jinja bin" for some of them. Without READER also ranks that are killed, stopped and cut off, and
# builds without each optional library.
MINUTES ?= 10
soak: $(BUILD)/with-tests
	@tools/soak -m $(MINUTES) $(READER)
	@$(if $(READER),,ninja -C $(BUILD) --quiet && sh tests/netns.sh $(BUILD)/app/qkv && \
	    sh tests/kills.sh $(BUILD)/app/qkv $(BUILD)/tests/signal_at.so all && tools/variants)

format:
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-soak build-variants build-san build-gcc build-clang build-san-gcc build-san-clang

$(BUILD)/build.ninja: | deps-build
	@$(if $(own_compiler),CC="$(CC)") meson setup $(BUILD) $(options) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

# A folder that was set up without cmocka learns about the tests here.
$(BUILD)/with-tests: $(BUILD)/build.ninja | deps-test
	@meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD) build.ninja >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@touch $@

deps-%:
	@tools/deps $*

.PHONY: all test abi demo bench wasm wasm-ready docs/live.html install mutate soak format clean
