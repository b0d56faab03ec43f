/* dispatch.c: which kernels run. */
#include "kern.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Instruction sets of this build, worst first: name, and whether the machine has it. Every 64-bit ARM has NEON. */
#if defined(__x86_64__)
#define ISA_LIST(I)                                                                                                            \
    I(ref, 1)                                                                                                                  \
    I(baseline, 1)                                                                                                             \
    I(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                                                   \
    I(avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && \
                  __builtin_cpu_supports("avx512bw"))
#elif defined(__aarch64__)
#define ISA_LIST(I) I(ref, 1) I(neon, 1)
#else
#define ISA_LIST(I) I(ref, 1) I(baseline, 1)
#endif

#define DECLARE(name, runs) extern const qkv__kernels QKV_KERNEL(name, kernels);
ISA_LIST(DECLARE)
#undef DECLARE

const qkv__kernels *qkv__kern;
static char refusal[160]; /* why QKV_ISA could not be followed */

const qkv__kernels *qkv__kernels_available(int i)
{
#define COUNT(name, runs) \
    if ((runs) && i-- == 0) return &QKV_KERNEL(name, kernels);
    ISA_LIST(COUNT)
#undef COUNT
    return NULL;
}

const char *qkv_isa_available(int i)
{
    const qkv__kernels *k = i >= 0 ? qkv__kernels_available(i) : NULL;
    return k ? k->isa : NULL;
}

/* The named one, or the best; NULL when there is none. */
static const qkv__kernels *find(const char *name)
{
    const qkv__kernels *found = NULL, *k;
    for (int i = 0; (k = qkv__kernels_available(i)); i++)
        if (!name || !strcmp(k->isa, name)) found = k;
    return found;
}

static void refuse(const char *what, const char *name)
{
    size_t at = (size_t)snprintf(refusal, sizeof refusal, "%s: this machine or build has no \"%.20s\"; it has", what, name);
    for (int i = 0; qkv_isa_available(i) && at < sizeof refusal - 16; i++)
        at += (size_t)snprintf(refusal + at, sizeof refusal - at, "%s %s", i ? "," : "", qkv_isa_available(i));
}

static void choose(void)
{
    const char *wish = getenv("QKV_ISA");
    if (wish && !*wish) wish = NULL;
    if (!(qkv__kern = find(wish))) refuse("QKV_ISA", wish);
}

static pthread_once_t chosen = PTHREAD_ONCE_INIT;

const char *qkv_isa(void)
{
    pthread_once(&chosen, choose);
    if (qkv__kern) return qkv__kern->isa;
    qkv__fail(QKV_UNSUPPORTED, "%s", refusal);
    return NULL;
}

qkv_status qkv_set_isa(const char *name)
{
    pthread_once(&chosen, choose);
    const qkv__kernels *wanted = name ? find(name) : NULL;
    if (wanted) {
        qkv__kern = wanted;
        return QKV_OK;
    }
    refuse("qkv_set_isa", name ? name : "");
    return qkv__fail(QKV_UNSUPPORTED, "%s", refusal);
}
