/* cmd_forward.c: qkv forward: one run of a model, its logits and hidden states into files, to compare with other programs. */
#include "model.h"
#include "options.h"
#include "results.h"
#include "term/print.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *source, *source_ids, *type_ids, *target, *target_ids;
    const char *logits, *hidden, *encoder, *classes, *hidden_all, *encoder_all;
    bool raw, quiet;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "the folder of the model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "source", .value = "TEXT", .help = "what the encoder reads", .text = &given.source },
    { "source-ids", .value = "IDS", .help = "the same as ids, such as 5,6,2", .text = &given.source_ids },
    { "type-ids", .value = "IDS", .help = "of each source id its type, where the model has types; 0 unless given",
      .text = &given.type_ids },
    { "target", .value = "TEXT", .help = "what the decoder reads", .text = &given.target },
    { "target-ids", .value = "IDS", .help = "the same as ids, such as 1,7,8", .text = &given.target_ids },
    { "raw", .help = "add nothing to a text, such as " QKV_SPECIAL_END " or " QKV_SPECIAL_BERT_START, .flag = &given.raw },
    { "logits", .value = "FILE", .help = "write the logits, (tokens, vocabulary), as .npy", .text = &given.logits },
    { "hidden", .value = "FILE", .help = "write the decoder's hidden states, (tokens, dim), as .npy", .text = &given.hidden },
    { "encoder", .value = "FILE", .help = "write the encoder's, (tokens, dim), as .npy", .text = &given.encoder },
    { "hidden-all", .value = "FILE", .help = "write the decoder's of every layer, (layers + 1, tokens, dim)",
      .text = &given.hidden_all },
    { "encoder-all", .value = "FILE", .help = "write the encoder's of every layer", .text = &given.encoder_all },
    { "classes", .value = "FILE", .help = "write the logits of the classes, (1, classes), as .npy", .text = &given.classes },
    { "quiet", .help = "do not tell what was written", .flag = &given.quiet },
    { 0 },
};

/* ---- what goes in ---- */

/* The ids of one side. */
typedef struct side {
    const char *name;
    bool is_there; /* the model has it */
    const char *text, *ids_text;
    const qkv_tokenizer *tokenizer;
    int64_t vocabulary;
    int32_t *ids;
    int64_t n;
} side;

/* What a model's text has around it, as ids; -1: nothing. */
typedef struct frame {
    int32_t start, end;
    bool has_special_tokens; /* the tokenizer adds what belongs there */
} frame;

static qkv_status take_id(side *s, long long id)
{
    if (id < 0 || id >= s->vocabulary)
        return fail(QKV_USAGE, "--%s-ids: %lld is outside 0..%lld", s->name, id, (long long)s->vocabulary - 1);
    int32_t *larger = realloc(s->ids, sizeof *larger * (size_t)(s->n + 1));
    if (!larger) return fail(QKV_MEMORY, "out of memory");
    s->ids = larger;
    s->ids[s->n++] = (int32_t)id;
    return QKV_OK;
}

static qkv_status read_side_ids(side *s)
{
    for (const char *at = s->ids_text;; at++) {
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end && *end != ',') || errno)
            return fail(QKV_USAGE, "--%s-ids: \"%s\" is not a list of ids such as 5,6,7", s->name, s->ids_text);
        qkv_status status = take_id(s, id);
        if (status || !*end) return status;
        at = end;
    }
}

/* With the ids of the frame that the tokenizer has not put there itself. */
static qkv_status read_side_text(side *s, frame f)
{
    qkv_ids ids = { 0 };
    qkv_status status = QKV_OK;
    if (!s->tokenizer) return fail(QKV_USAGE, "%s has no tokenizer: give --%s-ids", given.model, s->name);
    const qkv_encode_opts opts = { .specials = f.has_special_tokens, .with_special_tokens = f.has_special_tokens };
    if (s->text && qkv_tokenizer_encode(s->tokenizer, s->text, strlen(s->text), &opts, &ids)) status = library_failed();
    if (!status && f.start >= 0 && !(ids.n && ids.ids[0] == f.start)) status = take_id(s, f.start);
    for (size_t i = 0; i < ids.n && !status; i++) status = take_id(s, ids.ids[i]);
    if (!status && f.end >= 0 && !(ids.n && ids.ids[ids.n - 1] == f.end)) status = take_id(s, f.end);
    qkv_ids_free(&ids);
    return status;
}

