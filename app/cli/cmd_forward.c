/* cmd_forward.c: qkv forward: one run of a model, its logits and hidden states into files, to compare with other programs. */
#include "../report/tokens.h"

#include <qkv/unstable/util.h>
#include "model.h"
#include "options.h"
#include "results.h"
#include "../term/print.h"
#include "../../src/model/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *source, *source_ids, *type_ids, *target, *target_ids;
    const char *logits, *hidden, *encoder, *classes, *hidden_all, *encoder_all;
    bool raw, quiet;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "source", .value = "TEXT", .help = "encoder input", .text = &given.source },
    { "source-ids", .value = "IDS", .help = "encoder input as ids, such as 5,6,2", .text = &given.source_ids },
    { "type-ids", .is_rare = true, .value = "IDS", .help = "token type of each source id (default: 0)",
      .text = &given.type_ids },
    { "target", .value = "TEXT", .help = "decoder input", .text = &given.target },
    { "target-ids", .value = "IDS", .help = "decoder input as ids, such as 1,7,8", .text = &given.target_ids },
    { "raw", .is_rare = true, .help = "add nothing to a text, such as " QKV_SPECIAL_END " or " QKV_SPECIAL_BERT_START,
      .flag = &given.raw },
    { "logits", .value = "FILE", .help = "write logits (tokens, vocabulary) as .npy", .text = &given.logits },
    { "hidden", .value = "FILE", .help = "write the decoder's hidden states (tokens, dim) as .npy", .text = &given.hidden },
    { "encoder", .value = "FILE", .help = "write the encoder's hidden states (tokens, dim) as .npy", .text = &given.encoder },
    { "hidden-all", .is_rare = true, .value = "FILE",
      .help = "write the decoder's states of every layer (layers + 1, tokens, dim)", .text = &given.hidden_all },
    { "encoder-all", .is_rare = true, .value = "FILE", .help = "write the encoder's states of every layer",
      .text = &given.encoder_all },
    { "classes", .is_rare = true, .value = "FILE", .help = "write class logits (1 or tokens, classes) as .npy",
      .text = &given.classes },
    { "quiet", .is_rare = true, .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

/* ---- what goes in ---- */

/* The ids of one side. */
typedef struct side {
    const char *name, *option; /* "source", "--source-ids" */
    bool is_there;             /* the model has it */
    const char *text, *ids_text;
    const qkv_tokenizer *tokenizer;
    int64_t vocabulary;
    token_ids typed;
    qkv_encoding *encoded;
    int32_t *ids; /* n of them, of one of these */
    int64_t n;
} side;

static qkv_status parse_ids(side *s)
{
    if (qkv_ids_parse(s->ids_text, s->vocabulary, s->option, &s->typed)) return library_failed();
    s->ids = s->typed.ids;
    s->n = (int64_t)s->typed.n;
    return QKV_OK;
}

/* A text that is missing may be nothing but what stands around it: of a translator's target, of a published encoder. */
static qkv_status read_side(const qkv_model *m, qkv_side which, side *s)
{
    if (!s->is_there && (s->text || s->ids_text))
        return fail(QKV_USAGE, "%s has no %s: it takes no --%s", given.model,
                    which == QKV_SIDE_TARGET ? _("decoder") : _("encoder"), s->name);
    if (!s->is_there) return QKV_OK;
    if (s->text && s->ids_text) return fail(QKV_USAGE, "--%s and --%s-ids: choose one", s->name, s->name);
    if (s->ids_text) return parse_ids(s);
    if (s->text && !s->tokenizer) return fail(QKV_USAGE, "%s has no tokenizer: give --%s-ids", given.model, s->name);
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    const qkv_encode_opts how = { .no_special = given.raw };
    const bool may_lack = o.encoder_layers && (which == QKV_SIDE_TARGET || !o.decoder_layers);
    if (s->tokenizer && (s->text || may_lack)) {
        if (qkv_model_tokenize(m, which, qkv_cstr(s->text), &how, &s->encoded)) return library_failed();
        s->ids = s->encoded->ids;
        s->n = s->encoded->n;
    }
    return s->text || s->n ? QKV_OK : fail(QKV_USAGE, "--%s or --%s-ids is missing", s->name, s->name);
}

/* One type for each id of the source. */
static qkv_status read_types(side *types, const side *source)
{
    if (!types->ids_text) return QKV_OK;
    if (!types->vocabulary) return fail(QKV_USAGE, "--type-ids: the tokens of %s have no types", given.model);
    qkv_status status = parse_ids(types);
    if (status || types->n == source->n) return status;
    return fail(QKV_USAGE, "--type-ids: %lld types for a source of %lld ids", (long long)types->n, (long long)source->n);
}

/* ---- what comes out ---- */

enum { SHOWN = 5 };

static qkv_status print_likeliest(const float *logits, int64_t n, const qkv_tokenizer *t)
{
    qkv_text *shown = NULL;
    int32_t best[SHOWN];
    double p[SHOWN];
    int found = n < SHOWN ? (int)n : SHOWN;
    if (qkv_top_k(logits, n, found, best, p)) return library_failed();
    puts(_("likeliest next"));
    for (int k = 0; k < found; k++) {
        bool is_known = t && !qkv_tokenizer_show(t, best[k], &shown);
        printf("%8ld  %.4f  %s\n", (long)best[k], p[k], is_known ? shown->data : "");
    }
    qkv_free(shown);
    return QKV_OK;
}

static void print_shape(const char *name, int64_t rows, int64_t columns)
{
    print_name(_(name), 9, false);
    printf("(%lld, %lld)\n", (long long)rows, (long long)columns);
}

static qkv_status write_tensor(const char *path, const qkv_tensor *x)
{
    if (!path) return QKV_OK;
    result r = drop_dims(x, qkv_tensor_ndim(x) > 2, false);
    return write_result(path, &r, given.quiet);
}

/* The hidden states first .. first+layers of the tape, one after the other. */
static qkv_status write_layers(const char *path, const qkv_tape *t, int first, int layers)
{
    if (!path) return QKV_OK;
    const qkv_tensor *x = qkv_tape_hidden(t, first);
    int64_t n = qkv_tensor_count(x);
    float *all = malloc(sizeof *all * (size_t)n * (size_t)(layers + 1));
    if (!all) return fail(QKV_MEMORY, "out of memory");
    for (int i = 0; i <= layers; i++)
        memcpy(all + i * n, qkv_tensor_data(qkv_tape_hidden(t, first + i)), sizeof *all * (size_t)n);
    const result r = { 3, { layers + 1, qkv_tensor_dim(x, 1), qkv_tensor_dim(x, 2) }, all };
    qkv_status status = write_result(path, &r, given.quiet);
    free(all);
    return status;
}

/* What a model has computed; NULL for what it does not have. */
typedef struct computed {
    qkv_tensor *encoded, *hidden, *logits, *classes;
} computed;

/* BART's classifier reads what its decoder gives, which says no words. */
static bool classifies_by_decoder(const qkv_model *m)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    return o.encoder_layers && o.decoder_layers && !(qkv_model_get_info(m)->can & QKV_CAN_TRANSLATE);
}

