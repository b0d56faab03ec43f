/* split.c: cuts text by regular expressions, run by PCRE2. */
#include "split.h"

#include <qkv/unstable/util.h>

#include "unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

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

static qkv_status compile(qkv__pattern *p, const char *expression, uint32_t options, int *error, size_t *place)
{
    memory_failed = false;
    if (!p->memory && !(p->memory = pcre2_general_context_create(lend, take_back, NULL))) return QKV_MEMORY;
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    if (!context) return QKV_MEMORY;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    p->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, PCRE2_UTF | options, error, place, context);
    pcre2_compile_context_free(context);
    if (p->code) pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without it matching is slower, not different */
    return memory_failed ? QKV_MEMORY : QKV_OK;
}

/* ---- expressions of published tokenizers ---- */

/* \w where the expressions come from: also letters in circles and squares; outside of brackets also Latin-1's small numbers. */
#define WORD \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
#define SMALL_NUMBERS "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

/* What stands for an escape where the expression comes from but means something else to PCRE2; NULL: nothing. */
static const char *translated(char letter, bool in_class)
{
    if (letter == 'd') return in_class ? "\\p{Nd}" : "[\\p{Nd}]";
    if (letter == 'D' && !in_class) return "[^\\p{Nd}]";
    if (letter == 's') return in_class ? SPACE : "[" SPACE "]";
    if (letter == 'w') return in_class ? WORD : "[" WORD SMALL_NUMBERS "]";
    if (letter == 'S' && !in_class) return "[^" SPACE "]";
    if (letter == 'W' && !in_class) return "[^" WORD SMALL_NUMBERS "]";
    return letter == 'S' ? "\\P{Xsp}\\x{180E}" : NULL;
}

/* What means something else inside of brackets there, and cannot be said to PCRE2. */
static bool is_foreign(const char *at) { return *at == '[' || !strncmp(at, "&&", 2) || !strncmp(at, "\\W", 2); }

/* How many bytes a property has that starts here, \p{L}, \P{L} or \pL, and its name; 0: there is none. */
static size_t property_at(const char *at, const char **name, size_t *length)
{
    if (at[0] != '\\' || (at[1] != 'p' && at[1] != 'P') || !at[2]) return 0;
    const char *end = at[2] == '{' ? strchr(at, '}') : at + 3;
    if (!end) return 0;
    *name = at + 2 + (at[2] == '{');
    *length = (size_t)(end - *name);
    return (size_t)(end - at) + (at[2] == '{');
}

/* A property with the characters that PCRE2 does not know yet. In brackets, what does not have it stays as it is. */
static qkv_status put_property(const char *at, size_t bytes, const char *name, size_t length, bool in_class, qkv_buffer *out)
{
    bool is_not = at[1] == 'P';
    if (is_not && in_class) return qkv__buffer_put(out, at, bytes);
    const char *open = in_class ? "" : is_not ? "[^" : "[";
    qkv_status status = qkv__buffer_put(out, open, strlen(open));
    if (!status) status = qkv__buffer_put(out, "\\p", 2);
    if (!status) status = qkv__buffer_put(out, at + 2, bytes - 2);
    if (!status) status = qkv__put_newer(name, length, out);
    return status || in_class ? status : qkv__buffer_put(out, "]", 1);
}

/* What stands for an escape; its properties are in brackets. */
static qkv_status put_translated(const char *text, qkv_buffer *out)
{
    qkv_status status = QKV_OK;
    const char *name;
    for (size_t bytes, length; *text && !status; text += bytes) {
        bytes = property_at(text, &name, &length);
        if (bytes) status = put_property(text, bytes, name, length, true, out);
        else status = qkv__buffer_put(out, text, bytes = 1);
    }
    return status;
}

static qkv_status translate_pattern(const char *name, const char *expression, qkv_buffer *out)
{
    bool in_class = false;
    qkv_status status = QKV_OK;
    for (const char *at = expression; *at && !status; at++) {
        if (in_class && is_foreign(at))
            return qkv__fail(QKV_UNSUPPORTED, "%s: [, && and \\W inside of brackets are not supported", name);
        const char *property;
        size_t length, bytes = property_at(at, &property, &length);
        if (bytes) {
            status = put_property(at, bytes, property, length, in_class, out);
            at += bytes - 1;
            continue;
        }
        const char *other = at[0] == '\\' && at[1] ? translated(at[1], in_class) : NULL;
        if (at[0] == '[' && !in_class) in_class = true;
        else if (at[0] == ']') in_class = false;
        if (other) status = put_translated(other, out);
        else status = qkv__buffer_put(out, at, at[0] == '\\' && at[1] ? 2 : 1);
        at += at[0] == '\\' && at[1];
    }
    return status;
}

