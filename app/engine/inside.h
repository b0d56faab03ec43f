/* inside.h: what the parts of the engine share: itself, and the functions that answer a request. */
#ifndef QKV_SRC_ENGINE_INSIDE_H
#define QKV_SRC_ENGINE_INSIDE_H

#include "asked.h"
#include "engine.h"

struct qkv__engine {
    const qkv_model *model;
    char *name;
    qkv__job job;
    qkv__remembered remembered;
    struct qkv__learning *learning; /* a model that is being trained; NULL: none */
    qkv__json_doc checkpoints;      /* empty: none; and the folder they lie in */
    char *checkpoint_folder;
    qkv_model *checkpoint; /* that of checkpoint_index, loaded; NULL: none yet */
    int64_t checkpoint_index;
    const qkv_hooks *hooks; /* of the request that is being answered; may be NULL */
};

/* Writes one JSON object to j. Not OK: qkv_error() says why, and j is thrown away. */
typedef qkv_status qkv__answering(qkv__engine *e, const qkv__json_value *body, qkv__json *j);
qkv__answering qkv__answer_beam, qkv__answer_learn, qkv__answer_lens, qkv__answer_next, qkv__answer_surprise, qkv__answer_walk,
    qkv__answer_why;
void qkv__learning_free(struct qkv__learning *l);

/* The model of the "checkpoint" that a request names, e's own unless it does; it stays until another one is asked for. USAGE,
 * FORMAT, and the errors of qkv_model_load(). */
qkv_status qkv__get_checkpoint(qkv__engine *e, const qkv__json_value *body, const qkv_model **m);
void qkv__put_checkpoints(const qkv__engine *e, qkv__json *j); /* ,"checkpoints":[..]; nothing where there are none */

/* A text that a request asks about, on e's model or a "checkpoint" of it or, with "switches", on one that is made of these: this
 * is the same for all requests. asked.model stays until the end, which frees it all. */
typedef struct qkv__asking {
    qkv__asked asked;
    qkv_model *touched;       /* NULL: nothing is switched */
    qkv__json_writer changes; /* how the model differs from e's */
} qkv__asking;
qkv_status qkv__asking_begin(qkv__engine *e, const qkv__json_value *body, qkv__asking *a);
void qkv__asking_end(qkv__asking *a);

/* The capture of what is asked, every token for itself and special ones too where `whole`. It is e's. A target that is not
 * given is searched for where `finds`, else empty. */
qkv_status qkv__asking_attend(qkv__engine *e, qkv__asking *a, bool finds, bool whole, const qkv_attention_capture **capture);

/* ,"weights":{"cross": array, ..}: of the kinds that "attention" names, of all unless it is there, as long as they have at most
 * "max_cells" numbers together. */
qkv_status qkv__put_all_weights(qkv__json *j, const qkv__json_value *body, const qkv_attention_capture *a);

/* A token as people read it, a JSON string; bytes that are no character like \\xE6. */
qkv_status qkv__put_token_text(qkv__json *j, const qkv_tokenizer *t, int32_t id);

/* {"id": .., "token": .. and, of a special token, "special": true, without the brace that ends it. */
qkv_status qkv__put_json_token(qkv__json *j, const qkv_tokenizer *t, int32_t id);

#endif