static bool has_logits(const qkv_model *m)
{
    if (classifies_by_decoder(m)) return false;
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    return o.decoder_layers || qkv_model_get_info(m)->can & QKV_CAN_FILL;
}

static bool writes_files(void)
{
    return given.logits || given.hidden || given.encoder || given.classes || given.hidden_all || given.encoder_all;
}

static qkv_status print_computed(const computed *x, const qkv_tokenizer *t)
{
    int64_t vocabulary = qkv_tensor_dim(x->logits, 2);
    if (x->encoded) print_shape(N_("encoder"), qkv_tensor_dim(x->encoded, 1), qkv_tensor_dim(x->encoded, 2));
    if (x->hidden) print_shape(N_("hidden"), qkv_tensor_dim(x->hidden, 1), qkv_tensor_dim(x->hidden, 2));
    if (x->logits) print_shape(N_("logits"), qkv_tensor_dim(x->logits, 1), vocabulary);
    if (x->classes)
        print_shape(N_("classes"), qkv_tensor_ndim(x->classes) > 2 ? qkv_tensor_dim(x->classes, 1) : 1,
                    qkv_tensor_dim(x->classes, -1));
    if (!x->logits) return QKV_OK;
    return print_likeliest(qkv_tensor_data(x->logits) + (qkv_tensor_dim(x->logits, 1) - 1) * vocabulary, vocabulary, t);
}

static qkv_status write_computed(const computed *x, const qkv_tape *t, const qkv_config *o)
{
    int decoder = o->encoder_layers ? o->encoder_layers + 1 : 0; /* the first of its states */
    qkv_status status = write_tensor(given.encoder, x->encoded);
    if (!status) status = write_tensor(given.hidden, x->hidden);
    if (!status) status = write_tensor(given.logits, x->logits);
    if (!status) status = write_tensor(given.classes, x->classes);
    if (!status) status = write_layers(given.encoder_all, t, 0, o->encoder_layers);
    return status ? status : write_layers(given.hidden_all, t, decoder, o->decoder_layers);
}

/* ---- from options to the end ---- */

