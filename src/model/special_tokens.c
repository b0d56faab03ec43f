/* special_tokens.c: what stands around a model's texts: by spelling for ours, by its files for a published one. */
#include "special_tokens.h"

#include "../base/options.h"
#include "../base/size.h"
#include "../token/pipeline.h"
#include "../token/tokenizer.h"
#include "languages.h"
#include "model_info.h"
#include "model.h"

#include <string.h>

static void put_id(qkv__id_run *m, int32_t id)
{
    if (id >= 0 && m->n < QKV__ID_RUN) m->ids[m->n++] = id;
}

static int32_t last_of(const qkv__id_run *m) { return m->n ? m->ids[m->n - 1] : -1; }

/* The first of the spellings that the tokenizer has. */
static int32_t find_any(const qkv_tokenizer *t, const char *const *spellings)
{
    int32_t id = -1;
    for (; *spellings && id < 0; spellings++) id = qkv_tokenizer_id(t, *spellings);
    return id;
}

static int32_t or_spelled(int32_t id, const qkv_tokenizer *t, const char *const *spellings)
{
    return id >= 0 ? id : find_any(t, spellings);
}

static const char *const begins[] = { QKV_SPECIAL_BERT_START, QKV_SPECIAL_START, NULL };
static const char *const ends[] = { QKV_SPECIAL_BERT_END, QKV_SPECIAL_END, NULL };
static const char *const pads[] = { QKV_SPECIAL_BERT_PAD, QKV_SPECIAL_PAD, NULL };
const char *const qkv__mask_spellings[] = { QKV_SPECIAL_BERT_MASK, QKV_SPECIAL_MASK, NULL };
static const char *const starts[] = { QKV_SPECIAL_START, NULL };
static const char *const opens[] = { QKV_SPECIAL_START, QKV_SPECIAL_GPT2_END, NULL };
static const char *const stops[] = { QKV_SPECIAL_END, QKV_SPECIAL_GPT2_END, NULL };

static bool has_encoder(const qkv__special_tokens *f) { return f->t->encoder_layers > 0; }
static bool has_decoder(const qkv__special_tokens *f) { return f->t->decoder_layers > 0; }

/* The first id behind the special tokens that a vocabulary begins with, and behind all that stand around texts: BERT's are the
 * ids 100 to 103, behind tokens that are not used. */
static int32_t first_ordinary(const qkv__special_tokens *f)
{
    int32_t id = 0;
    const qkv__id_run *runs[] = { &f->single.before, &f->single.after };
    for (int k = 0; f->is_published && k < 2; k++)
        for (int i = 0; i < runs[k]->n; i++)
            if (runs[k]->ids[i] >= id) id = runs[k]->ids[i] + 1;
    while (qkv_tokenizer_is_special(f->source, id)) id++;
    return id;
}

static bool is_translator(const qkv__special_tokens *f) { return has_encoder(f) && has_decoder(f); }

/* Whether what an encoder reads ends with </s>; config.json of a translator may say otherwise. */
static bool ends_sources(const qkv__special_tokens *f) { return has_encoder(f) && !(is_translator(f) && f->t->no_source_eos); }

/* ---- ours ---- */

static void resolve_ours(qkv__special_tokens *f)
{
    qkv_special_tokens *ids = &f->ids;
    *ids = (qkv_special_tokens){ .start = qkv_tokenizer_id(f->target, QKV_SPECIAL_START),
                                 .end = qkv_tokenizer_id(f->target, QKV_SPECIAL_END),
                                 .pad = qkv_tokenizer_id(f->target, QKV_SPECIAL_PAD),
                                 .mask = qkv_tokenizer_id(f->source, QKV_SPECIAL_MASK) };
    int32_t end = qkv_tokenizer_id(f->source, QKV_SPECIAL_END);
    if (!is_translator(f)) put_id(&f->single.before, ids->start);
    if (ends_sources(f)) put_id(&f->single.after, end);
    f->pair = f->single;
    put_id(&f->pair.between, end);
}

/* ---- published ---- */

/* A template of the tokenizer's file, which may give more tokens than there is room for: none of the families does. */
static qkv_status unwrap(const qkv__template *from, qkv__wrap *to)
{
    qkv__id_run *at = &to->before;
    for (size_t i = 0; i < from->n; i++) {
        const qkv__template_item *item = &from->at[i];
        if (item->id == QKV__FIRST_TEXT) {
            at = &to->after;
            to->first_type = to->second_type = to->after_type = item->type;
        } else if (item->id == QKV__SECOND_TEXT) {
            to->between = to->after;
            to->after.n = 0;
            to->second_type = to->after_type = item->type;
        } else if (at->n == QKV__ID_RUN)
            return qkv__fail(QKV_UNSUPPORTED, "the tokenizer puts more than %d tokens in one place around a text", QKV__ID_RUN);
        else {
            put_id(at, item->id);
            if (at == &to->after) to->after_type = item->type;
        }
    }
    return QKV_OK;
}

