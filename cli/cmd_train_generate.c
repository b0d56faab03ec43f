/* cmd_train_generate.c: qkv train generate and qkv train mask: plain text in, a language model or an encoder out. */
#include "documents.h"
#include "training.h"

#include <math.h>
#include <stdio.h>

static struct {
    value_list train, valid;
    int context;
    float rate;
} given = { .context = 256, .rate = 0.15f };

#define TEXT_OPTIONS                                                                                                          \
    { "train",          .group = DATA_GROUP, .value = "FILES", .help = "plain text, plain or gzip",                           \
      .required = true, .list = &given.train },                                                                               \
        { "valid", .group = DATA_GROUP, .value = "FILES", .help = "the same, to measure progress on", .list = &given.valid }, \
        DOCUMENT_OPTIONS, TOKENIZER_OPTIONS

static const option generate_options[] = {
    TEXT_OPTIONS,
    { "context", .group = DATA_GROUP, .value = "N", .help = "tokens the model sees at once, 256 unless given",
      .count = &given.context },
#include "transformer_rows.h"
    TRAINING_OPTIONS("cosine (unless given), paper, constant or linear", "0", "4096"),
    TRAINING_LIMITS("10"),
    { 0 },
};

static const option mask_options[] = {
    TEXT_OPTIONS,
    { "rate", .group = DATA_GROUP, .value = "R", .help = "share of the tokens that are to be guessed, 0.15 unless given",
      .number = &given.rate },
#include "transformer_rows.h"
    TRAINING_OPTIONS("cosine (unless given), paper, constant or linear", "0", "4096"),
    TRAINING_LIMITS("10"),
    { 0 },
};

/* ---- the text ---- */

typedef struct reading {
    bool masks;
    int64_t max_length;
    const qkv_model *model;
    qkv_pairs *pairs;
} reading;

static qkv_status add_line(void *words, const char *text, size_t length) { return qkv_word_counts_add(words, text, length); }

static qkv_status add_document_words(void *data, qkv_word_counts *sources, qkv_word_counts *targets)
{
    (void)data, (void)targets;
    return read_documents(&given.train, training.strict, true, add_line, sources, NULL);
}

static qkv_status add_document(void *data, const char *text, size_t length)
{
    const reading *r = data;
    return r->masks ? qkv_pairs_add_masked(r->pairs, r->model, text, length, r->max_length)
                    : qkv_pairs_add_document(r->pairs, r->model, text, length, given.context);
}

static qkv_status without_encoder(void *data, const qkv_model *from, qkv_transformer_opts *o)
{
    (void)data;
    if (is_published(from) && !(qkv_model_info_of(from)->can & QKV_ABILITY_GENERATE))
        return fail(QKV_USAGE, "%s is a %s, which has no decoder alone to generate with", training.from,
                    qkv_model_info_of(from)->family);
    o->encoder_layers = 0;
    o->target_vocabulary = 0;
    return QKV_OK;
}

static qkv_status without_decoder(void *data, const qkv_model *from, qkv_transformer_opts *o)
{
    (void)data;
    o->decoder_layers = 0;
    o->target_vocabulary = 0;
    o->classes = 0;
    if (!is_published(from)) return QKV_OK;
    if (!(qkv_model_info_of(from)->can & QKV_ABILITY_EMBED))
        return fail(QKV_USAGE, "%s is a %s, which has no encoder alone to fill in words with", training.from,
                    qkv_model_info_of(from)->family);
    o->head = o->output_bias = 1;
    o->pooler = QKV_POOLER_NONE; /* it is the classifier's */
    return QKV_OK;
}

/* ---- training ---- */

typedef struct measured {
    const qkv_pairs *pairs;
    qkv_batch_opts batches;
} measured;

static qkv_status validate_documents(training_job *j, qkv_run_score *score)
{
    const measured *v = j->data;
    double loss;
    if (qkv_evaluate(j->model, v->pairs, j->objective, &v->batches, &loss)) return library_failed();
    score->score = -loss;
    snprintf(score->words, sizeof score->words, "valid loss %.4f, perplexity %.2f", loss, exp(loss));
    snprintf(score->json, sizeof score->json, "\"valid_loss\": %.6f", loss);
    return QKV_OK;
}

