/* toy_language.h: a language of a few rules, whose entropy is known. */
#ifndef QKV_EXAMPLES_TOY_LANGUAGE_H
#define QKV_EXAMPLES_TOY_LANGUAGE_H

#include <stdint.h>

enum { TOY_ROOM = 512 };

/* Draws a line; gives its surprise, -ln of its probability. */
double draw_toy_line(uint64_t *state, char line[TOY_ROOM]);

/* What the surprise is on average, in nats. */
double toy_entropy(void);

#endif
