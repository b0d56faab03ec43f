# wasm.mk: the engine as WebAssembly, with Debian's clang and wasi-libc: one thread, vectors of 128 bits.
# usage: make -f tools/wasm.mk OUT=build/wasm DEPS=build/wasm/deps
#
# DEPS has the sources of pcre2 and utf8proc, as "tools/deps wasm" unpacks them: there is no package with these as
# WebAssembly. What a page does not need is left out: pictures, HTTP, trainings from files, benchmarks.

OUT ?= build/wasm
DEPS ?= $(OUT)/deps
CLANG ?= clang

pcre2 := $(wildcard $(DEPS)/pcre2-*/src)
utf8proc := $(wildcard $(DEPS)/utf8proc-*)

# What is fast is fast in the kernels and operations; the rest is small.
target := --target=wasm32-wasi -msimd128 -Os -fno-math-errno -fvisibility=hidden -ffunction-sections -fdata-sections -MMD -MP
emulated := -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_GETPID
deps_flags := -I$(OUT)/include -DUTF8PROC_STATIC -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC
fast := -O2
flags := $(target) -std=c11 -D_GNU_SOURCE -DQKV_UNSTABLE $(emulated) -Iinclude -Iweb/wasm -include web/wasm/stand_ins.h $(deps_flags) -Wall -Wextra

layers := base tensor nn io token data model decode score task inspect dist train
sources := $(foreach layer,$(layers),$(wildcard src/$(layer)/*.c)) src/kern/dispatch.c $(wildcard app/engine/*.c app/report/*.c web/wasm/*.c) app/term/translator.c
left_out := src/data/lines.c src/dist/dist.c src/dist/mpi.c src/dist/reduction.c src/train/run.c src/train/run_folder.c src/train/plan.c
objects := $(patsubst %.c,$(OUT)/%.o,$(filter-out $(left_out),$(sources)))
# src/meson.build lists the kernels' files.
kernels_of = $(basename $(notdir $(shell sed -n "s/^$1 = files(\(.*\))/\1/p" src/meson.build | tr -d "',")))
reference := $(patsubst %,$(OUT)/ref/%.o,$(call kernels_of,reference_sources))
vector := $(patsubst %,$(OUT)/baseline/%.o,$(call kernels_of,vector_sources) $(call kernels_of,exact_vector_sources))

pcre2_names := auto_possess chartables compile config context error extuni find_bracket jit_compile maketables match \
    match_data newline ord2utf pattern_info script_run string_utils study tables ucd valid_utf xclass
pcre2_objects := $(pcre2_names:%=$(OUT)/pcre2/pcre2_%.o)
all_objects := $(objects) $(reference) $(vector) $(pcre2_objects) $(OUT)/utf8proc.o

$(OUT)/engine.wasm.gz: $(OUT)/engine.wasm
	@gzip -9nc $< >$@.part && mv $@.part $@

$(OUT)/engine.wasm: $(all_objects)
	@$(CLANG) --target=wasm32-wasi -mexec-model=reactor -O2 $^ -o $@ -lwasi-emulated-signal \
	    -lwasi-emulated-process-clocks -lwasi-emulated-getpid -lm -Wl,--gc-sections,--strip-all,-z,stack-size=1048576

$(objects): $(OUT)/%.o: %.c $(OUT)/include/ready
	@mkdir -p $(@D)
	@$(CLANG) $(flags) $(if $(findstring src/tensor/,$<),$(fast)) -c $< -o $@

$(reference): $(OUT)/ref/%.o: src/kern/%.c
	@mkdir -p $(@D)
	@$(CLANG) $(flags) $(fast) -DQKV_ISA=ref -ffp-contract=off -c $< -o $@

$(vector): $(OUT)/baseline/%.o: src/kern/%.c
	@mkdir -p $(@D)
	@$(CLANG) $(flags) $(fast) -DQKV_ISA=baseline -DQKV_VECTOR_BYTES=16 $(if $(filter quantized,$*),-ffp-contract=off,-ffp-contract=fast) \
	    -fno-trapping-math -c $< -o $@

# ---- the libraries ----

$(OUT)/include/ready: tools/wasm.mk
	@mkdir -p $(@D)
	@cp $(utf8proc)/utf8proc.h $(@D)
	@cp $(pcre2)/pcre2.h.generic $(@D)/pcre2.h
	@cp $(pcre2)/pcre2_chartables.c.dist $(@D)/pcre2_chartables.c
	@(cat $(pcre2)/config.h.generic; echo '#define SUPPORT_UNICODE') >$(@D)/pcre2_config.h
	@touch $@

compile_pcre2 = @mkdir -p $(@D) && $(CLANG) $(target) $(deps_flags) -I$(pcre2) -include $(OUT)/include/pcre2_config.h -c $< -o $@
$(OUT)/pcre2/pcre2_chartables.o: $(OUT)/include/pcre2_chartables.c
	$(compile_pcre2)
$(filter-out %_chartables.o,$(pcre2_objects)): $(OUT)/pcre2/%.o: $(pcre2)/%.c $(OUT)/include/ready
	$(compile_pcre2)

$(OUT)/utf8proc.o: $(utf8proc)/utf8proc.c
	@mkdir -p $(@D)
	@$(CLANG) $(target) -DUTF8PROC_STATIC -c $< -o $@

-include $(all_objects:.o=.d)
.DELETE_ON_ERROR:
