/* attention.h: attention as maps, ranks of heads, edits of a model as people type them; the logit lens, attributions and traces
 * as text and JSON. */
#ifndef QKV_APP_REPORT_ATTENTION_H
#define QKV_APP_REPORT_ATTENTION_H

#include <qkv/qkv.h>
#include <qkv/unstable/inspect.h>
#include <qkv/unstable/buffer.h>

/* "encoder", "decoder" or "cross"; static text. NULL for another number. */
const char *qkv_attention_kind_name(qkv_attention_kind kind);

/* "gradient" and so on; static text. NULL for another number. */
const char *qkv_attribute_method_name(qkv_attribute_method method);

/* As text in *out, which is yours: a table, a row for each token and a column for each layer with the likeliest token and its
 * probability, and the surprise; or with json an object with "tokens", "next", "surprise" and "layers", each an array over the
 * places of {"next_p", "best": [{"id", "token", "p"}, ..]}. USAGE for NULL, and for a capture of other tokens; MEMORY. */
qkv_status qkv_logit_lens_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_result *lens, int json,
                               qkv_buffer *out);

/* As text in *out, which is yours: a table, a row for each token and a column for each method; or with json an object with
 * "output", "name", "logit", with INTEGRATED "baseline_logit", "source" and "read", each an array of {"token", and a number for
 * each method}. USAGE for NULL, and for a capture of other tokens; MEMORY. */
qkv_status qkv_attribution_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribution *why, int json,
                                qkv_buffer *out);

/* As a JSON object in *out, which is yours: every member above under its name, matrices as arrays of rows, -inf as null. USAGE
 * for NULL and an empty walk; MEMORY. */
qkv_status qkv_trace_json(const qkv_trace_result *walk, qkv_buffer *out);

/* Weights between tokens, (tokens of the rows, tokens of the columns), as weights between units, (rows, columns): the columns
 * of a unit's tokens are added, its rows averaged. Unit i of the rows is the tokens row_first[i] .. row_first[i + 1] - 1,
 * those of the columns likewise; the first unit begins at 0. USAGE for NULL and for a unit without tokens; MEMORY. */
qkv_status qkv_attention_join(const float *weights, const int64_t *row_first, int64_t rows, const int64_t *column_first,
                              int64_t columns, float *joined);

typedef struct qkv_ranked_head {
    int layer, head; /* from 0 */
    qkv_head_measures measures;
    void *reserved[2];
} qkv_ranked_head;

/* What each head of a kind does, to (layers * heads) places: the least entropy first, of the other measures the most; of equal
 * ones the lower layer, then the lower head. USAGE for NULL, a kind that is not there, another measure. */
QKV_API qkv_status qkv_attention_capture_rank(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by,
                                              qkv_ranked_head *heads);

/* The same as text in *out, which is yours: a table, or with json an object with "kind" and "heads", each with "layer", "head"
 * and every measure. The same errors; MEMORY. */
QKV_API qkv_status qkv_attention_rank_text(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by,
                                           int json, qkv_buffer *out);

typedef struct qkv_attention_map {
    int layer, head;      /* QKV_ATTENTION_MEAN for a mean */
    const float *weights; /* (rows, columns) */
    const char *title;    /* what it is and the others are not, such as "layer 0, head 3" */
    void *reserved[2];
} qkv_attention_map;

/* Starts as zero; used again and again. All it points to is its own, but for the axes, which are those of the capture: that
 * must live as long. */
typedef struct qkv_attention_maps {
    const qkv_axis *rows, *columns;
    const qkv_attention_map *maps;
    int64_t n;
    int across;        /* maps side by side, where both layers and heads are many; 0: as fits */
    const char *title; /* of all of them, such as "cross-attention, layer 1, mean of heads" */
    const char *minus; /* the name of what was subtracted; NULL: nothing was */
    qkv_attention_kind kind;
    int rollout;
    struct qkv_attention_maps_work *work;
    const uint8_t *hidden; /* (rows, columns): 1 where no map can have a weight, because a mask hides what comes later
                              or a window what is far; NULL: nowhere */
    void *reserved[3];
} qkv_attention_maps;

typedef struct qkv_attention_maps_opts {
    size_t size;
    qkv_attention_kind kind;
    int layer, head; /* from 0; QKV_ATTENTION_MEAN: the mean over all; QKV_ATTENTION_EACH: a map for each */
    int rollout;     /* 1: one map of attention rollout instead of a layer and head */
    const qkv_attention_capture
        *minus;             /* what is subtracted: of a model with as many layers and heads, on the same tokens; NULL:
                                           nothing */
    const char *minus_name; /* of the model it is of; copied */
} qkv_attention_maps_opts;

/* USAGE for NULL, a kind, layer or head that is not there, a capture whose special tokens were all there was, and `minus` of
 * other tokens; MEMORY. *out then holds nothing. */
QKV_API qkv_status qkv_attention_maps_make(const qkv_attention_capture *a, const qkv_attention_maps_opts *opts,
                                           qkv_attention_maps *out);
QKV_API void qkv_attention_maps_free(qkv_attention_maps *maps);

/* Maps as text, which is yours: JSON, an object with "kind", "layer", "head", "queries", "keys" and "weights", of several maps
 * an array of them; CSV as RFC 4180 has it, a column of queries and one for each key, of several maps with the layer and the
 * head before them. Numbers have the digits that give the same float back. USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_attention_maps_json(const qkv_attention_maps *maps, qkv_buffer *out);
QKV_API qkv_status qkv_attention_maps_csv(const qkv_attention_maps *maps, qkv_buffer *out);

/* Changes as they are typed. Starts as zero; freed by qkv_touches_free(). */
typedef struct qkv_touches {
    const qkv_edit *touches; /* n of them, which are its own */
    int64_t n;
    struct qkv_touches_work *work;
    void *reserved[4];
} qkv_touches;

/* Adds what a text says, one change or several with ; between them:
 *   HEAD_OFF   [KIND:]LAYER.HEAD             LAYER_OFF    [KIND:]LAYER              HIDE_KEY   [KIND:]PLACE
 *   MOVE       [KIND:]PLACE=OTHER            EDIT_ROW     [KIND:]LAYER.HEAD.PLACE=W,W,..
 *   SWAP_VALUES, ZERO_VALUE   [KIND:][LAYER.]PLACE=OTHER, [KIND:][LAYER.]PLACE; every layer unless one is given
 * KIND is encoder, decoder or cross. Without one a model of one stack has that of its own; in a translator heads, rows and
 * values are those of cross-attention, layers the decoder's, keys and positions the source's (a key is then hidden from the
 * encoder and from cross-attention: two changes). USAGE for NULL and a text that is not so, with what was expected; MEMORY. */
QKV_API qkv_status qkv_touches_add(qkv_touches *list, const qkv_model *m, qkv_edit_kind what, const char *text);
QKV_API void qkv_touches_free(qkv_touches *list);

#endif
