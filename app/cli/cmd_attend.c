/* cmd_attend.c: qkv attend: what every head attends to, in the terminal or as files. */
#include "../term/read_text.h"

#include <qkv/unstable/util.h>
#include "../report/attention.h"
#include "../serve/serve.h"
#include "../draw/view.h"
#include "model.h"
#include "options.h"
#include "results.h"
#include "streams.h"
#include "../draw/print_maps.h"
#include "../term/print.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LAST_LAYER = -3 };

#define KIND_NAME(constant, name) name,
#define MEASURE_NAME(constant, member) #member,
static const char *const kind_names[] = { QKV_ATTENTION_LIST(KIND_NAME) NULL };
static const char *const measure_names[] = { QKV_HEAD_MEASURE_LIST(MEASURE_NAME) NULL };

static struct {
    const char *model, *text, *input, *target, *layer, *head, *out, *other;
    int kind, beam, by;
    bool no_special, pieces, rank, rollout, json, quiet;
} given;

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TOUCH_ROWS,
    { "text", .group = INPUT_GROUP, .value = "TEXT", .help = "input text", .plain = true, .may_be_empty = true,
      .text = &given.text },
    { "input", 'i', .group = INPUT_GROUP, .value = "FILE", .help = "read the text from FILE (default: standard input)",
      .text = &given.input },
    { "target", .is_rare = true, .group = INPUT_GROUP, .value = "TEXT",
      .help = "translation to look at (default: the model's own)", .may_be_empty = true, .text = &given.target },
    { "kind", .group = RESULT_GROUP, .value = "NAME", .help = " (default: cross for a translator)", .choice = &given.kind,
      .names = kind_names },
    { "layer", .group = RESULT_GROUP, .value = "L", .help = "layer number from 0, mean or all (default: the last)",
      .text = &given.layer },
    { "head", .group = RESULT_GROUP, .value = "H", .help = "head number from 0, mean or all (default: mean)",
      .text = &given.head },
    { "out", 'o', .group = RESULT_GROUP, .value = "FILE", .help = "write .png, .svg, .pdf, .html, .csv or .json",
      .text = &given.out },
    { "json", .group = RESULT_GROUP, .help = "print JSON instead of a heatmap or table", .flag = &given.json },
    { "no-special", .is_rare = true, .group = RESULT_GROUP, .help = "leave " QKV_SPECIAL_START " and " QKV_SPECIAL_END " out",
      .flag = &given.no_special },
    { "pieces", .is_rare = true, .group = RESULT_GROUP, .help = "show tokens that are parts of a character separately",
      .flag = &given.pieces },
    { "beam", 'b', .is_rare = true, .group = INPUT_GROUP, .value = "N", .help = "beam size (default: 4); 1 = greedy",
      .count = &given.beam },
    { "rollout", .is_rare = true, .group = RESULT_GROUP, .help = "attention rollout through all layers",
      .flag = &given.rollout },
    { "rank", .group = RESULT_GROUP, .help = "list all heads with measures: entropy, diagonality and others",
      .flag = &given.rank },
    { "by", .is_rare = true, .group = RESULT_GROUP, .value = "NAME", .help = "column to sort --rank by (default: entropy)",
      .choice = &given.by, .names = measure_names },
    { "diff", .is_rare = true, .group = RESULT_GROUP, .value = "DIR", .help = "subtract the attention of the model in DIR",
      .text = &given.other },
    { "quiet", .is_rare = true, .group = RESULT_GROUP, .help = "do not report the translation and files written",
      .flag = &given.quiet },
    { 0 },
};

typedef struct work {
    qkv_model *model, *other;
    qkv_buffer text; /* as it was read, when it was no argument */
    qkv_attention_capture *attended, *minus;
    qkv_attention_maps_opts choice;
    qkv_attention_maps maps;
} work;

/* ---- options ---- */

static bool path_ends_with(const char *path, const char *ending)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && !strcasecmp(dot + 1, ending);
}

static qkv_status check_out(void)
{
    static const char *const endings[] = { "png", "svg", "pdf", "html", "csv", "json", NULL };
    bool known = !given.out;
    for (int i = 0; endings[i]; i++) known = known || path_ends_with(given.out, endings[i]);
    if (!known) return fail(QKV_UNSUPPORTED, "--out %s: a file ends with .png, .svg, .pdf, .html, .csv or .json", given.out);
    return check_output(given.out);
}

static qkv_status read_place(const char *name, const char *text, int unless_given, int *out)
{
    char *end;
    *out = unless_given;
    if (!text) return QKV_OK;
    if (!strcmp(text, "mean")) return *out = QKV_ATTENTION_MEAN, QKV_OK;
    if (!strcmp(text, "all")) return *out = QKV_ATTENTION_EACH, QKV_OK;
    errno = 0;
    long number = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (number < 0 || number > INT_MAX || errno || *end)
        return fail(QKV_USAGE, "--%s \"%s\": give a number from 0, \"mean\" or \"all\"", name, text);
    return *out = (int)number, QKV_OK;
}