qkv__pattern *qkv__pattern_new(void)
{
    int error;
    size_t place;
    qkv_buffer text = { 0 };
    qkv__pattern *p = qkv__alloc_zero(sizeof *p);
    qkv_status status = p ? translate_pattern("", pattern, &text) : QKV_MEMORY;
    if (!status) status = compile(p, text.data, 0, &error, &place);
    qkv_buffer_free(&text);
    if (!status && p->code) return p;
    if (!status) qkv__fail(QKV_UNSUPPORTED, "PCRE2 was built without Unicode: text cannot be cut into words");
    qkv__pattern_free(p);
    return NULL;
}

static qkv_status refuse_pattern(const char *name, const qkv__pattern *p, int error, size_t place)
{
    char words[128] = "";
    uint32_t matches_nothing = 0;
    if (!p->code) {
        pcre2_get_error_message(error, (PCRE2_UCHAR *)words, sizeof words);
        return qkv__fail(QKV_UNSUPPORTED, "%s: the expression is not understood at character %zu: %s", name, place, words);
    }
    pcre2_pattern_info(p->code, PCRE2_INFO_MATCHEMPTY, &matches_nothing);
    return matches_nothing ? qkv__fail(QKV_UNSUPPORTED, "%s: the expression matches empty text", name) : QKV_OK;
}

qkv__pattern *qkv__pattern_compile(const char *name, const char *expression)
{
    int error = 0;
    size_t place = 0;
    qkv_buffer text = { 0 };
    qkv__pattern *p = qkv__alloc_zero(sizeof *p);
    qkv_status status = p ? translate_pattern(name, expression, &text) : QKV_MEMORY;
    if (!status)
        status = compile(p, text.data ? text.data : "", PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &place);
    if (!status) status = refuse_pattern(name, p, error, place);
    qkv_buffer_free(&text);
    if (!status) return p;
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
    while (c->at + n < c->length && qkv_utf8_next(c->text + c->at + n, c->length - c->at - n, &bytes) < 0) n += bytes;
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
        c->stretch_end = c->at + qkv_utf8_valid(c->text + c->at, c->length - c->at);
    }
    if (c->at == c->stretch_end) *end = c->stretch = c->stretch_end = c->at + bad_bytes(c);
    else status = match(c, p, end);
    c->at = *end;
    return status;
}

void qkv__cut_begin_at(qkv__cutter *c, const char *text, size_t begin, size_t end)
{
    c->text = text;
    c->length = end;
    c->at = c->stretch = begin;
    c->stretch_end = end;
}

/* A search may take so many steps from the start, and costs fewer: most take none. Frames of what is tried without the JIT
 * compiler are kept below 32 MiB. */
enum { FREE_STEPS = 1000, SEARCH_COST = 10, HEAP_KIB = 32768 };

static qkv_status find_within(qkv__cutter *c, const qkv__pattern *p, size_t at, uint32_t steps, int *n)
{
    if (!c->found && !(c->found = pcre2_match_data_create(1, p->memory))) return QKV_MEMORY;
    if (!c->limits && !(c->limits = pcre2_match_context_create(p->memory))) return QKV_MEMORY;
    pcre2_set_match_limit(c->limits, steps);
    pcre2_set_heap_limit(c->limits, HEAP_KIB);
    memory_failed = false;
    *n = PCRE2_ERROR_JIT_STACKLIMIT; /* where the fast way has no room, the other one is taken */
    for (uint32_t slow = 0; *n == PCRE2_ERROR_JIT_STACKLIMIT && slow <= PCRE2_NO_JIT; slow += PCRE2_NO_JIT)
        *n = pcre2_match(p->code, (PCRE2_SPTR)(c->text + c->stretch), c->stretch_end - c->stretch, at - c->stretch,
                         PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | slow, c->found, c->limits);
    return memory_failed ? QKV_MEMORY : QKV_OK;
}

/* A match that needs more than a few steps is tried again with more, which are taken from the walk's budget: so a whole walk
 * takes time in proportion to its text, whatever the expression. */
qkv_status qkv__cut_find(qkv__cutter *c, const qkv__pattern *p, size_t at, size_t *begin, size_t *end)
{
    int n = PCRE2_ERROR_MATCHLIMIT;
    qkv_status status = QKV_OK;
    *begin = *end = c->stretch_end;
    for (uint32_t steps = FREE_STEPS; !status && n == PCRE2_ERROR_MATCHLIMIT && c->budget; steps *= 10) {
        const uint64_t cost = steps > FREE_STEPS ? steps : SEARCH_COST;
        status = find_within(c, p, at, steps, &n);
        c->budget -= cost < c->budget ? cost : c->budget;
        if (steps > UINT32_MAX / 10) break;
    }
    if (status || n == PCRE2_ERROR_NOMATCH) return status;
    if (n < 0)
        return qkv__fail(QKV_LIMIT, "tokenizer: an expression of its file takes too long on this text (PCRE2 error %d)", n);
    *begin = c->stretch + pcre2_get_ovector_pointer(c->found)[0];
    *end = c->stretch + pcre2_get_ovector_pointer(c->found)[1];
    return QKV_OK;
}

void qkv__cutter_free(qkv__cutter *c)
{
    pcre2_match_data_free(c->found);
    pcre2_match_context_free(c->limits);
    *c = (qkv__cutter){ 0 };
}
