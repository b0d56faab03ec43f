/* translations.c: translations as lines, as JSON or with heatmaps. */
#include "../report/results.h"
#include "translations.h"

#include "../draw/print_maps.h"
#include "json.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One translation, and its source. */
typedef struct shown {
    const qkv_model *m;
    const qkv_translation *x;
    const int32_t *source; /* ids, the end included */
    int64_t columns;       /* ids of the source, the end included; 0: no attention */
    int64_t tokens;        /* of them without the end */
} shown;

/* ---- attention ---- */

static int64_t aligned_rows(const shown *s) { return s->columns && s->tokens > 0 ? s->x->n_ids : 0; }

static void print_alignment(const shown *s)
{
    fputs(" |||", stdout);
    for (int64_t row = 0; row < aligned_rows(s); row++) printf(" %lld-%lld", (long long)s->x->alignment[row], (long long)row);
}

static qkv_status print_translation_map(const shown *s)
{
    const qkv_tokenizer *target = qkv_model_tokenizer(s->m, QKV_SIDE_TARGET);
    int64_t n = s->x->n_ids;
    qkv_special_tokens frame = { .size = sizeof frame };
    if (!s->columns) return QKV_OK;
    if (qkv_model_special_tokens(s->m, &frame)) return library_failed();
    int32_t *rows = malloc(sizeof *rows * (size_t)(n + 1));
    if (!rows) return fail(QKV_MEMORY, "out of memory");
    memcpy(rows, s->x->ids, sizeof *rows * (size_t)n);
    rows[n] = frame.end;
    qkv_status status = print_token_map((token_side){ target, rows, n + 1 },
                                        (token_side){ qkv_model_tokenizer(s->m, QKV_SIDE_SOURCE), s->source, s->columns },
                                        s->x->mean_attention);
    free(rows);
    return status;
}

/* ---- lines ---- */

/* One line stays one line. */
static void put_line(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) putchar(text[i] == '\n' || text[i] == '\r' ? ' ' : text[i]);
}

static qkv_status print_translation_line(const translation_format *f, int64_t number, const shown *s)
{
    if (f->n_best) printf("%lld ||| ", (long long)number - 1);
    put_line(s->x->text.data, s->x->text.length);
    if (f->n_best) printf(" ||| %.6f", s->x->score);
    if (f->alignment) print_alignment(s);
    putchar('\n');
    return f->heatmap ? print_translation_map(s) : QKV_OK;
}

/* ---- all of them ---- */

static qkv_status print_json(const translation_format *f, const qkv_model *m, source_line line, const qkv_translations *t,
                             int64_t i)
{
    qkv_buffer text = { 0 };
    printf("{\"line\": %lld, \"source\": ", (long long)line.number);
    put_json_text(line.text, line.length);
    fputs(", ", stdout);
    return put_json_rest(qkv_translations_json(m, t, i, f->alignment, &text), &text);
}

qkv_status print_translations(const translation_format *f, const qkv_model *m, source_line line, const qkv_translations *t,
                              int64_t i)
{
    qkv_status status = QKV_OK;
    int64_t tokens = t->n_source[i] > t->source_around ? t->n_source[i] - t->source_around : 0;
    if (f->json) return print_json(f, m, line, t, i);
    for (int k = 0; k < t->n_best && !status; k++) {
        const qkv_translation *x = &t->best[i * t->n_best + k];
        const shown s = {
            .m = m, .x = x, .source = t->source_ids[i], .columns = x->attention ? t->n_source[i] : 0, .tokens = tokens
        };
        if (x->n_ids >= 0) status = print_translation_line(f, line.number, &s);
    }
    return status;
}

void print_no_translation(const translation_format *f, int64_t number, const char *reason)
{
    if (f->json) {
        printf("{\"line\": %lld, \"error\": ", (long long)number);
        put_json_text(reason, strlen(reason));
        puts("}");
    } else if (!f->n_best) putchar('\n');
}