static qkv_status check_together(void)
{
    bool chosen = given.layer || given.head;
    if (given.text && given.input) return fail(QKV_USAGE, "a text and --input: choose one");
    if (given.rank && given.rollout) return fail(QKV_USAGE, "--rank and --rollout: choose one");
    if (given.rank && given.other) return fail(QKV_USAGE, "--rank and --diff: choose one");
    if (given.rank && chosen) return fail(QKV_USAGE, "--rank lists all heads: leave --layer and --head out");
    if (given.rank && given.out) return fail(QKV_USAGE, "--rank prints a table: leave --out out");
    if (was_given("by") && !given.rank) return fail(QKV_USAGE, "--by is the order of --rank, which is missing");
    if (given.rollout && chosen) return fail(QKV_USAGE, "--rollout goes through all layers and heads: leave them out");
    if (given.json && given.out) return fail(QKV_USAGE, "--json prints: for a file, --out FILE.json is enough");
    if (given.other && path_ends_with(given.out, "html"))
        return fail(QKV_USAGE, "--diff: a page shows one model: write a picture, .csv or .json");
    return QKV_OK;
}

static qkv_status resolve_target(work *w)
{
    qkv_status status = check_together();
    if (!status) status = check_out();
    if (!status) status = read_place("layer", given.layer, LAST_LAYER, &w->choice.layer);
    if (!status) status = read_place("head", given.head, QKV_ATTENTION_MEAN, &w->choice.head);
    w->choice.rollout = given.rollout;
    if (given.rollout) w->choice.layer = QKV_ATTENTION_MEAN;
    return status;
}

/* ---- models and text ---- */

static qkv_status check_same(const char *what, int64_t here, int64_t there)
{
    if (here == there) return QKV_OK;
    return fail(QKV_USAGE, "--diff: %s has %lld %s, %s has %lld: they cannot be compared", given.model, (long long)here,
                _(what), given.other, (long long)there);
}

static qkv_status load_work(work *w)
{
    qkv_status status = load_touched_model(given.model, 0, &w->model);
    if (!status && given.other) status = load_model(given.other, &w->other);
    if (status || !given.other) return status;
    qkv_config a = { .size = sizeof a }, b = a;
    qkv_model_config(w->model, &a);
    qkv_model_config(w->other, &b);
    status = check_same(N_("encoder layers"), a.encoder_layers, b.encoder_layers);
    if (!status) status = check_same(N_("decoder layers"), a.decoder_layers, b.decoder_layers);
    if (!status) status = check_same(N_("heads"), a.heads, b.heads);
    if (!status)
        status = check_same(N_("tokens"), qkv_tokenizer_vocab_size(qkv_model_tokenizer(w->model, QKV_SIDE_SOURCE)),
                            qkv_tokenizer_vocab_size(qkv_model_tokenizer(w->other, QKV_SIDE_SOURCE)));
    return status;
}

/* All of a file is one text. */
static qkv_status read_attended_text(work *w)
{
    if (!given.text) return qkv_text_read(given.input ? given.input : "-", 0, &w->text) ? library_failed() : QKV_OK;
    tell_if_file(given.text);
    return QKV_OK;
}

/* ---- attention ---- */

static qkv_status attend_text(const qkv_model *m, const work *w, const qkv_translation *found, qkv_attention_capture **out)
{
    const qkv_str text = given.text ? qkv_cstr(given.text) : (qkv_str){ w->text.data, w->text.length };
    const qkv_attend_opts opts = { .beam_size = given.beam,
                                   .target = qkv_cstr(given.target),
                                   .target_ids = found ? found->ids : NULL,
                                   .n_target_ids = found ? found->n_ids : 0,
                                   .split_characters = given.pieces,
                                   .no_special = given.no_special };
    return qkv_attend(m, text, &opts, out) ? library_failed() : QKV_OK;
}

static void choose_kind(work *w)
{
    const int *layers = w->attended->layers;
    bool both = layers[QKV_ATTENTION_CROSS] > 0;
    w->choice.kind = was_given("kind")                   ? (qkv_attention_kind)given.kind
                     : both && !given.rollout            ? QKV_ATTENTION_CROSS
                     : layers[QKV_ATTENTION_ENCODER] > 0 ? QKV_ATTENTION_ENCODER
                                                         : QKV_ATTENTION_DECODER;
    if (w->choice.layer == LAST_LAYER) w->choice.layer = layers[w->choice.kind] > 0 ? layers[w->choice.kind] - 1 : 0;
}

