/* tree.h: a sum whose order does not depend on who computes it.
 *
 * The leaves 0 .. n-1 are added in one binary tree: a node over the leaves from .. to-1 is the sum of its left part, the largest
 * power of two leaves that is less than all, and its right part. Each rank has leaves that follow each other, adds up the largest
 * nodes that lie in its share, and what is above them is added where all of them meet (reduction.h): the same additions, in the
 * same order, for any number of ranks. */
#ifndef QKV_SRC_DIST_TREE_H
#define QKV_SRC_DIST_TREE_H

#include "dist.h"

typedef struct qkv__node {
    int64_t from, to; /* leaves */
} qkv__node;

/* Where the right part of a node of two leaves or more begins. */
int64_t qkv__tree_middle(qkv__node n);

/* The leaves of a rank: r * leaves / ranks up to the next rank's. */
qkv__node qkv__tree_share(int64_t leaves, int rank, int ranks);

/* The largest nodes of the tree that lie in a share, from left to right, and how many there are. */
enum { QKV__MAX_NODES = 128 };
int qkv__tree_nodes(int64_t leaves, qkv__node share, qkv__node nodes[QKV__MAX_NODES]);

/* The sum of the tree, of doubles, in place: left is leaf[0]. */
double qkv__tree_sum(const double *leaf, qkv__node n);

/* An array of n things, of which every rank has those of its share of n leaves: all of them to every rank. IO, MEMORY. */
qkv_status qkv__share_parts(void *array, size_t bytes_each, int64_t n);

/* to[i] += from[i] */
qkv_status qkv__add_floats(float *to, const float *from, int64_t n);

#endif