static qkv_status read_side(side *s, const frame *f)
{
    bool is_target = !strcmp(s->name, "target");
    if (!s->is_there && (s->text || s->ids_text))
        return fail(QKV_USAGE, "%s has no %s: it takes no --%s", given.model, is_target ? _("decoder") : _("encoder"), s->name);
    if (!s->is_there) return QKV_OK;
    if (s->text && s->ids_text) return fail(QKV_USAGE, "--%s and --%s-ids: choose one", s->name, s->name);
    if (s->ids_text) return read_side_ids(s);
    if (!s->text && !(f->start >= 0 && s->tokenizer)) /* a target may be nothing but its start */
        return fail(QKV_USAGE, "--%s or --%s-ids is missing", s->name, s->name);
    return read_side_text(s, *f);
}

/* What stands around the model's texts: of ours only where an encoder and a decoder learned to see where a source ends and a
 * target starts. */
static qkv_status find_frames(const qkv_model *m, const side *source, const side *target, frame *reads, frame *writes)
{
    qkv_special_tokens f;
    bool is_pair = source->is_there && target->is_there, is_published = strcmp(qkv_model_info_of(m)->family, "qkv") != 0;
    bool has_text = (source->is_there && !source->ids_text) || (target->is_there && !target->ids_text);
    *reads = *writes = (frame){ -1, -1, false };
    if (given.raw || !has_text || !source->tokenizer || !(is_pair || is_published)) return QKV_OK;
    if (qkv_model_special_tokens(m, &f)) return library_failed();
    *reads = (frame){ is_pair ? -1 : f.start, f.source_end, is_published };
    *writes = (frame){ is_pair ? f.start : -1, -1, is_published && !is_pair };
    return QKV_OK;
}

/* One type for each id of the source. */
static qkv_status read_types(side *types, const side *source)
{
    if (!types->ids_text) return QKV_OK;
    if (!types->vocabulary) return fail(QKV_USAGE, "--type-ids: the tokens of %s have no types", given.model);
    qkv_status status = read_side_ids(types);
    if (status || types->n == source->n) return status;
    return fail(QKV_USAGE, "--type-ids: %lld types for a source of %lld ids", (long long)types->n, (long long)source->n);
}

/* ---- what comes out ---- */

enum { SHOWN = 5 };

static qkv_status print_likeliest(const float *logits, int64_t n, const qkv_tokenizer *t)
{
    qkv_text shown = { 0 };
    int64_t best[SHOWN];
    double p[SHOWN];
    int found = n < SHOWN ? (int)n : SHOWN;
    if (qkv_likeliest(logits, n, found, best, p)) return library_failed();
    puts(_("likeliest next"));
    for (int k = 0; k < found; k++) {
        bool is_known = t && !qkv_tokenizer_show(t, (int32_t)best[k], &shown);
        printf("%8lld  %.4f  %s\n", (long long)best[k], p[k], is_known ? shown.data : "");
    }
    qkv_text_free(&shown);
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
    result r = drop_dims(x, qkv_ndim(x) > 2, false);
    return write_result(path, &r, given.quiet);
}

/* The hidden states first .. first+layers of the tape, one after the other. */
static qkv_status write_layers(const char *path, const qkv_tape *t, int first, int layers)
{
    if (!path) return QKV_OK;
    const qkv_tensor *x = qkv_tape_hidden(t, first);
    int64_t n = qkv_count(x);
    float *all = malloc(sizeof *all * (size_t)n * (size_t)(layers + 1));
    if (!all) return fail(QKV_MEMORY, "out of memory");
    for (int i = 0; i <= layers; i++) memcpy(all + i * n, qkv_data(qkv_tape_hidden(t, first + i)), sizeof *all * (size_t)n);
    const result r = { 3, { layers + 1, qkv_dim(x, 1), qkv_dim(x, 2) }, all };
    qkv_status status = write_result(path, &r, given.quiet);
    free(all);
    return status;
}

/* What a model has computed; NULL for what it does not have. */
typedef struct computed {
    qkv_tensor *encoded, *hidden, *logits, *classes;
} computed;

static bool writes_files(void)
{
    return given.logits || given.hidden || given.encoder || given.classes || given.hidden_all || given.encoder_all;
}

