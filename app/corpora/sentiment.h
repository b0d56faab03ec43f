/* sentiment.h: a small grammar of sentences about films, each praise or blame. */
#ifndef QKV_EXAMPLES_SENTIMENT_H
#define QKV_EXAMPLES_SENTIMENT_H

#include <stdbool.h>
#include <stdint.h>

enum { REVIEW_ROOM = 256 };

/* Draws a sentence; gives whether it is praise. A sentence is one of the two, whatever the draw. */
bool draw_review(uint64_t *state, char review[REVIEW_ROOM]);

#endif
