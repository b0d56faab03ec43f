/* languages.h: the languages that a translator reads and writes, where they are tokens of its vocabulary: en_XX of mBART, eng_Latn
 * of NLLB, __en__ of M2M-100, >>eng<< of OPUS-MT. */
#ifndef QKV_SRC_LANGUAGES_H
#define QKV_SRC_LANGUAGES_H

#include "special_tokens.h"

/* The frame of what an encoder reads, as its tokenizer's file has it, becomes that of the published programs: NLLB's code stands
 * first, whatever the file says. */
void qkv__place_language(qkv__special_tokens *f);

/* The languages that a request can choose: none, as the model has one pair; the target; or source and target. */
typedef enum qkv__coding { QKV__NOT_CODED, QKV__CODED_TARGET, QKV__CODED_BOTH } qkv__coding;
qkv__coding qkv__language_coding(const qkv_model *m);

/* Puts the codes of source and target, each NULL where it is not said, to their places: around a source, and either f->ids.start
 * or *first, the id that every translation begins with, -1: any. What is not said is as the files have it. USAGE for a language
 * that the model has not, and for none where it writes several. */
qkv_status qkv__choose_languages(qkv__special_tokens *f, const char *source, const char *target, int32_t *first);

#endif
