/* forms.c: Unicode's normal forms, with each character knowing where it comes from. */
#include "pipeline.h"

#include <qkv/unstable/util.h>
#include "unicode.h"

#include <stdlib.h>

qkv_status qkv__letter_put(qkv__encoder *e, int32_t code, qkv__range from)
{
    if (qkv__grow((void **)&e->letters, &e->letters_bytes, (e->n_letters + 1) * sizeof *e->letters)) return QKV_MEMORY;
    e->letters[e->n_letters++] = (qkv__letter){ .code = code, .from = from };
    return QKV_OK;
}

qkv_status qkv__letters_of(qkv__encoder *e, qkv__piece piece)
{
    const qkv__traced_text *d = &e->now;
    qkv_status status = QKV_OK;
    e->n_letters = 0;
    for (size_t at = piece.begin, bytes; at < piece.end && !status; at += bytes) {
        int32_t code = qkv_utf8_next(d->text.data + at, piece.end - at, &bytes);
        status = qkv__letter_put(e, code, qkv__traced_text_from(d, at, at + bytes));
    }
    return status;
}

qkv_status qkv__letters_end(qkv__encoder *e)
{
    size_t begin = e->next.text.length;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < e->n_letters && !status; i++)
        status = qkv__traced_text_put_code(&e->next, e->letters[i].code, e->letters[i].from);
    return status ? status : qkv__traced_text_end(&e->next, begin, -1);
}

/* ---- taking apart ---- */

enum { PARTS_MAX = 32 }; /* a character falls into at most 18 */

static int by_class(const void *a, const void *b)
{
    const qkv__letter *x = a, *y = b;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Marks of different classes have one order; those of the same class keep theirs. */
static void order_marks(qkv__letter *letters, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        bool sorted = true;
        for (end = i + 1; end < n && letters[end].class; end++) sorted = sorted && letters[end - 1].class <= letters[end].class;
        size_t first = i + !letters[i].class; /* before it there is nothing to go past */
        if (!sorted) qsort(letters + first, end - first, sizeof *letters, by_class);
    }
}

/* To the version of the normal forms that are compared with. */
static bool is_unknown(int32_t code) { return qkv__came_after(code, 9); }

qkv_status qkv__decompose(qkv__encoder *e, bool compat)
{
    const utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0);
    size_t n = e->n_letters;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) { /* the parts go behind all of them */
        int32_t parts[PARTS_MAX];
        int bound = UTF8PROC_BOUNDCLASS_START;
        int32_t code = e->letters[i].code;
        utf8proc_ssize_t made = is_unknown(code) ? 0 : utf8proc_decompose_char(code, parts, PARTS_MAX, options, &bound);
        if (made < 1 || made > PARTS_MAX) made = 1, parts[0] = code;
        for (utf8proc_ssize_t k = 0; k < made && !status; k++) status = qkv__letter_put(e, parts[k], e->letters[i].from);
    }
    if (status) return status;
    e->n_letters -= n;
    for (size_t i = 0; i < e->n_letters; i++) {
        e->letters[i] = e->letters[n + i];
        e->letters[i].place = (uint32_t)i;
        int32_t code = e->letters[i].code;
        e->letters[i].class = is_unknown(code) ? 0 : (unsigned char)utf8proc_get_property(code)->combining_class;
    }
    order_marks(e->letters, e->n_letters);
    return QKV_OK;
}

/* ---- putting together ---- */

static int32_t together(int32_t a, int32_t b)
{
    int32_t both[2] = { a, b };
    if (b < 0x80 || utf8proc_normalize_utf32(both, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1) return -1;
    return is_unknown(both[0]) ? -1 : both[0];
}

static void add_range(qkv__range *to, qkv__range from)
{
    if (from.begin < to->begin) to->begin = from.begin;
    if (from.end > to->end) to->end = from.end;
}

/* A mark goes to the last character of class 0, unless one of its own class or a higher one stands between. */
static void compose(qkv__encoder *e)
{
    qkv__letter *letters = e->letters, *base = NULL;
    size_t n = 0;
    int between = -1;
    for (size_t i = 0; i < e->n_letters; i++) {
        qkv__letter letter = letters[i];
        int32_t made = base && between < letter.class ? together(base->code, letter.code) : -1;
        if (made >= 0) {
            base->code = made;
            add_range(&base->from, letter.from);
            continue;
        }
        between = letter.class ? letter.class : -1;
        letters[n++] = letter;
        if (!letter.class) base = &letters[n - 1];
    }
    e->n_letters = n;
}

static bool is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

qkv_status qkv__normal_form(const qkv__step *s, qkv__encoder *e, qkv__piece piece)
{
    if (is_ascii(e->now.text.data + piece.begin, piece.end - piece.begin))
        return qkv__traced_text_keep(&e->next, &e->now, piece);
    qkv_status status = qkv__letters_of(e, piece);
    if (!status) status = qkv__decompose(e, s->compat);
    if (!status && s->compose) compose(e);
    return status ? status : qkv__letters_end(e);
}
