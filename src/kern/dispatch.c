/* dispatch.c: which kernels run. */
#include "kern.h"

#include <qkv/unstable/util.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__x86_64__)
/* Every processor with AVX2 has it, but a virtual machine may hide it, and not every compiler knows its name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* A bit of cpuid's leaf 7: not every compiler knows the names of these. */
typedef enum cpuid_register { EAX, EBX, ECX, EDX } cpuid_register;

static bool has_feature(unsigned sub, cpuid_register from, unsigned bit)
{
    unsigned r[4];
    return __get_cpuid_count(7, sub, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) && (r[from] >> bit & 1);
}

/* The system must save tiles, and gives a process the room for it when asked. The sizes of tiles are not read: there is one
 * palette, and virtual machines hide it. */
static bool may_use_tiles(void)
{
#ifdef __linux__
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, TILE_STATES = 3 << 17 };
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATES) == TILE_STATES && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA);
#else
    return false;
#endif
}

static bool has_amx(void)
{
    bool int8 = has_feature(0, EDX, 25), bf16 = has_feature(0, EDX, 22);
    return has_feature(0, EDX, 24) && int8 && bf16 && may_use_tiles();
}
#elif defined(__aarch64__) && defined(__linux__)
static bool has_dot_product(void)
{
    enum { ASIMDDP = 1 << 20 };
    return getauxval(AT_HWCAP) & ASIMDDP;
}
#elif defined(__aarch64__)
static bool has_dot_product(void) { return false; }
#endif

/* Instruction sets of this build, worst first: name, and whether the machine has it. Every 64-bit ARM has NEON. What one does
 * not do itself it takes from the one before it. */
#if defined(__x86_64__)
#define ISA_LIST(I)                                                                                                            \
    I(ref, 1)                                                                                                                  \
    I(baseline, 1)                                                                                                             \
    I(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())                                     \
    I(avx_vnni, is_best("avx2") && has_feature(1, EAX, 4))                                                                     \
    I(avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && \
                  __builtin_cpu_supports("avx512bw") && has_f16c())                                                            \
    I(avx512_vnni, is_best("avx512") && has_feature(0, ECX, 11))                                                               \
    I(avx512_bf16, is_best("avx512_vnni") && has_feature(1, EAX, 5))                                                           \
    I(amx, (is_best("avx512_vnni") || is_best("avx512_bf16")) && has_amx())
#elif defined(__aarch64__)
#define ISA_LIST(I) I(ref, 1) I(neon, 1) I(neon_dot, has_dot_product())
#else
#define ISA_LIST(I) I(ref, 1) I(baseline, 1)
#endif

#define DECLARE(name, runs) extern const qkv__kernels QKV_KERNEL(name, kernels);
ISA_LIST(DECLARE)
#undef DECLARE

const qkv__kernels *qkv__kern;
static char refusal[160]; /* why QKV_ISA could not be followed */

enum { MOST_SETS = 8 };
static qkv__kernels available[MOST_SETS]; /* those the machine can run, with what they inherit */
static int n_available;

void qkv__kernels_inherit(qkv__kernels *own, const qkv__kernels *from)
{
    if (!own->floats) own->floats = from->floats;
    if (!own->row_tile) own->row_tile = from->row_tile;
#define K(kind, result, name, parameters) \
    if (!own->name) own->name = from->name;
#include "kernels.def"
#undef K
}

#if defined(__x86_64__)
/* Whether the last one that was found is that: a set of a few kernels builds on it. */
static bool is_best(const char *isa) { return !strcmp(available[n_available - 1].isa, isa); }
#endif

static void gather_tables(void)
{
#define GATHER(name, runs)                                                                           \
    if (runs) {                                                                                      \
        available[n_available] = QKV_KERNEL(name, kernels);                                          \
        if (n_available) qkv__kernels_inherit(&available[n_available], &available[n_available - 1]); \
        n_available++;                                                                               \
    }
    ISA_LIST(GATHER)
#undef GATHER
}

const qkv__kernels *qkv__kernels_available(int i)
{
    static pthread_once_t gathered = PTHREAD_ONCE_INIT;
    pthread_once(&gathered, gather_tables);
    return i < n_available ? &available[i] : NULL;
}

const char *qkv_isa_at(int i)
{
    const qkv__kernels *k = i >= 0 ? qkv__kernels_available(i) : NULL;
    return k ? k->isa : NULL;
}

/* The named one, or the best; NULL when there is none. */
static const qkv__kernels *find_kernels(const char *name)
{
    const qkv__kernels *found = NULL, *k;
    for (int i = 0; (k = qkv__kernels_available(i)); i++)
        if (!name || !strcmp(k->isa, name)) found = k;
    return found;
}

static void refuse_isa(const char *what, const char *name)
{
    size_t at = (size_t)snprintf(refusal, sizeof refusal, "%s: this machine or build has no \"%.20s\"; it has", what, name);
    for (int i = 0; qkv_isa_at(i) && at < sizeof refusal - 16; i++)
        at += (size_t)snprintf(refusal + at, sizeof refusal - at, "%s %s", i ? "," : "", qkv_isa_at(i));
}

static void choose_kernels(void)
{
    const char *wish = getenv("QKV_ISA");
    if (wish && !*wish) wish = NULL;
    if (!(qkv__kern = find_kernels(wish))) refuse_isa("QKV_ISA", wish);
}

static pthread_once_t chosen = PTHREAD_ONCE_INIT;

const char *qkv_isa(void)
{
    pthread_once(&chosen, choose_kernels);
    if (qkv__kern) return qkv__kern->isa;
    qkv__fail(QKV_UNSUPPORTED, "%s", refusal);
    return NULL;
}

qkv_status qkv_set_isa(const char *name)
{
    pthread_once(&chosen, choose_kernels);
    const qkv__kernels *wanted = name ? find_kernels(name) : NULL;
    if (wanted) {
        qkv__kern = wanted;
        return QKV_OK;
    }
    refuse_isa("qkv_set_isa", name ? name : "");
    return qkv__fail(QKV_UNSUPPORTED, "%s", refusal);
}
