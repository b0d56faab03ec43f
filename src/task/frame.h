/* frame.h: what stands around a model's texts. */
#ifndef QKV_SRC_FRAME_H
#define QKV_SRC_FRAME_H

#include <qkv/task.h>

#include <stdbool.h>

enum { QKV__MARKS = 8 };

/* Ids that stand together. */
typedef struct qkv__marks {
    int32_t ids[QKV__MARKS];
    int n;
} qkv__marks;

/* One text, or a pair: before, text, between, second text, after. */
typedef struct qkv__wrap {
    qkv__marks before, between, after;
    int32_t first_type, second_type, after_type; /* of what comes before the second text; of that; of what is after it */
} qkv__wrap;

typedef struct qkv__framing {
    const qkv_transformer_opts *t;
    const qkv_tokenizer *source, *target;
    const qkv_facts *facts;
    bool is_published;
    bool has_types;         /* texts of a pair have types that the model knows */
    qkv__wrap single, pair; /* of what an encoder reads, or a decoder alone */
    int64_t around;         /* how many ids are before and after a text, at most */
    qkv_frame ids;          /* -1 where there is none, but for pad */
    const int32_t *ends;    /* all ids that end what a decoder says; NULL: ids.end alone, if there is one */
    int n_ends;
} qkv__framing;

/* USAGE for NULL and a model without tokenizer. */
qkv_status qkv__framing_of(const qkv_model *m, qkv__framing *f);

/* The same; USAGE too when a text has no begin or no end of its own where the model needs them. */
qkv_status qkv__framing_whole(const qkv_model *m, qkv__framing *f);

/* The ids a document of a decoder alone begins and ends with; of ours both are needed. USAGE. */
qkv_status qkv__framing_document(const qkv_model *m, qkv__framing *f, qkv__marks *begin, qkv__marks *end);

/* Types of the n ids of one text or a pair. */
void qkv__framing_types(const qkv__framing *f, const int32_t *ids, int64_t n, int32_t *types);

bool qkv__ends_text(const qkv__framing *f, int32_t id);

/* LIMIT: what ("the text", say), which is source i of the results, has more tokens than may be, and who says so. */
qkv_status qkv__refuse_source(const qkv_translations *t, int64_t i, const char *what);

#endif
