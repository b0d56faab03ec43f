/* score_words.h: how sacreBLEU makes words of text. */
#ifndef QKV_SRC_SCORE_WORDS_H
#define QKV_SRC_SCORE_WORDS_H

#include <qkv/score.h>

#include "ngrams.h"

/* Where a text came from, for error sentences. */
typedef struct qkv__place {
    const char *what;
    int64_t number; /* from 1 */
} qkv__place;

/* A text on its way from bytes to words. Its memory is kept from one text to the next; zero is an empty one. */
typedef struct qkv__score_words {
    qkv__symbols text;    /* characters */
    qkv__symbols spare;   /* where the next form of the text is written */
    qkv__trie dictionary; /* a word's number is the node where its characters end */
} qkv__score_words;
void qkv__score_words_free(qkv__score_words *w);

/* Sets the text: its characters, in lower case if asked. FORMAT, LIMIT, MEMORY. */
qkv_status qkv__score_words_read(qkv__score_words *w, qkv_str text, bool lowercase, qkv__place place);

/* Puts white space between the words of the text. */
qkv_status qkv__score_words_tokenize(qkv__score_words *w, qkv_score_tokenizer tokenizer);

/* Separates punctuation as chrF++ does. */
qkv_status qkv__score_words_split_punctuation(qkv__score_words *w);

/* The numbers of the words of the text; equal words have equal numbers until the dictionary is reset. */
qkv_status qkv__score_words_number(qkv__score_words *w, qkv__symbols *numbers);

/* The characters of the text that are no white space. */
qkv_status qkv__score_words_characters(const qkv__score_words *w, qkv__symbols *characters);

const char *qkv__tokenizer_name(qkv_score_tokenizer tokenizer); /* NULL for one that is unknown */

#endif
