/* model_info.h: what a folder's files say of a model besides its options. */
#ifndef QKV_SRC_MODEL_INFO_H
#define QKV_SRC_MODEL_INFO_H

#include "family.h"
#include "model.h"
#include "sentence.h"

/* Whether its files are those of a published family, not ours; false for NULL. */
bool qkv__info_is_published(const qkv__model_info *info);

/* The folder a model was loaded from; NULL: none. It is the model's. */
const char *qkv__model_folder(const qkv_model *m);

/* A file of that folder, which a training writes: texts to begin with, one per line. */
#define QKV__EXAMPLES "examples.txt"

/* The length penalty of its translations where no option gives one: what is said of it, else the paper's or, of a published
 * model, what other programs take. Negative means 0, as in a search. */
#define QKV__LENGTH_PENALTY 0.6f
#define QKV__PUBLISHED_LENGTH_PENALTY 1.0f
#define QKV__LENGTH_PENALTY_END 100 /* all are below */
float qkv__length_penalty_of(const qkv__model_info *info);

/* Sentences of a line that a translator reads at once. A published model has no limit: its own tools do not split lines. */
int64_t qkv__max_sentences(const qkv__model_info *info);

/* The number of sentences in the lines of the training text, of a model of ours; saved with it if it is more than 1. A published
 * family has no place for it. */
#define QKV__SENTENCES "sentences"
void qkv__model_set_sentences(qkv_model *m, int64_t n);

/* Two or three small letters, and perhaps a region or script: "en", "pt-BR", "zho_Hans". Less than 16 bytes. */
bool qkv__is_language_code(const char *code);

/* Sets the language codes of a translator of ours, "" for unknown; saved in its config.json. Published models are left as they are. */
void qkv__model_set_languages(qkv_model *m, const char *source, const char *target);

/* Of a model with these options of ours. */
qkv__model_info qkv__model_info_of(const qkv_config *o);

/* Those of a published model, from its folder; *info is what qkv__model_info_of() gave. FORMAT for a value of another type or
 * an id outside the vocabulary, the file and the key named; UNSUPPORTED; IO; MEMORY. On error there is nothing to free but
 * *sentence. */
qkv_status qkv__model_info_read(const qkv__family *f, const qkv__published *p, const char *folder, const qkv_config *o,
                                qkv__model_info *info, qkv__sentence *sentence);
qkv_status qkv__model_info_copy(const qkv__model_info *from, qkv__model_info *to);
void qkv__model_info_free(qkv__model_info *info);

/* The names of the classes: "id2label", or LABEL_0, LABEL_1, ...; those of spans have none. */
qkv_status qkv__labels_read(const qkv__published *p, const qkv_config *o, qkv__labels *out);

/* "problem_type" of config.json, ours or a published one, and "label_separator", which only what we write has. UNSUPPORTED for a
 * word that it does not have, and for a regression of several numbers; FORMAT for a separator of another type or length;
 * writing writes nothing of one label. */
#define QKV__PROBLEM "problem_type"
#define QKV__SEPARATOR "label_separator"
qkv_status qkv__problem_read(const qkv__published *p, int64_t classes, qkv__model_info *info);
void qkv__problem_write(const qkv__model_info *info, qkv__json_writer *w);

/* Adds what config.json has of them. */
void qkv__model_info_write(const qkv__model_info *info, qkv__json_writer *w);

#endif
