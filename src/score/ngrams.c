/* ngrams.c: which n-grams two sequences share. */
#include "ngrams.h"

#include <string.h>

/* ---- sequences ---- */

/* One more than asked for: at is never NULL afterwards, and may be counted from. */
qkv_status qkv__symbols_reserve(qkv__symbols *s, size_t n)
{
    return qkv__grow((void **)&s->at, &s->bytes, (n + 1) * sizeof *s->at);
}

void qkv__symbols_free(qkv__symbols *s)
{
    qkv__release(s->at, s->bytes);
    *s = (qkv__symbols){ 0 };
}

/* ---- the tree ---- */

struct qkv__edge {
    uint32_t from, symbol, to;
    uint32_t round; /* 0: never used */
};

static size_t hash(uint32_t node, uint32_t symbol)
{
    uint64_t x = ((uint64_t)node << 32 | symbol) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return (size_t)(x ^ x >> 32);
}

/* The edge, or the free place where it belongs. At most half of the table is in use: there is a free place. */
static qkv__edge *find_edge(const qkv__trie *t, uint32_t node, uint32_t symbol)
{
    size_t i = hash(node, symbol) & (t->room - 1);
    for (;; i = (i + 1) & (t->room - 1)) {
        qkv__edge *e = &t->edges[i];
        if (e->round != t->round || (e->from == node && e->symbol == symbol)) return e;
    }
}

static qkv_status grow(qkv__trie *t)
{
    qkv__trie larger = { .room = t->room ? 2 * t->room : 1024, .n_nodes = t->n_nodes, .round = 1 };
    larger.edges = qkv__alloc_zero(larger.room * sizeof *larger.edges);
    if (!larger.edges) return QKV_MEMORY;
    for (size_t i = 0; i < t->room; i++) {
        const qkv__edge *e = &t->edges[i];
        if (e->round == t->round)
            *find_edge(&larger, e->from, e->symbol) = (qkv__edge){ e->from, e->symbol, e->to, larger.round };
    }
    qkv__trie_free(t);
    *t = larger;
    return QKV_OK;
}

uint32_t qkv__trie_child(qkv__trie *t, uint32_t node, uint32_t symbol)
{
    if (t->n_nodes >= t->room / 2 && grow(t)) return 0;
    qkv__edge *e = find_edge(t, node, symbol);
    if (e->round != t->round) *e = (qkv__edge){ node, symbol, ++t->n_nodes, t->round };
    return e->to;
}

void qkv__trie_reset(qkv__trie *t)
{
    t->n_nodes = 0;
    if (++t->round) return;
    if (t->edges) memset(t->edges, 0, t->room * sizeof *t->edges);
    t->round = 1;
}

void qkv__trie_free(qkv__trie *t)
{
    qkv__release(t->edges, t->room * sizeof *t->edges);
    *t = (qkv__trie){ 0 };
}

/* ---- counting ---- */

static qkv__gram *find_gram(qkv__grams *g, uint32_t node, int order)
{
    if (node >= g->n) { /* nodes come one by one: this is the next */
        if (qkv__grow((void **)&g->at, &g->bytes, ((size_t)node + 1) * sizeof *g->at)) return NULL;
        g->at[node] = (qkv__gram){ .order = order };
        g->n = (size_t)node + 1;
    }
    return &g->at[node];
}

static void count_one(qkv__gram *gram, bool of_reference)
{
    if (!of_reference) gram->hypothesis++;
    else if (++gram->reference > gram->most) gram->most = gram->reference;
}

static qkv_status count_all(qkv__grams *g, const qkv__symbols *s, bool of_reference)
{
    for (size_t start = 0; start < s->n; start++) {
        uint32_t node = 0;
        for (int order = 1; order <= g->order && (size_t)order <= s->n - start; order++) {
            node = qkv__trie_child(&g->trie, node, s->at[start + (size_t)order - 1]);
            qkv__gram *gram = node ? find_gram(g, node, order) : NULL;
            if (!gram) return QKV_MEMORY;
            count_one(gram, of_reference);
        }
    }
    return QKV_OK;
}

qkv_status qkv__grams_begin(qkv__grams *g, const qkv__symbols *hypothesis, int order)
{
    qkv__trie_reset(&g->trie);
    g->order = order;
    g->n = 1; /* the root, which is no n-gram */
    return count_all(g, hypothesis, false);
}

qkv_status qkv__grams_reference(qkv__grams *g, const qkv__symbols *reference)
{
    for (size_t i = 1; i < g->n; i++) g->at[i].reference = 0;
    return count_all(g, reference, true);
}

void qkv__grams_match(const qkv__grams *g, bool all, int64_t *matches)
{
    for (size_t i = 1; i < g->n; i++) {
        const qkv__gram *gram = &g->at[i];
        uint32_t wanted = all ? gram->most : gram->reference;
        matches[gram->order - 1] += gram->hypothesis < wanted ? gram->hypothesis : wanted;
    }
}

void qkv__grams_free(qkv__grams *g)
{
    qkv__trie_free(&g->trie);
    qkv__release(g->at, g->bytes);
    *g = (qkv__grams){ 0 };
}
