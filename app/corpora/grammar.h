/* grammar.h: a small grammar of everyday sentences, each in English and in Chinese. */
#ifndef QKV_EXAMPLES_GRAMMAR_H
#define QKV_EXAMPLES_GRAMMAR_H

#include <stdint.h>

enum { SENTENCE_ROOM = 256 };

typedef struct sentence_pair {
    char english[SENTENCE_ROOM], chinese[SENTENCE_ROOM];
} sentence_pair;

/* Sentences that everyone tries first, NULL after the last. The grammar has them too. */
extern const char *const named_sentences[][2];

/* The next number of a generator whose whole state is *state; and one of 0 .. n-1. */
uint64_t next_random(uint64_t *state);
int random_below(uint64_t *state, int n);

/* Draws a sentence. One English sentence has one Chinese one, whatever the draw. */
void draw_sentence(uint64_t *state, sentence_pair *out);

#endif
