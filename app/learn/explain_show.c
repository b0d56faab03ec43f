/* explain_show.c: the steps of an explanation in the terminal, as JSON and as LaTeX. */
#include "explained.h"

#include "../term/errors.h"
#include "../term/language.h"
#include "lesson.h"
#include "walk.h"

#include "../../src/base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS = 3, FEW_ROWS = 8 };

/* One head of a table: its first row that is shown, and how many are. */
typedef struct part {
    const float *values;
    const uint8_t *hidden;
    int64_t from, rows, columns;
} part;

static part part_of(const explained *e, const shown *s, int64_t h)
{
    int64_t rows = qkv_tensor_dim(s->values, -2), columns = qkv_tensor_dim(s->values, -1);
    bool is_one = s->is_by_query && e->token >= 0;
    part p = { .from = is_one ? e->token : 0, .rows = is_one ? 1 : rows, .columns = columns };
    int64_t at = (h * rows + p.from) * columns;
    p.values = qkv_tensor_data(s->values) + at;
    if (s->is_masked && e->hidden) p.hidden = e->hidden + at;
    return p;
}

/* Queries that are shown of a step that is told in sentences. */
static void each_reading(const explained *e, int64_t h, void (*take)(const char *text, void *data), void *data)
{
    char text[NOTE_ROOM];
    for (int64_t i = 0; i < qkv_tensor_dim(e->q, 0); i++) {
        if (e->token >= 0 && i != e->token) continue;
        read_row(e, h, i, text, sizeof text);
        take(text, data);
    }
}

/* ---- the terminal ---- */

static void say_reading(const char *text, void *data)
{
    (void)data;
    printf("    %s\n", text);
}

static void print_part(const explained *e, const shown *s, int64_t h)
{
    part p = part_of(e, s, h);
    labels row = s->row;
    const char *one[1];
    char name[NAME_ROOM];
    if (p.from && row.names) one[0] = row.names[p.from];
    else if (p.from) snprintf(name, sizeof name, "%s%lld", row.prefix ? row.prefix : "", (long long)p.from), one[0] = name;
    if (p.from) row = (labels){ .names = one };
    print_table(&(table){ .values = p.values,
                          .hidden = p.hidden,
                          .rows = p.rows,
                          .columns = p.columns,
                          .row = row,
                          .column = s->column,
                          .decimals = DECIMALS,
                          .sums = s->has_sums,
                          .fit = s->is_between ? FIT_PANELS : FIT_CUT,
                          .most_rows = s->row.names || s->row.prefix ? 0 : FEW_ROWS });
}

static void print_shown(const explained *e, const step *st, const shown *s)
{
    int64_t first, n;
    heads_shown(e, s, &first, &n);
    bool has_heads = qkv_tensor_ndim(s->values) == 3 && e->heads > 1;
    for (int64_t h = first; h < first + n; h++) {
        if (has_heads) printf(_("  %s, head %lld\n"), s->symbol, (long long)h);
        else if (st->n > 1) printf("  %s\n", s->symbol);
        print_part(e, s, h);
        if (st->is_read) putchar('\n'), each_reading(e, h, say_reading, NULL);
    }
}

void print_explained(const explained *e, const step *steps, int n)
{
    puts("Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V\n");
    if (e->about) say("%s", e->about);
    if (*e->batch_text) say("%s", e->batch_text);
    say(_("Queries: %lld. Keys: %lld, each with a value. Widths: d_k = %lld, d_v = %lld."), (long long)qkv_tensor_dim(e->q, 0),
        (long long)qkv_tensor_dim(e->k, 0), (long long)qkv_tensor_dim(e->split[0], 2),
        (long long)qkv_tensor_dim(e->split[2], 2));
    for (int i = 0; i < n; i++) {
        const step *s = &steps[i];
        printf("%d. %s\n", i + 1, s->title);
        say("%s", s->note);
        if (s->sum.n) show_sum(s->sum.name, s->sum.a, s->sum.b, s->sum.step, s->sum.n, s->sum.result);
        for (int k = 0; k < s->n; k++) print_shown(e, s, &s->tables[k]);
        if (i + 1 < n) putchar('\n');
    }
}

/* ---- JSON ---- */

static void put_rows(qkv__json_writer *w, const char *key, const part *p)
{
    qkv__json_open_array(w, key);
    for (int64_t i = 0; i < p->rows; i++) {
        qkv__json_open_array(w, NULL);
        for (int64_t j = 0; j < p->columns; j++)
            qkv__json_put_real(w, NULL, (double)p->values[i * p->columns + j], QKV__JSON_FLOAT);
        qkv__json_close(w);
    }
    qkv__json_close(w);
}

/* (rows, columns), or a list of them, one a head. */
static void put_shown(qkv__json_writer *w, const explained *e, const shown *s)
{
    int64_t first, n;
    bool is_list = qkv_tensor_ndim(s->values) == 3 && e->head < 0;
    heads_shown(e, s, &first, &n);
    if (is_list) qkv__json_open_array(w, s->key);
    for (int64_t h = first; h < first + (is_list ? n : 1); h++) {
        part p = part_of(e, s, h);
        put_rows(w, is_list ? NULL : s->key, &p);
    }
    if (is_list) qkv__json_close(w);
}

