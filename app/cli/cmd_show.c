/* cmd_show.c: qkv show: whole models, tables of positions, the flow of attention, the curves of a training, arrays. */
#include "../report/arrays.h"
#include "../report/results.h"
#include "../draw/view.h"
#include "../draw/print_maps.h"
#include "../term/print.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *out, *model, *preset, *input, *index, *word;
    value_list runs;
    int d, n, d_model, heads, d_k, d_v, tokens, memory, batch, colours, side, vocabulary;
    int dim, heads_of_model, d_ff, layers, length;
    bool log_x, log_y, compare;
} given = { .d = 128, .n = 50, .d_model = 512, .heads = 8, .tokens = 10, .vocabulary = 37000 };

#define OUT_OPTION                                                                                     \
    {                                                                                                  \
        "out", 'o', .value = "FILE", .help = "write a picture: .png, .svg or .pdf", .text = &given.out \
    }

/* A picture where a file is named, else blocks in the terminal. */
static qkv_status show_map(const float *values, const qkv_heatmap_opts *o)
{
    if (given.out) {
        const qkv_heatmap map = { .values = values };
        return qkv_picture_heatmaps(given.out, &map, 1, o) ? library_failed() : QKV_OK;
    }
    return print_map(values, o);
}

/* ---- a whole model ---- */

static const char *const preset_names[] = { "tiny", "small", "base", "big", NULL };

static const option model_options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .text = &given.model },
    { "preset", .value = "NAME", .help = "or a preset: tiny, small, base or big (table 3 of the paper)", .text = &given.preset,
      .names = preset_names },
    { "vocabulary", .is_rare = true, .value = "N", .help = "vocabulary size of a preset (default: 37000)",
      .count = &given.vocabulary },
    { "dim", .value = "N", .help = "d_model, instead of the preset's", .count = &given.dim },
    { "heads", .value = "N", .help = "heads, instead of the preset's", .count = &given.heads_of_model },
    { "d-ff", .value = "N", .help = "width of the feed-forward network, instead of the preset's", .count = &given.d_ff },
    { "layers", .value = "N", .help = "layers of encoder and of decoder, instead of the preset's", .count = &given.layers },
    { "tokens", .value = "N", .help = "length of source and target (default: the letters S and T)", .count = &given.length },
    OUT_OPTION,
    { 0 },
};

static qkv_status show_architecture(const qkv_config *o, const char *name)
{
    const qkv_model_drawing_opts opts = { .size = sizeof opts, .title = name, .tokens = given.length };
    qkv_buffer text = { 0 };
    if (given.out) return qkv_picture_model(given.out, o, &opts) ? library_failed() : QKV_OK;
    return print_text(qkv_model_drawing_text(o, &opts, &text), &text);
}

/* A preset with the sizes that were given; "base" when there are sizes alone. */
static qkv_status show_preset(void)
{
    const char *preset = given.preset ? given.preset : "base";
    bool is_changed = given.dim || given.heads_of_model || given.d_ff || given.layers;
    char title[64] = "Transformer";
    qkv_config o = { 0 };
    if (qkv_config_preset(preset, given.vocabulary, &o)) return library_failed();
    if (given.dim) o.dim = given.dim;
    if (given.heads_of_model) o.heads = given.heads_of_model;
    if (given.d_ff) o.d_ff = given.d_ff;
    if (given.layers) o.encoder_layers = o.decoder_layers = given.layers;
    if (o.dim % o.heads)
        return fail(QKV_USAGE, "--dim %lld is not a multiple of --heads %lld", (long long)o.dim, (long long)o.heads);
    if (!is_changed) snprintf(title, sizeof title, "Transformer, %.40s", preset);
    return show_architecture(&o, title);
}

static qkv_status run_model(void)
{
    bool has_sizes = given.dim || given.heads_of_model || given.d_ff || given.layers;
    if (given.model && (given.preset || has_sizes || was_given("vocabulary")))
        return fail(QKV_USAGE, "--model has its own sizes: leave --preset, --vocabulary and sizes out");
    if (!given.model && !given.preset && !has_sizes)
        return fail(QKV_USAGE, "give --model DIR, --preset NAME, or sizes such as --dim 4 --heads 2 --d-ff 16");
    if (!given.model) return show_preset();
    qkv_model *m = qkv_model_load(given.model, NULL);
    if (!m) return library_failed();
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    qkv_status status = show_architecture(&o, last_part(given.model));
    qkv_model_free(m);
    return status;
}