/* Whether a decoder's texts begin with a token that no file puts there: those of ours that were exported, and Llama's from its
 * SentencePiece file alone, whose programs add <s> unless told otherwise. GPT-2's have none: the token that its config calls
 * the beginning is the end of the text before. */
static bool begins_by_itself(const qkv__special_tokens *f)
{
    int32_t start = qkv_tokenizer_id(f->source, QKV_SPECIAL_START);
    bool fits = start >= 0 && (f->info->begin < 0 || f->info->begin == start);
    bool is_llama = !strcmp(f->info->family, "llama") || !strcmp(f->info->family, "mistral");
    if (f->source->pipeline) return fits && is_llama && f->source->pipeline->is_spm && !f->source->pipeline->template_is_said;
    return fits;
}

/* What texts have around them where the tokenizer puts nothing there. */
static void wrap_spelled(qkv__special_tokens *f)
{
    const qkv__model_info *info = f->info;
    qkv__wrap *w = &f->single;
    int32_t end = info->n_ends ? info->ends[0] : -1;
    if (has_encoder(f))
        put_id(&w->after, has_decoder(f) ? or_spelled(end, f->source, stops) : or_spelled(end, f->source, ends));
    if (has_encoder(f) && !has_decoder(f)) put_id(&w->before, or_spelled(info->begin, f->source, begins));
    if (!has_encoder(f) && begins_by_itself(f)) put_id(&w->before, or_spelled(info->begin, f->source, starts));
    f->pair = *w;
    put_id(&f->pair.between, last_of(&w->after));
    f->pair.second_type = f->pair.after_type = 1;
}

static qkv_status wrap_texts(qkv__special_tokens *f)
{
    const qkv__pipeline *p = f->source->pipeline;
    qkv_status status = p ? unwrap(&p->single, &f->single) : QKV_OK;
    if (!status && p) status = unwrap(&p->pair, &f->pair);
    if (!status && !f->single.before.n && !f->single.after.n) wrap_spelled(f);
    if (!status) qkv__place_language(f);
    return status;
}

static bool knows_type(const qkv__special_tokens *f, int32_t type) { return type < f->t->token_types; }

static qkv_status resolve_published(qkv__special_tokens *f)
{
    const qkv__model_info *info = f->info;
    qkv_special_tokens *ids = &f->ids;
    qkv_status status = wrap_texts(f);
    if (status) return status;
    int32_t end = info->n_ends ? info->ends[0] : -1, mark = last_of(&f->single.after);
    ids->end = has_decoder(f) ? or_spelled(end >= 0 ? end : mark, f->target, stops) : mark;
    ids->pad = or_spelled(info->pad, f->target, pads);
    ids->mask = find_any(f->source, qkv__mask_spellings);
    if (is_translator(f)) ids->start = or_spelled(info->start, f->target, starts);
    else ids->start = f->single.before.n ? f->single.before.ids[0] : or_spelled(info->begin, f->source, opens);
    f->ends = info->ends;
    f->n_ends = info->n_ends;
    f->has_types = has_encoder(f) && knows_type(f, f->pair.first_type) && knows_type(f, f->pair.second_type) &&
                   knows_type(f, f->pair.after_type) && f->t->token_types > 1;
    return QKV_OK;
}

/* ---- both ---- */

static int64_t ids_around(const qkv__wrap *w) { return w->before.n + w->after.n; }

/* A folder of ours may hold a published encoder (export --as qkv): its tokenizer says what is around a text. */
static bool is_of_others(const qkv__special_tokens *f)
{
    return !has_decoder(f) && f->source->pipeline && qkv_tokenizer_id(f->source, QKV_SPECIAL_START) < 0;
}

qkv_status qkv__refuse_without_tokenizer(const qkv_model *m, const char *job)
{
    const char *folder = m ? qkv__model_folder(m) : NULL, *start = job ? job : "", *colon = job ? ": " : "";
    if (!folder) return qkv__fail(QKV_USAGE, "%s%sthe model has no tokenizer: it knows ids, not text", start, colon);
    return qkv__fail(QKV_USAGE,
                     "%s%s%s holds no tokenizer: expected tokenizer.json, vocab.txt, tokenizer.model, or vocab.json with "
                     "merges.txt",
                     start, colon, folder);
}

qkv_status qkv__special_tokens_of(const qkv_model *m, qkv__special_tokens *f)
{
    *f = (qkv__special_tokens){ .t = qkv__model_config(m),
                                .source = qkv_model_tokenizer(m, QKV_SIDE_SOURCE),
                                .target = qkv_model_tokenizer(m, QKV_SIDE_TARGET),
                                .info = qkv__model_get_info(m) };
    if (!m || !f->source) return qkv__refuse_without_tokenizer(m, NULL);
    f->is_published = qkv__info_is_published(f->info) || is_of_others(f);
    qkv_status status = QKV_OK;
    if (f->is_published) status = resolve_published(f);
    else resolve_ours(f);
    f->ids.first_ordinary = first_ordinary(f);
    f->ids.source_end = is_translator(f) ? last_of(&f->single.after) : f->ids.end;
    f->around = qkv__max(ids_around(&f->single), ids_around(&f->pair));
    f->max_tokens = qkv__max_positions(f->t);
    return status;
}

