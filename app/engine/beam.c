/* beam.c: the search of a translator as a tree: every candidate of every step, and what became of it. */
#include "inside.h"

#include "../../src/task/translate.h"

enum { MOST_BEAM = 16, DEFAULT_BEAM = 4, MOST_NODES = 1 << 16 };

typedef struct beam_tree {
    qkv__json *j;
    const qkv_tokenizer *tokenizer;
    int64_t n;                     /* nodes */
    int64_t step, live[MOST_BEAM]; /* node of each live row of the step before */
    int64_t next[MOST_BEAM];       /* of this one */
    qkv_status status;
} beam_tree;

static void put_node(beam_tree *t, int64_t parent, const qkv_search_candidate *c)
{
    static const char *const states[] = { "dropped", "kept", "done" };
    if (t->n++) qkv__put_raw(t->j, ",");
    qkv_status status = qkv__put_json_token(t->j, t->tokenizer, c->id);
    if (!t->status) t->status = status;
    qkv__put_named_whole(t->j, "parent", parent);
    qkv__put_named_whole(t->j, "step", c->step);
    qkv__put_named_double(t->j, "log_p", c->log_p);
    if (c->is_end) qkv__put_named_double(t->j, "score", c->score);
    qkv__put_key(t->j, "state");
    qkv__put_name(t->j, states[c->is_end ? 2 : c->to >= 0]);
    qkv__put_raw(t->j, "}");
}

static void add_candidate(void *data, const qkv_search_candidate *c)
{
    beam_tree *t = data;
    if (t->n >= MOST_NODES) return;
    if (c->step != t->step) {
        for (int i = 0; i < MOST_BEAM; i++) t->live[i] = t->next[i];
        t->step = c->step;
    }
    if (c->to >= 0) t->next[c->to] = t->n;
    put_node(t, t->live[c->from], c);
}

/* The root is what the decoder starts with. */
static qkv_status put_root(beam_tree *t, const qkv_model *m)
{
    qkv_special_tokens special = { .size = sizeof special };
    qkv_status status = qkv_model_special_tokens(m, &special);
    if (!status) put_node(t, -1, &(qkv_search_candidate){ .id = special.start, .step = 0 });
    return status;
}

static void put_found(qkv__json *j, const qkv_translations *found)
{
    qkv__put_raw(j, "],\"translations\":[");
    for (int i = 0; i < found->n_best && found->best[i].n_ids >= 0; i++) {
        const qkv_translation *x = &found->best[i];
        if (i) qkv__put_raw(j, ",");
        qkv__put_translation(j, x->text.data, x->text.length, &x->score, x->ids, x->n_ids);
    }
    qkv__put_raw(j, "]}");
}

static qkv_status put_tree(const qkv__asked *a, int64_t beam, qkv__json *j)
{
    beam_tree t = { .j = j, .tokenizer = qkv_model_tokenizer(a->model, QKV_SIDE_TARGET) };
    const qkv_translate_opts opts = { .size = sizeof opts,
                                      .beam_size = (int)beam,
                                      .n_best = (int)beam,
                                      .each_candidate = add_candidate,
                                      .each_candidate_data = &t };
    qkv_translations *found = NULL;
    qkv__put_raw(j, "{\"nodes\":[");
    qkv_status status = put_root(&t, a->model);
    if (!status) status = qkv_translate(a->model, &(qkv_str){ a->text, a->length }, 1, &opts, &found);
    if (!status && found->status[0]) status = qkv__refuse_source(found, 0, "\"text\"");
    if (!status) status = t.status;
    if (!status) put_found(j, found);
    qkv_free(found);
    return status;
}

qkv_status qkv__answer_beam(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    int64_t beam = DEFAULT_BEAM;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__get_whole(body, "beam", 1, MOST_BEAM, &beam);
    if (!status) status = put_tree(&a.asked, beam, j);
    qkv__asking_end(&a);
    return status;
}