const command show_model_command = {
    .name = "show model",
    .summary = "draw a Transformer with all shapes and parameters",
    .about = "Draws a model as figure 1 of the paper does: embeddings and positions, a layer of the\n"
             "encoder and of the decoder and how often each is repeated, the three attentions,\n"
             "masks, residual connections, norms where they are, the output layer and what is\n"
             "tied, each with its shape and how many weights it has. An encoder or a decoder\n"
             "alone too. Without --out it is printed.",
    .example = "  qkv show model --preset base -o transformer.svg\n  qkv show model -m models/en-zh\n"
               "  qkv show model --dim 4 --heads 2 --d-ff 16 --vocabulary 1000 --tokens 2",
    .options = model_options,
    .run = run_model,
};

/* ---- positions ---- */

enum { ANY_SIDE, ENCODER_SIDE, DECODER_SIDE };
static const char *const sides[] = { "any", "encoder", "decoder", NULL };

static const option positions_options[] = {
    { "d", .value = "N", .help = "width of an encoding (default: 128)", .count = &given.d },
    { "n", .value = "N", .help = "positions (default: 50; all of a learned table)", .count = &given.n },
    { "model", 'm', .value = "DIR", .help = "show the positions of this model", .text = &given.model },
    { "word", .value = "NUMBERS", .help = "embedding such as \"1 0.5 0.8 0.3\": print its sum with each position",
      .text = &given.word },
    { "side", .is_rare = true, .value = "SIDE", .help = "learned table of the encoder or decoder", .choice = &given.side,
      .names = sides },
    OUT_OPTION,
    { 0 },
};

static qkv_status show_positions(const float *values, int64_t n, int64_t d, const char *what)
{
    char title[256];
    snprintf(title, sizeof title, _("%s: %lld positions, d = %lld"), what, (long long)n, (long long)d);
    return show_map(values, &(qkv_heatmap_opts){ .rows = n,
                                                 .columns = d,
                                                 .row_axis = _("position"),
                                                 .column_axis = _("dimension"),
                                                 .title = title,
                                                 .colours = QKV_COLOURS_RED_BLUE });
}

static qkv_status check_shown(int64_t n, int64_t d)
{
    if (d <= QKV_PICTURE_SIDE && n <= QKV_PICTURE_SIDE) return QKV_OK;
    return fail(QKV_LIMIT, "%lld positions of %lld numbers: at most %d of each can be shown", (long long)n, (long long)d,
                QKV_PICTURE_SIDE);
}

static qkv_status show_sinusoid(int64_t n, int64_t d)
{
    qkv_status status = check_shown(n, d);
    if (status) return status;
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *pe = t ? qkv_sinusoid(t, 0, n, d, QKV_POSITION_SINUSOID) : NULL;
    const float *values = pe ? qkv_tensor_data(pe) : NULL;
    status = values ? show_positions(values, n, d, _("Sinusoidal positions")) : library_failed();
    if (!status && !given.out && d > 2)
        printf("%s\n", _("Left columns change at every position, right columns slowly. Position 0 is at the top."));
    qkv_tape_free(t);
    return status;
}

/* An embedding as it enters the first layer at each position: word + PE(pos). */
static qkv_status show_word(int64_t n)
{
    qkv_array word = { 0 };
    if (qkv_array_read(given.word, &word)) return library_failed();
    int64_t d = 1;
    for (int i = 0; i < word.ndim; i++) d *= word.shape[i];
    bool is_row = word.ndim == 1 || (word.ndim == 2 && word.shape[0] == 1);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_status status = is_row ? QKV_OK : fail(QKV_USAGE, "--word: give one row of numbers, such as \"1 0.5 0.8 0.3\"");
    if (!status) status = check_shown(n, d);
    if (!status) {
        qkv_tensor *x = qkv_add(qkv_sinusoid(t, 0, n, d, QKV_POSITION_SINUSOID), qkv_constant(t, QKV_SHAPE(1, d), word.data));
        if (qkv_tape_status(t)) status = library_failed();
        else
            print_table(&(table){ .values = qkv_tensor_data(x), .rows = n, .columns = d, .row.prefix = "pos ", .decimals = 4 });
    }
    qkv_tape_free(t);
    qkv_array_free(&word);
    return status;
}