static qkv_status attend_all(work *w)
{
    qkv_status status = attend_text(w->model, w, NULL, &w->attended);
    if (status) return status;
    const qkv_translation *found = w->attended->found;
    if (found && !given.quiet)
        fprintf(stderr, _("qkv: attend: the translation is \"%s\", score %.6f\n"), found->text.data, found->score);
    if (!given.quiet) note_ngrams(w->model);
    choose_kind(w);
    return w->other ? attend_text(w->other, w, found, &w->minus) : QKV_OK;
}

/* ---- results ---- */

static qkv_status write_page(work *w)
{
    int kind = was_given("kind") ? given.kind : -1, layer = given.layer ? w->choice.layer : -1, head = w->choice.head;
    return qkv_explorer_write(given.out, w->model, w->attended, kind, layer < 0 ? -1 : layer, head < 0 ? -1 : head)
               ? library_failed()
               : QKV_OK;
}

/* Whose attention it is, for a line under a picture. */
static qkv_status tell_origin(const work *w, qkv_text **note)
{
    enum { COLUMNS = 200, ROOM = 2048 };
    const char *text = given.text ? given.text : w->text.data;
    char line[ROOM];
    const char *name = last_part(given.model);
    snprintf(line, sizeof line, "%.*s: %.*s", (int)fitting_bytes(name, COLUMNS), name, (int)fitting_bytes(text, COLUMNS), text);
    return qkv_utf8_repair(qkv_cstr(line), note);
}

static qkv_status print_maps(const qkv_attention_maps *maps)
{
    const qkv_screen_opts screen = this_screen();
    qkv_buffer text = { 0 };
    return print_text(given.json ? qkv_attention_maps_json(maps, &text) : qkv_attention_maps_text(maps, &screen, &text), &text);
}

static qkv_status show_attention_maps(work *w)
{
    w->choice.minus = w->minus;
    w->choice.minus_name = given.other;
    if (qkv_attention_maps_make(w->attended, &w->choice, &w->maps)) return library_failed();
    if (!given.out) return print_maps(&w->maps);
    qkv_text *note = NULL;
    bool failed = tell_origin(w, &note) || qkv_attention_maps_write(given.out, &w->maps, note->data);
    qkv_free(note);
    return failed ? library_failed() : QKV_OK;
}

static qkv_status print_ranks(const work *w)
{
    qkv_buffer text = { 0 };
    return print_text(qkv_attention_rank_text(w->attended, w->choice.kind, (qkv_head_measure)given.by, given.json, &text),
                      &text);
}

static qkv_status show_attention(work *w)
{
    if (given.rank) return print_ranks(w);
    qkv_status status = path_ends_with(given.out, "html") ? write_page(w) : show_attention_maps(w);
    if (!status && given.out && !given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    return status;
}

static void free_attended(work *w)
{
    qkv_attention_maps_free(&w->maps);
    qkv_free(w->attended);
    qkv_free(w->minus);
    qkv_buffer_free(&w->text);
    qkv_model_free(w->model);
    qkv_model_free(w->other);
}

static qkv_status run_attend(void)
{
    work w = { 0 };
    qkv_status status = resolve_target(&w);
    if (!status) status = load_work(&w);
    if (!status) status = read_attended_text(&w);
    if (!status) status = attend_all(&w);
    if (!status) status = show_attention(&w);
    free_attended(&w);
    return status;
}

const command attend_command = {
    .name = "attend",
    .summary = "show what attention heads attend to",
    .about = "Runs a model over a text, given as an argument, in --input or on standard input,\n"
             "and shows the weights of its attention: each row is a query, the token that\n"
             "attends, each column a key, the token that is attended to. Layers and heads\n"
             "count from 0.\n"
             "\n"
             "A translator translates the text as \"qkv translate\" does, unless --target gives\n"
             "the translation; a row of cross-attention is what the decoder attends to while\n"
             "it chooses that token. An encoder alone reads the text as \"qkv classify\" does.\n"
             "A language model reads the text, and --target after it.\n"
             "\n"
             "\"all\" gives one map a layer or head, in a picture as a grid. Tokens that only\n"
             "together make a character are joined: columns added, rows averaged. Without\n"
             "--out the map is drawn in the terminal. A .html file is the explorer of \"qkv\n"
             "serve\" with all that was attended to in it; --kind, --layer and --head leave\n"
             "the others out.\n"
             "\n"
             "--rollout multiplies the layers, each as the mean of its heads and what passes\n"
             "it by (Abnar and Zuidema 2020). --diff shows this model minus the other, on the\n"
             "same text and translation: red is more, blue is less.\n"
             "\n"
             "--rank has, as means over the queries: entropy (0 is one key only), diagonality\n"
             "(1 is the key at the query's own place in the text), and the weight on the first\n"
             "key and on the previous, same and next place.",
    .example = "  qkv attend -m model \"I love you\"\n"
               "  qkv attend -m model \"I love you\" --layer all --head all -o heads.png\n"
               "  qkv attend -m model \"I love you\" --rank --by diagonality",
    .options = options,
    .run = run_attend,
};
