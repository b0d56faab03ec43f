/* split.c: cuts text into words by GPT-2's pattern, run by PCRE2. */
#include "split.h"

#include "buffer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* White space as Unicode lists it, which is what \s means where the pattern comes from; PCRE2's own \s has U+180E too. */
#define SPACE "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"

static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d"
                              "| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+"
                              "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+";

struct qkv__pattern {
    pcre2_general_context *memory;
    pcre2_code *code;
};

/* PCRE2 takes a failed allocation of its JIT compiler for a machine without one; this tells them apart. */
static _Thread_local bool memory_failed;

static void *lend(size_t bytes, void *unused)
{
    (void)unused;
    void *memory = qkv__lend(bytes);
    if (!memory) memory_failed = true;
    return memory;
}

static void take_back(void *memory, void *unused)
{
    (void)unused;
    qkv__take_back(memory);
}

static qkv_status compile(qkv__pattern *p)
{
    int error;
    size_t place;
    memory_failed = false;
    if (!(p->memory = pcre2_general_context_create(lend, take_back, NULL))) return QKV_MEMORY;
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    if (!context) return QKV_MEMORY;
    p->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &place, context);
    pcre2_compile_context_free(context);
    if (p->code) pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without it matching is slower, not different */
    if (memory_failed) return QKV_MEMORY;
    return p->code ? QKV_OK : qkv__fail(QKV_UNSUPPORTED, "PCRE2 was built without Unicode: text cannot be cut into words");
}

qkv__pattern *qkv__pattern_new(void)
{
    qkv__pattern *p = qkv__alloc_zero(sizeof *p);
    if (!p || !compile(p)) return p;
    qkv__pattern_free(p);
    return NULL;
}

void qkv__pattern_free(qkv__pattern *p)
{
    if (!p) return;
    pcre2_code_free(p->code);
    pcre2_general_context_free(p->memory);
    qkv__release(p, sizeof *p);
}

void qkv__cut_begin(qkv__cutter *c, const char *text, size_t length)
{
    c->text = text;
    c->length = length;
    c->at = c->stretch = c->stretch_end = 0;
}

/* The bytes from `at` that are no UTF-8. */
static size_t bad_bytes(const qkv__cutter *c)
{
    size_t n = 0, bytes;
    while (c->at + n < c->length && qkv_utf8_decode(c->text + c->at + n, c->length - c->at - n, &bytes) < 0) n += bytes;
    return n;
}

/* The end of the match that starts at `at`. The pattern matches every character in some way. */
static qkv_status match(qkv__cutter *c, const qkv__pattern *p, size_t *end)
{
    if (!c->found && !(c->found = pcre2_match_data_create(1, p->memory))) return QKV_MEMORY;
    const char *start = c->text + c->stretch;
    memory_failed = false;
    int n = pcre2_match(p->code, (PCRE2_SPTR)start, c->stretch_end - c->stretch, c->at - c->stretch, PCRE2_NO_UTF_CHECK,
                        c->found, NULL);
    if (n < 0) return memory_failed ? QKV_MEMORY : qkv__fail(QKV_FAILURE, "text cannot be cut into words: PCRE2 error %d", n);
    *end = c->stretch + pcre2_get_ovector_pointer(c->found)[1];
    return QKV_OK;
}

qkv_status qkv__cut_next(qkv__cutter *c, const qkv__pattern *p, size_t *begin, size_t *end)
{
    qkv_status status = QKV_OK;
    *begin = *end = c->at;
    if (c->at == c->length) return QKV_OK;
    if (c->at == c->stretch_end) {
        c->stretch = c->at;
        c->stretch_end = c->at + qkv_utf8_check(c->text + c->at, c->length - c->at);
    }
    if (c->at == c->stretch_end) *end = c->stretch = c->stretch_end = c->at + bad_bytes(c);
    else status = match(c, p, end);
    c->at = *end;
    return status;
}

void qkv__cutter_free(qkv__cutter *c)
{
    pcre2_match_data_free(c->found);
    *c = (qkv__cutter){ 0 };
}