static qkv_status show_model_positions(qkv_model *m)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    bool is_learned = o.positions == QKV_POSITION_LEARNED;
    bool of_decoder = given.side == DECODER_SIDE || (given.side == ANY_SIDE && !o.encoder_layers);
    const char *learned = of_decoder ? _("Learned positions of the decoder") : _("Learned positions of the encoder");
    qkv_array rows = { 0 };
    if (!is_learned && given.side != ANY_SIDE)
        return fail(QKV_USAGE, "--side is for learned positions, which %s does not have", given.model);
    qkv_status status = is_learned ? QKV_OK : check_shown(given.n, o.dim);
    if (status) return status;
    if (qkv_model_positions(m, of_decoder ? QKV_SIDE_TARGET : QKV_SIDE_SOURCE, was_given("n") ? given.n : 0, &rows))
        return library_failed();
    status = show_positions(rows.data, rows.shape[0], rows.shape[1], is_learned ? learned : _("Sinusoidal positions"));
    qkv_array_free(&rows);
    return status;
}

static qkv_status run_positions(void)
{
    if (!given.model) {
        if (was_given("side")) return fail(QKV_USAGE, "--side is for a model: give it with --model");
        if (given.word && (given.out || was_given("d"))) return fail(QKV_USAGE, "--word: its length is d, and it is printed");
        return given.word ? show_word(given.n) : show_sinusoid(given.n, given.d);
    }
    if (given.word) return fail(QKV_USAGE, "--word and --model: choose one");
    if (was_given("d")) return fail(QKV_USAGE, "--d and --model: the model says how many numbers a position has");
    qkv_model *m = qkv_model_load(given.model, NULL);
    if (!m) return library_failed();
    qkv_status status = show_model_positions(m);
    qkv_model_free(m);
    return status;
}

const command show_positions_command = {
    .name = "show positions",
    .summary = "draw positional encodings",
    .about = "Draws what is added to the embedding of a token for its place: a row for each\n"
             "position, a column for each dimension, blue for negative and red for positive\n"
             "numbers. Without a model these are the paper's sinusoids,\n"
             "PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos(the same).\n"
             "\n"
             "Columns on the left change from one position to the next; those on the right hardly\n"
             "change. Position 0 is at the top. (matplotlib's pcolormesh has it at the bottom,\n"
             "and its RdBu has red for negative numbers.)\n"
             "\n"
             "Without --out they are shown as blocks in the terminal, coloured unless NO_COLOR\n"
             "is set.",
    .example = "  qkv show positions --d 512 --n 50 -o pe.png\n"
               "  qkv show positions --n 5 --word \"1 0.5 0.8 0.3\"",
    .options = positions_options,
    .run = run_positions,
};

/* ---- flow ---- */

static const option flow_options[] = {
    { "d-model", .value = "N", .help = "width of a token, d_model (default: 512)", .count = &given.d_model },
    { "heads", .value = "N", .help = "heads (default: 8)", .count = &given.heads },
    { "d-k", .is_rare = true, .value = "N", .help = "width of queries and keys per head (default: d-model / heads)",
      .count = &given.d_k },
    { "d-v", .is_rare = true, .value = "N", .help = "width of values per head (default: --d-k)", .count = &given.d_v },
    { "tokens", .value = "N", .help = "number of tokens (default: 10)", .count = &given.tokens },
    { "memory", .is_rare = true, .value = "N", .help = "tokens of another text to attend to (cross-attention)",
      .count = &given.memory },
    { "batch", .is_rare = true, .value = "N", .help = "batch size, the first number of every shape", .count = &given.batch },
    { "compare", .help = "compare with one head of the same width", .flag = &given.compare },
    OUT_OPTION,
    { 0 },
};

static qkv_status run_flow(void)
{
    if (!given.d_k && given.d_model % given.heads)
        return fail(QKV_USAGE, "--d-model %d does not divide by --heads %d: give --d-k", given.d_model, given.heads);
    qkv_flow f = { .tokens = given.tokens, .dim = given.d_model, .heads = given.heads, .memory = given.memory };
    f.d_k = given.d_k ? given.d_k : given.d_model / given.heads;
    f.d_v = given.d_v ? given.d_v : f.d_k;
    const qkv_flow one = {
        .tokens = f.tokens, .dim = f.dim, .heads = 1, .memory = f.memory, .d_k = f.heads * f.d_k, .d_v = f.heads * f.d_v
    };
    const qkv_flow both[] = { given.compare ? one : f, f };
    const qkv_flow_opts opts = { .mask = 1, .batch = given.batch };
    int64_t n = given.compare ? 2 : 1;
    if (given.out) return qkv_picture_flows(given.out, both, n, &opts) ? library_failed() : QKV_OK;
    qkv_buffer text = { 0 };
    return print_text(qkv_flows_text(both, n, &opts, &text), &text);
}