/* An encoder may have nothing before its texts where its tokenizer says so, as T5's has. */
static bool needs_start(const qkv__special_tokens *f)
{
    return has_decoder(f) || !f->is_published || !f->source->pipeline || !f->source->pipeline->single.n;
}

/* The first that is missing of what needs to be there. */
static qkv_status lacks(const qkv__special_tokens *f)
{
    bool has_all_but_pad = is_translator(f) && f->ids.end >= 0 && f->ids.pad < 0;
    bool has_no_start = f->ids.start < 0 && needs_start(f);
    const char *spelling = has_no_start ? QKV_SPECIAL_START : has_all_but_pad ? QKV_SPECIAL_PAD : QKV_SPECIAL_END;
    if (!f->is_published) return qkv__fail(QKV_USAGE, "the tokenizer has no token %s", spelling);
    return qkv__fail(QKV_USAGE, "neither the model's files nor its tokenizer say what %s",
                     has_no_start ? "a text starts with" : "ends a text");
}

qkv_status qkv__special_tokens_needed(const qkv_model *m, qkv__special_tokens *f)
{
    qkv_status status = qkv__special_tokens_of(m, f);
    if (status) return status;
    bool is_padded = f->is_published || !is_translator(f) || f->ids.pad >= 0;
    bool is_whole = (f->ids.start >= 0 || !needs_start(f)) && f->ids.end >= 0 && is_padded &&
                    (!ends_sources(f) || f->single.after.n);
    if (!is_whole) return lacks(f);
    if (f->is_published || !ends_sources(f) || last_of(&f->single.after) == f->ids.end) return QKV_OK;
    return qkv__fail(QKV_USAGE, "the token %s must have the same id in the tokenizers of source and target", QKV_SPECIAL_END);
}

qkv_status qkv__document_tokens(const qkv_model *m, qkv__special_tokens *f, qkv__id_run *begin, qkv__id_run *end)
{
    qkv_status status = qkv__special_tokens_of(m, f);
    if (status) return status;
    if (!f->is_published && (f->ids.start < 0 || f->ids.end < 0)) return lacks(f);
    *begin = f->single.before;
    *end = f->single.after;
    if (!begin->n) put_id(begin, f->ids.start);
    if (!end->n) put_id(end, f->ids.end);
    return QKV_OK;
}

/* A text never has the id that stands between the two: special tokens written in it are text. */
void qkv__token_types(const qkv__special_tokens *f, const int32_t *ids, int64_t n, int32_t *types)
{
    const qkv__wrap *w = &f->pair;
    int64_t at = w->before.n, last = n - w->after.n;
    for (int64_t i = 0; i < n; i++) types[i] = f->single.first_type;
    if (!w->between.n) return;
    while (at < last && ids[at] != w->between.ids[0]) at++;
    if (at + w->between.n > last) return;
    for (int64_t i = at + w->between.n; i < n; i++) types[i] = i < last ? w->second_type : w->after_type;
}

size_t qkv__mask_at(const qkv__special_tokens *f, const char *text, size_t length)
{
    const char *spelling = f->ids.mask < 0 ? NULL : qkv_tokenizer_token(f->source, f->ids.mask);
    for (const char *const *next = qkv__mask_spellings; spelling; spelling = *next++) {
        size_t n = strlen(spelling);
        if (n && n <= length && !memcmp(text, spelling, n)) return n;
    }
    return 0;
}

bool qkv__ends_text(const qkv__special_tokens *f, int32_t id)
{
    if (f->ids.end >= 0 && id == f->ids.end) return true;
    for (int i = 0; i < f->n_ends; i++)
        if (f->ends[i] == id) return true;
    return false;
}

qkv_status qkv__check_length(qkv_status refusal, const char *what, int64_t tokens, int64_t most)
{
    if (!most || tokens <= most) return QKV_OK;
    return qkv__fail(refusal, "%s %lld tokens, the model has positions for %lld", what, (long long)tokens, (long long)most);
}

qkv_status qkv_model_special_tokens(const qkv_model *m, qkv_special_tokens *out)
{
    qkv__special_tokens f;
    if (!m || !out) return qkv__fail(QKV_USAGE, "special tokens: a model and a place for the result are needed");
    bool generates = qkv__model_get_info(m)->can & QKV_CAN_GENERATE;
    qkv_status status = generates ? qkv__special_tokens_of(m, &f) : qkv__special_tokens_needed(m, &f);
    if (status) return status;
    if (f.ids.pad < 0) f.ids.pad = f.ids.end < 0 ? 0 : f.ids.end;
    return QKV__WRITE_OPTIONS(out, source_end, &f.ids, "special tokens");
}
