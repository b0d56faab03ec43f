/* attention_rank.c: heads in the order of what they do. */
#include "attention_maps.h"
#include "options.h"

#include <stdlib.h>

enum { MEASURES = 6 };
const char *const measure_names[] = { "entropy", "diagonality", "first", "previous", "same", "next", NULL };

typedef struct ranked {
    int layer, head;
    double measures[MEASURES]; /* in the order of the names */
    double key;
} ranked;

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->head < y->head ? -1 : 1;
}

static qkv_status measure_heads(const qkv_attention_capture *a, qkv_attention_kind kind, int by, ranked *r)
{
    qkv_head_measures x;
    if (qkv_attention_capture_measure(a, kind, r->layer, r->head, &x)) return library_failed();
    const double measures[MEASURES] = { x.entropy, x.diagonality, x.first, x.previous, x.same, x.next };
    for (int i = 0; i < MEASURES; i++) r->measures[i] = measures[i];
    r->key = by ? measures[by] : -measures[by]; /* little entropy is what is sharp; of the others much */
    return QKV_OK;
}

static void print_ranked(const ranked *r, int64_t n)
{
    fputs("layer  head", stdout);
    for (int k = 0; k < MEASURES; k++) printf("  %11s", measure_names[k]);
    for (int64_t i = 0; i < n; i++) {
        printf("\n%5d  %4d", r[i].layer, r[i].head);
        for (int k = 0; k < MEASURES; k++) printf("  %11.6f", r[i].measures[k]);
    }
    putchar('\n');
}

static void put_ranked_json(const ranked *r, int64_t n, const char *kind)
{
    printf("{\"kind\": \"%s\", \"heads\": [", kind);
    for (int64_t i = 0; i < n; i++) {
        printf("%s\n {\"layer\": %d, \"head\": %d", i ? "," : "", r[i].layer, r[i].head);
        for (int k = 0; k < MEASURES; k++) printf(", \"%s\": %.17g", measure_names[k], r[i].measures[k]);
        putchar('}');
    }
    puts("]}");
}

qkv_status print_ranks(const qkv_attention_capture *a, qkv_attention_kind kind, int by, bool json)
{
    int64_t n = (int64_t)a->layers[kind] * a->heads;
    ranked *all = malloc(sizeof *all * (size_t)(n + 1));
    if (!all) return fail(QKV_MEMORY, "out of memory");
    qkv_status status = n ? QKV_OK : measure_heads(a, kind, by, &(ranked){ 0 }); /* which says what the model has instead */
    for (int64_t i = 0; i < n && !status; i++) {
        all[i] = (ranked){ .layer = (int)(i / a->heads), .head = (int)(i % a->heads) };
        status = measure_heads(a, kind, by, &all[i]);
    }
    if (!status) {
        qsort(all, (size_t)n, sizeof *all, by_key);
        if (json) put_ranked_json(all, n, attention_kind_names[kind]);
        else print_ranked(all, n);
    }
    free(all);
    return status;
}