const command show_flow_command = {
    .name = "show flow",
    .summary = "draw the steps of attention with all shapes",
    .about = "Draws attention as boxes and arrows: X, the projections W_Q, W_K and W_V, the\n"
             "split into heads, the scores, scaling, the mask, softmax, the sum of the values,\n"
             "concat and W_O, with the shape of what goes from box to box. --d-k and --d-v are\n"
             "those of one head. Without --out the same is printed as a table.",
    .example = "  qkv show flow --d-model 4 --heads 2 --d-k 4 --d-v 8 --tokens 3 \\\n"
               "    -o flow.svg",
    .options = flow_options,
    .run = run_flow,
};

/* ---- curve ---- */

static const option curve_options[] = {
    { "input", 'i', .value = "DIR..", .help = "training folders, or their log.jsonl", .required = true, .plain = true,
      .list = &given.runs },
    { "model", 'm', .value = "DIR..", .help = "the same as --input", .list = &given.runs },
    { "log-x", .help = "logarithmic axis of steps", .flag = &given.log_x },
    { "log-y", .help = "logarithmic axis of losses", .flag = &given.log_y },
    OUT_OPTION,
    { 0 },
};

static qkv_status run_curve(void)
{
    const char *const *folders = (const char *const *)given.runs.at;
    const qkv_curve_opts o = { .log_x = given.log_x, .log_y = given.log_y };
    qkv_buffer text = { 0 };
    if (given.out) return qkv_picture_trainings(given.out, folders, given.runs.n, &o) ? library_failed() : QKV_OK;
    return print_text(qkv_trainings_curves_text(folders, given.runs.n, &o, &text), &text);
}

const command show_curve_command = {
    .name = "show curve",
    .summary = "draw the loss curve of a training",
    .about = "Draws the training loss and the validation loss over the steps, from the log.jsonl\n"
             "that \"qkv train\" keeps in its folder; also while it still runs; of several\n"
             "trainings over one pair of axes. Without --out they are printed as bars.",
    .example = "  qkv show curve models/en-zh -o loss.png",
    .options = curve_options,
    .run = run_curve,
};

/* ---- array ---- */

enum { COLOURS_AUTO, COLOURS_VIRIDIS, COLOURS_RED_BLUE };
static const char *const colour_names[] = { "auto", "viridis", "red-blue", NULL };

static const option array_options[] = {
    { "input", 'i', .value = "FILE", .help = "array: .npy, rows of numbers, or typed", .required = true, .plain = true,
      .text = &given.input },
    { "index", .value = "I,J,..", .help = "slice of an array with more than 2 dimensions, from 0", .text = &given.index },
    { "colours", .value = "COLOURS", .help = "viridis or red-blue (default: red-blue for negative numbers, else viridis)",
      .choice = &given.colours, .names = colour_names },
    OUT_OPTION,
    { 0 },
};

static bool has_negative(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (values[i] < 0) return true;
    return false;
}

static qkv_status show_slice(const qkv_array *a)
{
    int64_t shape[2];
    char title[1024];
    const float *values = qkv_array_matrix(a, given.index, given.input, shape);
    if (!values) return library_failed();
    const char *slash = strrchr(given.input, '/');
    snprintf(title, sizeof title, "%.800s%s%.100s%s", slash ? slash + 1 : given.input, given.index ? " [" : "",
             given.index ? given.index : "", given.index ? "]" : "");
    qkv_heatmap_opts o = { .rows = shape[0], .columns = shape[1], .title = title };
    bool is_signed = given.colours == COLOURS_AUTO ? has_negative(values, shape[0] * shape[1])
                                                   : given.colours == COLOURS_RED_BLUE;
    o.colours = is_signed ? QKV_COLOURS_RED_BLUE : QKV_COLOURS_VIRIDIS;
    return show_map(values, &o);
}

static qkv_status run_array(void)
{
    qkv_array a = { 0 };
    if (qkv_array_read(given.input, &a)) return library_failed();
    qkv_status status = show_slice(&a);
    qkv_array_free(&a);
    return status;
}

const command show_array_command = {
    .name = "show array",
    .summary = "draw an array as a heatmap",
    .about = "Draws an array of 1 or 2 dimensions, or a slice of one with more: --index gives a\n"
             "number for each dimension but the last two. Numbers that are not finite are grey.\n"
             "\n"
             "Without --out it is shown as blocks in the terminal, coloured unless NO_COLOR is\n"
             "set.",
    .example = "  qkv show array weights.npy --index 0,3 -o weights.png",
    .options = array_options,
    .run = run_array,
};
