/* cmd_forward.c: qkv forward: one run of a model, its logits and hidden states into files, to compare with other programs. */
#include "options.h"
#include "results.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *source, *source_ids, *target, *target_ids, *logits, *hidden, *encoder;
    bool raw, quiet;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "the folder of the model", .required = true, .text = &given.model },
    { "source", .value = "TEXT", .help = "what the encoder reads", .text = &given.source },
    { "source-ids", .value = "IDS", .help = "the same as ids, such as 5,6,2", .text = &given.source_ids },
    { "target", .value = "TEXT", .help = "what the decoder reads", .text = &given.target },
    { "target-ids", .value = "IDS", .help = "the same as ids, such as 1,7,8", .text = &given.target_ids },
    { "raw", .help = "add no </s> to a source and no <s> to a target", .flag = &given.raw },
    { "logits", .value = "FILE", .help = "write the logits, (tokens, vocabulary), as .npy", .text = &given.logits },
    { "hidden", .value = "FILE", .help = "write the decoder's hidden states, (tokens, dim), as .npy", .text = &given.hidden },
    { "encoder", .value = "FILE", .help = "write the encoder's, (tokens, dim), as .npy", .text = &given.encoder },
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

static qkv_status read_ids(side *s)
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

static qkv_status take_special(side *s, const char *spelling)
{
    int32_t id = qkv_tokenizer_find(s->tokenizer, spelling);
    if (id < 0) return fail(QKV_USAGE, "the tokenizer of %s has no token %s: see --raw", given.model, spelling);
    return take_id(s, id);
}

static qkv_status read_text(side *s, bool starts, bool ends)
{
    qkv_ids ids = { 0 };
    qkv_status status = QKV_OK;
    if (!s->tokenizer) return fail(QKV_USAGE, "%s has no tokenizer: give --%s-ids", given.model, s->name);
    if (starts) status = take_special(s, "<s>");
    if (!status && s->text && qkv_tokenizer_encode(s->tokenizer, s->text, strlen(s->text), NULL, &ids))
        status = library_failed();
    for (size_t i = 0; i < ids.n && !status; i++) status = take_id(s, ids.ids[i]);
    if (!status && ends) status = take_special(s, "</s>");
    qkv_ids_free(&ids);
    return status;
}

/* is_pair: the model has an encoder and a decoder, which learned to see where a source ends and a target starts. */
static qkv_status read_side(side *s, bool is_pair, bool is_target)
{
    if (!s->is_there && (s->text || s->ids_text))
        return fail(QKV_USAGE, "%s has no %s: it takes no --%s", given.model, is_target ? "decoder" : "encoder", s->name);
    if (!s->is_there) return QKV_OK;
    if (s->text && s->ids_text) return fail(QKV_USAGE, "--%s and --%s-ids: choose one", s->name, s->name);
    if (s->ids_text) return read_ids(s);
    bool adds = is_pair && !given.raw;
    if (!s->text && !(adds && is_target && s->tokenizer)) /* a target may be nothing but its start */
        return fail(QKV_USAGE, "--%s or --%s-ids is missing", s->name, s->name);
    return read_text(s, adds && is_target, adds && !is_target);
}

/* ---- what comes out ---- */

enum { SHOWN = 5 };

/* The likeliest ids, best first; gives how many there are. */
static int find_likeliest(const float *logits, int64_t n, int64_t best[SHOWN])
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        int at = found < SHOWN ? found++ : SHOWN;
        for (; at > 0 && logits[i] > logits[best[at - 1]]; at--)
            if (at < SHOWN) best[at] = best[at - 1];
        if (at < SHOWN) best[at] = i;
    }
    return found;
}

static void print_likeliest(const float *logits, int64_t n, const qkv_tokenizer *t)
{
    int64_t best[SHOWN];
    double sum = 0;
    int found = find_likeliest(logits, n, best);
    float most = logits[best[0]];
    for (int64_t i = 0; i < n; i++) sum += exp((double)(logits[i] - most));
    puts("likeliest next");
    for (int k = 0; k < found; k++) {
        const char *token = t ? qkv_tokenizer_token(t, (int32_t)best[k]) : NULL;
        printf("%8lld  %.4f  %s\n", (long long)best[k], exp((double)(logits[best[k]] - most)) / sum, token ? token : "");
    }
}