static qkv_status train_model(const command *c, qkv_model *m, bool masks, qkv_pairs *pairs, qkv_pairs *valid)
{
    measured v = { .pairs = valid };
    training_job j = { .c = c, .model = m, .pairs = pairs, .data = &v, .bare = !masks };
    reading r = { .masks = masks,
                  .max_length = readable_length(m, training.max_length + 1) - 1, /* the end is not counted */
                  .model = m,
                  .pairs = pairs };
    qkv_corpus_read read = { 0 }, valid_read = { 0 };
    qkv_special_tokens frame;
    qkv_status status = find_specials(&j, &frame);
    const qkv_masking_opts masking = { .rate = given.rate,
                                       .mask = frame.mask,
                                       .first = frame.first,
                                       .vocabulary = qkv_tokenizer_size(qkv_model_source_tokenizer(m)) };
    if (!status && masks && frame.mask < 0) status = fail(QKV_UNSUPPORTED, "the tokenizer has no token " QKV_SPECIAL_MASK);
    if (!status && !masks && readable_length(m, given.context) < given.context)
        status = fail(QKV_USAGE, "--context %d is more than the %lld positions of the model (--longest)", given.context,
                      (long long)readable_length(m, given.context));
    if (!status) status = read_documents(&given.train, training.strict, training.quiet, add_document, &r, &read);
    r.pairs = valid;
    if (!status && given.valid.n)
        status = read_documents(&given.valid, training.strict, training.quiet, add_document, &r, &valid_read);
    j.read = (training_data){ .noun = "documents",
                              .parts = masks ? NULL : "windows",
                              .used = read.pairs,
                              .empty = read.empty,
                              .valid = valid_read.pairs };
    v.batches = (qkv_batch_opts){
        .max_tokens = training.max_tokens, .start = j.start, .end = j.end, .pad = j.pad, .bare = j.bare
    };
    if (given.valid.n) j.validate = validate_documents;
    const qkv_objective objective = masks ? qkv_masking(&masking) : qkv_generating();
    j.objective = &objective;
    return status ? status : run_training(&j);
}

static void set_defaults(bool masks)
{
    if (!was_given("schedule")) training.schedule = 3; /* cosine */
    if (!was_given("lr")) training.lr = 1e-3f;
    if (!training.steps && !training.epochs && !(training.minutes > 0)) training.epochs = 10;
    if (!was_given("label-smoothing")) training.smoothing = 0;
    if (!was_given("max-tokens")) training.max_tokens = 4096;
    training.pre_norm = true;
    if (!was_given(transformer_option_names[TRANSFORMER_positions]) && !masks) training.positions = QKV_POSITION_ROTARY;
}

static qkv_status train_on_documents(const command *c, bool masks)
{
    set_defaults(masks);
    if (!(given.rate > 0 && given.rate < 1)) return fail(QKV_USAGE, "--rate: %g is not between 0 and 1", (double)given.rate);
    const training_plan plan = { .add_words = add_document_words,
                                 .adjust = masks ? without_decoder : without_encoder,
                                 .extra_special = masks ? QKV_SPECIAL_MASK : NULL };
    qkv_status status = check_training_folder(c);
    qkv_model *m = status ? NULL : training_start(&plan, &status);
    qkv_pairs *pairs = qkv_pairs_new(), *valid = qkv_pairs_new();
    if (m) status = pairs && valid ? train_model(c, m, masks, pairs, valid) : library_failed();
    qkv_pairs_free(valid);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
    return leave_training_folder(status);
}

static qkv_status run_train_generate(void) { return train_on_documents(&train_generate_command, false); }

static qkv_status run_train_mask(void) { return train_on_documents(&train_mask_command, true); }

const command train_generate_command = {
    .name = "train generate",
    .summary = "train a language model on plain text",
    .about = "Learns which token comes next, and writes a model folder that \"qkv generate -m\n"
             "DIR\" continues texts with. A document is a line, a paragraph (up to an empty\n"
             "line) or a file; it is cut into windows of --context tokens, and no window has\n"
             "tokens of two documents.\n"
             "\n"
             "Defaults: rotary positions, normalisation before each sub-layer, cosine schedule\n"
             "from 1e-3, 10 epochs, no label smoothing; all else as in \"qkv train translate\".",
    .example = "  qkv train generate --train play.txt --documents files \\\n"
               "    --tokens characters --out play",
    .options = generate_options,
    .run = run_train_generate,
};

const command train_mask_command = {
    .name = "train mask",
    .summary = "train an encoder on plain text, by masked words",
    .about = "BERT's way to learn from text without labels: some tokens are hidden, and the\n"
             "encoder guesses them. The model folder is a start for \"qkv train classify --from\n"
             "DIR\", and embeds texts. Of the chosen tokens 8 of 10 become " QKV_SPECIAL_MASK ", 1 another\n"
             "token, 1 stays; every pass over the text chooses anew.\n"
             "\n"
             "Defaults: normalisation before each sub-layer, cosine schedule from 1e-3, 10\n"
             "epochs, no label smoothing; all else as in \"qkv train translate\". With --positions\n"
             "rotary it learns in fewer updates.",
    .example = "  qkv train mask --train reviews.txt --tokens words --vocab 20000 \\\n"
               "    --preset tiny --positions rotary --out encoder",
    .options = mask_options,
    .run = run_train_mask,
};