static void put_names(qkv__json_writer *w, const char *key, const char *const *names, labels l, int64_t n)
{
    char name[NAME_ROOM];
    qkv__json_open_array(w, key);
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%lld", l.prefix ? l.prefix : "", (long long)i);
        qkv__json_put_text(w, NULL, names ? names[i] : name);
    }
    qkv__json_close(w);
}

static void put_reading(const char *text, void *w) { qkv__json_put_text(w, NULL, text); }

qkv_status print_explained_json(const explained *e, const step *steps, int n)
{
    qkv__json_writer w = { .style = QKV__JSON_SPACED };
    qkv__json_open_object(&w, NULL);
    put_names(&w, "queries", e->words, e->queries, qkv_tensor_dim(e->q, 0));
    put_names(&w, "keys", e->key_words, e->key_columns, qkv_tensor_dim(e->k, 0));
    qkv__json_put_int(&w, "heads", e->heads);
    qkv__json_put_int(&w, "d_k", qkv_tensor_dim(e->split[0], 2));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < steps[i].n; k++) put_shown(&w, e, &steps[i].tables[k]);
    qkv__json_open_array(&w, "readings");
    for (int64_t h = 0; h < e->heads; h++)
        if (e->head < 0 || h == e->head) each_reading(e, h, put_reading, &w);
    qkv__json_close(&w);
    qkv__json_close(&w);
    qkv_status status = w.status ? fail(w.status, "out of memory") : QKV_OK;
    if (!status) puts(w.text);
    qkv__json_writer_free(&w);
    return status;
}

/* ---- LaTeX ---- */

static void put_latex_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\\') fputs("\\textbackslash{}", stdout);
        else if (*text == '^') fputs("\\^{}", stdout);
        else if (*text == '~') fputs("\\~{}", stdout);
        else {
            if (strchr("#$%&_{}", *text)) putchar('\\');
            putchar(*text);
        }
    }
}

static void put_latex_number(const part *p, int64_t i)
{
    float x = p->values[i];
    if (p->hidden && p->hidden[i]) fputs("/\\!/\\!/", stdout);
    else if (!isfinite(x)) fputs("-\\infty", stdout);
    else printf("%.*f", DECIMALS, fabsf(x) < 0.0005f ? 0.0 : (double)x);
}

/* More than so many rows or columns make no formula: dots stand for the rest. */
static void put_latex_matrix(const part *p)
{
    enum { MOST = 10 };
    int64_t rows = p->rows < MOST ? p->rows : MOST, columns = p->columns < MOST ? p->columns : MOST;
    puts("\\begin{bmatrix}");
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) fputs(j ? " & " : "", stdout), put_latex_number(p, i * p->columns + j);
        puts(columns < p->columns ? " & \\cdots \\\\" : " \\\\");
    }
    if (rows < p->rows) puts("\\vdots \\\\");
    puts("\\end{bmatrix}");
}

static void put_latex_shown(const explained *e, const step *st, const shown *s)
{
    int64_t first, n;
    bool is_last = s == &st->tables[st->n - 1], has_heads = qkv_tensor_ndim(s->values) == 3 && e->heads > 1;
    heads_shown(e, s, &first, &n);
    for (int64_t h = first; h < first + n; h++) {
        part p = part_of(e, s, h);
        fputs("\\[ ", stdout);
        if (has_heads) printf("\\left(%s\\right)_{%lld}", is_last && *st->formula ? st->formula : s->symbol, (long long)h);
        else fputs(is_last && *st->formula ? st->formula : s->symbol, stdout);
        puts(" =");
        put_latex_matrix(&p);
        puts("\\]");
    }
}

static void put_latex_reading(const char *text, void *data)
{
    (void)data;
    put_latex_text(text);
    puts("\\\\");
}

void print_explained_latex(const explained *e, const step *steps, int n)
{
    printf(
        "\\documentclass{article}\n\\usepackage{amsmath}\n%s\\setcounter{MaxMatrixCols}{20}\n\\setlength{\\parindent}{0pt}\n",
        speaks_chinese() || e->words ? "\\usepackage{ctex}\n" : "");
    puts("\\begin{document}\n\\[ \\mathrm{Attention}(Q, K, V) = \\mathrm{softmax}\\left(\\frac{Q K^\\top}{\\sqrt{d_k}}\\right) "
         "V \\]");
    for (int i = 0; i < n; i++) {
        printf("\\section{");
        put_latex_text(steps[i].title);
        puts("}");
        put_latex_text(steps[i].note);
        putchar('\n');
        for (int k = 0; k < steps[i].n; k++) put_latex_shown(e, &steps[i], &steps[i].tables[k]);
        for (int64_t h = 0; steps[i].is_read && h < e->heads; h++)
            if (e->head < 0 || h == e->head) each_reading(e, h, put_latex_reading, NULL);
    }
    puts("\\end{document}");
}