static void print_shape(const char *name, const qkv_tensor *x)
{
    if (x) printf("%-8s (%lld, %lld)\n", name, (long long)qkv_dim(x, 1), (long long)qkv_dim(x, 2));
}

static qkv_status write_tensor(const char *path, const qkv_tensor *x)
{
    if (!path) return QKV_OK;
    result r = drop_dims(x, true, false);
    return write_result(path, &r, given.quiet);
}

static qkv_status report(const qkv_tensor *encoded, const qkv_tensor *hidden, const qkv_tensor *logits, const qkv_tokenizer *t)
{
    if (!given.logits && !given.hidden && !given.encoder) {
        int64_t vocabulary = qkv_dim(logits, 2);
        print_shape("encoder", encoded);
        print_shape("hidden", hidden);
        print_shape("logits", logits);
        print_likeliest(qkv_data(logits) + (qkv_dim(logits, 1) - 1) * vocabulary, vocabulary, t);
    }
    qkv_status status = write_tensor(given.encoder, encoded);
    if (!status) status = write_tensor(given.hidden, hidden);
    return status ? status : write_tensor(given.logits, logits);
}

/* ---- from options to the end ---- */

static qkv_status compute(const qkv_model *m, const side *source, const side *target)
{
    const qkv_transformer *x = qkv_model_transformer(m);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    qkv_tensor *encoded = NULL, *hidden = NULL;
    if (!t) return library_failed();
    if (source->is_there) encoded = qkv_transformer_encode(x, t, source->ids, 1, source->n, NULL);
    if (target->is_there && !qkv_tape_status(t))
        hidden = qkv_transformer_decode(x, t, target->ids, 1, target->n, NULL, encoded, NULL);
    qkv_tensor *logits = qkv_transformer_logits(x, target->is_there ? hidden : encoded);
    const qkv_tokenizer *names = target->is_there ? target->tokenizer : source->tokenizer;
    qkv_status status = logits ? report(encoded, hidden, logits, names) : (qkv_tape_status(t), library_failed());
    qkv_tape_free(t);
    return status;
}

static qkv_status check_outputs(const side *source, const side *target)
{
    if (given.encoder && !source->is_there) return fail(QKV_USAGE, "--encoder: %s has no encoder", given.model);
    if (given.hidden && !target->is_there) return fail(QKV_USAGE, "--hidden: %s has no decoder: see --encoder", given.model);
    qkv_status status = check_folder(given.logits);
    if (!status) status = check_folder(given.hidden);
    return status ? status : check_folder(given.encoder);
}

static qkv_status run(void)
{
    qkv_model *m = qkv_model_load(given.model);
    if (!m) return library_failed();
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
    bool is_pair = source.is_there && target.is_there;
    qkv_status status = check_outputs(&source, &target);
    if (!status) status = read_side(&source, is_pair, false);
    if (!status) status = read_side(&target, is_pair, true);
    if (!status) status = compute(m, &source, &target);
    free(source.ids);
    free(target.ids);
    qkv_model_free(m);
    return status;
}

const command forward_command = {
    .name = "forward",
    .summary = "run a model once and write its logits and hidden states",
    .about = "Runs a model on text or ids and writes what it computes as .npy files, to compare\n"
             "with other programs. Without files it prints the shapes and the likeliest tokens\n"
             "after the last one.\n"
             "\n"
             "A model with encoder and decoder gets the source with </s> at its end and the\n"
             "target with <s> at its start, which is also the target where none is given;\n"
             "--raw adds neither, and ids are taken as they are. An encoder alone takes\n"
             "--source, a decoder alone --target.",
    .example = "  qkv forward -m models/en-zh --source \"I love you\" --logits logits.npy --encoder memory.npy",
    .options = options,
    .run = run,
};