static qkv_status compute(const qkv_model *m, const side *source, const int32_t *types, const side *target)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_hidden = given.hidden_all || given.encoder_all });
    computed c = { 0 };
    if (!t) return library_failed();
    if (source->is_there)
        c.encoded = qkv_model_encode(m, t,
                                     &QKV_OPTS(qkv_tokens, .ids = source->ids, .types = types, .rows = 1, .length = source->n));
    if (target->is_there && !qkv_tape_status(t))
        c.hidden = qkv_model_decode(m, t, &QKV_OPTS(qkv_tokens, .ids = target->ids, .rows = 1, .length = target->n), c.encoded,
                                    NULL);
    if (has_logits(m)) c.logits = qkv_model_logits(m, target->is_there ? c.hidden : c.encoded);
    qkv_tensor *read = classifies_by_decoder(m) ? c.hidden : c.encoded;
    int32_t n = (int32_t)source->n;
    const qkv_batch text = { .rows = 1, .source_length = n, .source = source->ids, .source_lengths = &n };
    if (o.ngrams) c.classes = qkv__classify_batch(m, t, &text); /* naive Bayes reads the ids */
    else if (o.classes) c.classes = qkv_model_classify(m, read, NULL);
    const qkv_tokenizer *names = target->is_there ? target->tokenizer : source->tokenizer;
    qkv_status status = qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status && writes_files()) status = write_computed(&c, t, &o);
    else if (!status) status = print_computed(&c, names);
    qkv_tape_free(t);
    return status;
}

static qkv_status check_outputs(const qkv_model *m, const qkv_config *o)
{
    const char *files[] = { given.logits, given.hidden, given.encoder, given.classes, given.hidden_all, given.encoder_all };
    if ((given.encoder || given.encoder_all) && !o->encoder_layers)
        return fail(QKV_USAGE, "--encoder: %s has no encoder", given.model);
    if ((given.hidden || given.hidden_all) && !o->decoder_layers)
        return fail(QKV_USAGE, "--hidden: %s has no decoder: see --encoder", given.model);
    if (given.logits && !has_logits(m)) return fail(QKV_USAGE, "--logits: %s says no words", given.model);
    if (given.classes && !o->classes) return fail(QKV_USAGE, "--classes: %s has no classifier", given.model);
    qkv_status status = QKV_OK;
    for (size_t i = 0; !status && i < sizeof files / sizeof *files; i++) status = check_output(files[i]);
    return status;
}

static qkv_status run_forward(void)
{
    qkv_model *m;
    qkv_status loaded = load_model(given.model, &m);
    if (loaded) return loaded;
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    side source = { .name = "source",
                    .option = "--source-ids",
                    .is_there = o.encoder_layers > 0,
                    .text = given.source,
                    .ids_text = given.source_ids,
                    .tokenizer = qkv_model_tokenizer(m, QKV_SIDE_SOURCE),
                    .vocabulary = o.vocab_size };
    side target = { .name = "target",
                    .option = "--target-ids",
                    .is_there = o.decoder_layers > 0,
                    .text = given.target,
                    .ids_text = given.target_ids,
                    .tokenizer = qkv_model_tokenizer(m, QKV_SIDE_TARGET),
                    .vocabulary = o.target_vocab_size ? o.target_vocab_size : o.vocab_size };
    side types = { .option = "--type-ids", .ids_text = given.type_ids, .vocabulary = o.token_types };
    qkv_status status = check_outputs(m, &o);
    if (!status) status = read_side(m, QKV_SIDE_SOURCE, &source);
    if (!status) status = read_types(&types, &source);
    if (!status) status = read_side(m, QKV_SIDE_TARGET, &target);
    if (!status) status = compute(m, &source, types.ids, &target);
    token_ids_free(&source.typed);
    qkv_free(source.encoded);
    token_ids_free(&types.typed);
    token_ids_free(&target.typed);
    qkv_free(target.encoded);
    qkv_model_free(m);
    return status;
}

const command forward_command = {
    .name = "forward",
    .summary = "write the logits and hidden states of a model",
    .about = "Runs a model on text or ids and writes what it computes as .npy files, to compare\n"
             "with other programs. Without files it prints the shapes and the likeliest tokens\n"
             "after the last one, each with its id, its probability and the token as \"qkv\n"
             "tokenize\" shows it.\n"
             "\n"
             "A model with encoder and decoder gets the source with " QKV_SPECIAL_END " at its end and the\n"
             "target with " QKV_SPECIAL_START " at its start, which is also the target where none is given; a\n"
             "published model gets what its own files say, such as " QKV_SPECIAL_BERT_START " and " QKV_SPECIAL_BERT_END
             ". --raw adds\n"
             "nothing, and ids are taken as they are. An encoder alone takes --source; a decoder\n"
             "alone takes --target and reads it as \"qkv generate\" reads a prompt.\n"
             "\n"
             "Hidden states of every layer begin with what goes into the first one; the last are\n"
             "those after the norm at the end, where there is one.",
    .example = "  qkv forward -m models/en-zh --source \"I love you\" --logits logits.npy \\\n"
               "    --encoder memory.npy\n"
               "  qkv forward -m bert-base-uncased --source \"A " QKV_SPECIAL_BERT_MASK " text.\" \\\n"
               "    --encoder-all layers.npy",
    .options = options,
    .run = run_forward,
};
