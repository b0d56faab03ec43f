/* special_tokens.h: what stands around a model's texts, what ends them and how long they may be: the one place that says it,
 * for ours and for published models. */
#ifndef QKV_SRC_SPECIAL_TOKENS_H
#define QKV_SRC_SPECIAL_TOKENS_H

#include "model.h"

#include <stdbool.h>

enum { QKV__ID_RUN = 8 };

/* Ids that stand together. */
typedef struct qkv__id_run {
    int32_t ids[QKV__ID_RUN];
    int n;
} qkv__id_run;

/* One text, or a pair: before, text, between, second text, after. */
typedef struct qkv__wrap {
    qkv__id_run before, between, after;
    int32_t first_type, second_type, after_type; /* of what comes before the second text; of that; of what is after it */
} qkv__wrap;

typedef struct qkv__special_tokens {
    const qkv_config *t;
    const qkv_tokenizer *source, *target;
    const qkv__model_info *info;
    bool is_published;
    bool has_types;         /* texts of a pair have types that the model knows */
    qkv__wrap single, pair; /* of what an encoder reads, or a decoder alone */
    int64_t around;         /* how many ids are before and after a text, at most */
    int64_t max_tokens;     /* that a sequence has positions for, those around a text counted; 0: any number */
    qkv_special_tokens ids; /* -1 where there is none, but for pad */
    const int32_t *ends;    /* all ids that end what a decoder says; NULL: ids.end alone, if there is one */
    int n_ends;
} qkv__special_tokens;

/* USAGE: m has no tokenizer. The sentence begins with the job, where that is not NULL, and names the files that are missing. */
qkv_status qkv__refuse_without_tokenizer(const qkv_model *m, const char *job);

/* USAGE for NULL and a model without tokenizer. */
qkv_status qkv__special_tokens_of(const qkv_model *m, qkv__special_tokens *f);

/* The same; USAGE too when a text has no begin or no end of its own where the model needs them, and for a translator of ours
 * without padding, or whose sources end with another id than its targets. */
qkv_status qkv__special_tokens_needed(const qkv_model *m, qkv__special_tokens *f);

/* The ids a document of a decoder alone begins and ends with; of ours both are needed. USAGE. */
qkv_status qkv__document_tokens(const qkv_model *m, qkv__special_tokens *f, qkv__id_run *begin, qkv__id_run *end);

/* Types of the n ids of one text or a pair. */
void qkv__token_types(const qkv__special_tokens *f, const int32_t *ids, int64_t n, int32_t *types);

/* How a mask is written, best first; NULL ends the list. And how many bytes of a text are the mask that it begins with, spelled
 * as the tokenizer does or in one of these ways; 0: it begins with none. */
extern const char *const qkv__mask_spellings[];
size_t qkv__mask_at(const qkv__special_tokens *f, const char *text, size_t length);

bool qkv__ends_text(const qkv__special_tokens *f, int32_t id);

/* Refuses more tokens than there are positions for (`most`; 0: any number): LIMIT for a text, USAGE for an option. `what`
 * begins the sentence: "fill: the text has". */
qkv_status qkv__check_length(qkv_status refusal, const char *what, int64_t tokens, int64_t most);

#endif