static qkv_status print_computed(const computed *x, const qkv_tokenizer *t)
{
    int64_t vocabulary = qkv_dim(x->logits, 2);
    if (x->encoded) print_shape(N_("encoder"), qkv_dim(x->encoded, 1), qkv_dim(x->encoded, 2));
    if (x->hidden) print_shape(N_("hidden"), qkv_dim(x->hidden, 1), qkv_dim(x->hidden, 2));
    if (x->logits) print_shape(N_("logits"), qkv_dim(x->logits, 1), vocabulary);
    if (x->classes) print_shape(N_("classes"), 1, qkv_dim(x->classes, 1));
    if (!x->logits) return QKV_OK;
    return print_likeliest(qkv_data(x->logits) + (qkv_dim(x->logits, 1) - 1) * vocabulary, vocabulary, t);
}

static qkv_status write_computed(const computed *x, const qkv_tape *t, const qkv_transformer_opts *o)
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
    const qkv_transformer *x = qkv_model_transformer(m);
    const qkv_transformer_opts *o = qkv_transformer_options(x);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1, .keep_hidden = given.hidden_all || given.encoder_all });
    computed c = { 0 };
    if (!t) return library_failed();
    if (source->is_there) c.encoded = qkv_transformer_encode_typed(x, t, source->ids, types, 1, source->n, NULL);
    if (target->is_there && !qkv_tape_status(t))
        c.hidden = qkv_transformer_decode(x, t, target->ids, 1, target->n, NULL, c.encoded, NULL);
    c.logits = qkv_transformer_logits(x, target->is_there ? c.hidden : c.encoded);
    if (o->classes) c.classes = qkv_transformer_classify(x, c.encoded, NULL);
    const qkv_tokenizer *names = target->is_there ? target->tokenizer : source->tokenizer;
    qkv_status status = qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status && writes_files()) status = write_computed(&c, t, o);
    else if (!status) status = print_computed(&c, names);
    qkv_tape_free(t);
    return status;
}

static qkv_status check_outputs(const qkv_transformer_opts *o)
{
    const char *files[] = { given.logits, given.hidden, given.encoder, given.classes, given.hidden_all, given.encoder_all };
    if ((given.encoder || given.encoder_all) && !o->encoder_layers)
        return fail(QKV_USAGE, "--encoder: %s has no encoder", given.model);
    if ((given.hidden || given.hidden_all) && !o->decoder_layers)
        return fail(QKV_USAGE, "--hidden: %s has no decoder: see --encoder", given.model);
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
    frame reads, writes;
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(m));
    side source = {
        "source", o->encoder_layers > 0, given.source, given.source_ids, qkv_model_source_tokenizer(m), o->vocabulary, NULL, 0
    };
    side target = { "target",
                    o->decoder_layers > 0,
                    given.target,
                    given.target_ids,
                    qkv_model_target_tokenizer(m),
                    o->target_vocabulary ? o->target_vocabulary : o->vocabulary,
                    NULL,
                    0 };
    side types = { .name = "type", .ids_text = given.type_ids, .vocabulary = o->token_types };
    qkv_status status = check_outputs(o);
    if (!status) status = find_frames(m, &source, &target, &reads, &writes);
    if (!status) status = read_side(&source, &reads);
    if (!status) status = read_types(&types, &source);
    if (!status) status = read_side(&target, &writes);
    if (!status) status = compute(m, &source, types.ids, &target);
    free(source.ids);
    free(types.ids);
    free(target.ids);
    qkv_model_free(m);
    return status;
}

const command forward_command = {
    .name = "forward",
    .summary = "run a model once and write its logits and hidden states",
    .about = "Runs a model on text or ids and writes what it computes as .npy files, to compare\n"
             "with other programs. Without files it prints the shapes and the likeliest tokens\n"
             "after the last one, each with its id, its probability and the token as \"qkv\n"
             "tokenize\" shows it.\n"
             "\n"
             "A model with encoder and decoder gets the source with " QKV_SPECIAL_END " at its end and the\n"
             "target with " QKV_SPECIAL_START " at its start, which is also the target where none is given; a\n"
             "published model gets what its own files say, such as " QKV_SPECIAL_BERT_START " and " QKV_SPECIAL_BERT_END
             ". --raw adds\n"
             "nothing, and ids are taken as they are. An encoder alone takes --source, a decoder\n"
             "alone --target.\n"
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
