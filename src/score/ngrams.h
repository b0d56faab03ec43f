/* ngrams.h: which n-grams two sequences share: exact, in time linear in their lengths. */
#ifndef QKV_SRC_NGRAMS_H
#define QKV_SRC_NGRAMS_H

#include "../base/memory.h"

#include <stdbool.h>

/* A sequence of characters or of word numbers. Its memory is kept from one sentence to the next. */
typedef struct qkv__symbols {
    uint32_t *at;
    size_t n, bytes;
} qkv__symbols;
qkv_status qkv__symbols_reserve(qkv__symbols *s, size_t n); /* room for n in all */
void qkv__symbols_free(qkv__symbols *s);

/* A tree of sequences: a path from the root, node 0, spells one. Equal sequences end at equal nodes, so a node is the number of
 * a word or of an n-gram. Zero is a tree with nothing but its root. */
typedef struct qkv__edge qkv__edge;
typedef struct qkv__trie {
    qkv__edge *edges; /* hashed by where they start and their symbol */
    size_t room;      /* a power of two, or 0 */
    uint32_t n_nodes; /* without the root */
    uint32_t round; /* edges of earlier rounds are forgotten: clearing a table that a long sentence made large takes no time */
} qkv__trie;
void qkv__trie_reset(qkv__trie *t);
void qkv__trie_free(qkv__trie *t);

/* The node that symbol leads to, made if there is none; 0 when memory is out. New nodes are numbered 1, 2, ... */
uint32_t qkv__trie_child(qkv__trie *t, uint32_t node, uint32_t symbol);

/* The n-grams of a hypothesis and its references. */
typedef struct qkv__gram {
    int order;
    uint32_t hypothesis; /* how often it has this n-gram */
    uint32_t reference;  /* the same of the latest reference, */
    uint32_t most;       /* and of the one that has most of it */
} qkv__gram;
typedef struct qkv__grams {
    qkv__trie trie;
    qkv__gram *at; /* by node */
    size_t n, bytes;
    int order; /* the longest n-grams that count */
} qkv__grams;

/* Begins a sentence: counts the n-grams of its hypothesis, of 1 to order symbols. MEMORY. */
qkv_status qkv__grams_begin(qkv__grams *g, const qkv__symbols *hypothesis, int order);
qkv_status qkv__grams_reference(qkv__grams *g, const qkv__symbols *reference);
void qkv__grams_free(qkv__grams *g);

/* Adds the shared n-grams to matches[order - 1]: with the latest reference, or with all of them. */
void qkv__grams_match(const qkv__grams *g, bool all, int64_t *matches);

/* How many n-grams of this order n symbols have. */
static inline int64_t qkv__gram_count(size_t n, int order) { return n < (size_t)order ? 0 : (int64_t)n - order + 1; }

#endif
