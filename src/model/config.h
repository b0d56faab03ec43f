/* config.h: a model's options as keys of config.json, ours and those of published models. */
#ifndef QKV_SRC_CONFIG_H
#define QKV_SRC_CONFIG_H

#include <qkv/model.h>

#include "../base/json.h"
#include "model.h"

#include <stdbool.h>
#include <stddef.h>

#define QKV__CONFIG_MAX ((size_t)64 << 20) /* bytes; most have less than 2,000, and the names of the classes */

/* Names of classes, in one block. Zero: none. */
typedef struct qkv__labels {
    int64_t n;
    const char **names;
    size_t bytes;
} qkv__labels;
qkv_status qkv__labels_copy(qkv__labels *to, const char *const *names, int64_t n);
void qkv__labels_free(qkv__labels *l);

/* ---- a key and the option it is ---- */
typedef enum qkv__config_type {
    QKV__COUNT,  /* int64_t */
    QKV__INT,    /* int */
    QKV__FLAG,   /* int, true or false */
    QKV__UNLESS, /* int, the other way round: 0 is true */
    QKV__NUMBER, /* float */
    QKV__WORD    /* an enum */
} qkv__config_type;

/* What a word means; several may mean the same, and the first of them is written. The last one is NULL. */
typedef struct qkv__enum_name {
    const char *word;
    int value;
} qkv__enum_name;

typedef struct qkv__config_key {
    const char *name;
    qkv__config_type type;
    size_t at; /* in qkv_config */
    const qkv__enum_name *words;
    bool optional; /* when it is missing, or null, the option stays as it is */
} qkv__config_key;

/* "config.json has this member as that key": its kind is what qkv/transformer.def says; presence is NEEDED or OPTIONAL. */
#define QKV__KEY(key, member, presence) QKV__WORD_KEY(key, member, presence, NULL)
#define QKV__WORD_KEY(key, member, presence, words)                                                           \
    {                                                                                                         \
        key, (qkv__config_type)QKV__KIND_OF_##member, offsetof(qkv_config, member), words, QKV__IS_##presence \
    }
enum { QKV__IS_NEEDED = false, QKV__IS_OPTIONAL = true };
enum {
#define QKV_OPTION(member, kind, ...) QKV__KIND_OF_##member = QKV__##kind,
#include <qkv/transformer.def>
};

/* Reads keys up to one without a name. FORMAT for a key that is missing or of another type, UNSUPPORTED for an unknown word. */
qkv_status qkv__keys_read(const char *path, const qkv__config_key *keys, const qkv__json_value *config, qkv_config *o);

/* Adds them. */
void qkv__keys_write(const qkv__config_key *keys, const qkv_config *o, qkv__json_writer *w);

/* ---- our own config.json ---- */
#define QKV__OWN_TYPE "qkv"

/* "quantization_config": of matrices that lie in 8 or 4 bits; *bits is 0 where there is none. FORMAT; UNSUPPORTED for another
 * method than ours. Adding it does nothing for 0 bits. */
qkv_status qkv__quantization_read(const char *path, const qkv__json_value *config, int *bits);
void qkv__quantization_write(int bits, qkv__json_writer *w);

/* Optional keys of our config.json: 0 and "" if missing. */
typedef struct qkv__config_extras {
    float length_penalty;
    int64_t sentences;
    char source_language[16], target_language[16];
} qkv__config_extras;

/* FORMAT, UNSUPPORTED; IO; MEMORY. */
qkv_status qkv__config_read(const char *path, const qkv__json_value *config, qkv_config *o, qkv__labels *labels,
                            qkv__config_extras *extras);
qkv_status qkv__config_write(const char *path, const qkv_config *o, const qkv__labels *labels, const qkv__model_info *info,
                             int bits);

#endif
