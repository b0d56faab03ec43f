/* lesson_llama.c: lesson 18: what Llama 3.1 changed (rotary positions, grouped heads, RMSNorm, gated SiLU); what size costs. */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>

/* ---- rotary positions ---- */

enum { HEAD = 8, PLACES = 4, GAPS = 4 };
static const int places[PLACES] = { 0, 5, 50, 500 }, gaps[GAPS] = { 0, 1, 2, 8 };

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* q at one place and k at another, turned, and their product. */
static qkv_status rotary_score(qkv_tape *t, qkv_tensor *q, qkv_tensor *k, int32_t query_place, int32_t key_place, float *score)
{
    qkv_tensor *a = qkv_rope(q, &(qkv_rope_opts){ .positions = &query_place });
    qkv_tensor *b = qkv_rope(k, &(qkv_rope_opts){ .positions = &key_place });
    if (qkv_tape_status(t)) return library_failed();
    *score = (float)dot(qkv_tensor_data(a), qkv_tensor_data(b), HEAD);
    return QKV_OK;
}

static qkv_status show_rotary(qkv_tape *t)
{
    static const float q_data[HEAD] = { 1, 0.5f, -1, 2, 0.5f, 1, 0, -0.5f },
                       k_data[HEAD] = { 0.5f, 1, -0.5f, 1, 1, 0, 0.5f, -1 };
    static const int32_t first = 1;
    float scores[PLACES * GAPS];
    const float unit[2] = { 1, 0 };
    qkv_tensor *q = qkv_constant(t, QKV_SHAPE(1, 1, HEAD), q_data), *k = qkv_constant(t, QKV_SHAPE(1, 1, HEAD), k_data);
    qkv_tensor *turned = qkv_rope(qkv_constant(t, QKV_SHAPE(1, 1, 2), unit), &(qkv_rope_opts){ .positions = &first });
    qkv_status status = qkv_tape_status(t) ? library_failed() : QKV_OK;
    for (int i = 0; i < PLACES * GAPS && !status; i++)
        status = rotary_score(t, q, k, places[i / GAPS] + gaps[i % GAPS], places[i / GAPS], &scores[i]);
    if (status) return status;
    say_heading(_("RoPE: positions that turn"));
    say(_("The paper adds a position to the word. Llama adds nothing: it turns queries and keys. Each pair of numbers is a "
          "hand of "
          "a clock, turned by its place times a speed of its own. [1, 0] at place 1 and speed 1 becomes [%.4f, %.4f] = [cos 1, "
          "sin 1]. Scores q . k of a query at p + k and a key at p, for some places p and distances k:"),
        (double)qkv_tensor_data(turned)[0], (double)qkv_tensor_data(turned)[1]);
    show_numbers(scores, PLACES, GAPS, (labels){ .names = (const char *const[]){ "p = 0", "p = 5", "p = 50", "p = 500" } },
                 (labels){ .names = (const char *const[]){ "k = 0", "k = 1", "k = 2", "k = 8" } }, 4);
    say(_("A column does not change: turned by the same amount more, two vectors keep their angle. A score depends on the "
          "distance "
          "alone, in every layer, and there is no table that ends. Llama 3.1 turns slowly (base 500000) and slows the slowest "
          "hands 8 times more, so that 131072 places stay apart."));
    return QKV_OK;
}

/* ---- grouped heads ---- */

enum { BATCH = 1, TOKENS = 6, HEADS = 4, KV_HEADS = 2, D_K = 4 };

/* Key and value heads repeated for every query head that reads them: what grouping saves. */
static qkv_tensor *repeat_heads(qkv_tensor *x)
{
    qkv_tensor *parts[HEADS];
    for (int h = 0; h < HEADS; h++) {
        int group = h / (HEADS / KV_HEADS);
        parts[h] = qkv_slice(x, 1, group, group + 1);
    }
    return qkv_concat(HEADS, parts, 1);
}

static qkv_status show_grouped(qkv_tape *t)
{
    qkv_params *p = qkv_params_new(18);
    qkv_tensor *q = qkv_on(t, qkv_params_add(p, "q", QKV_SHAPE(BATCH, HEADS, TOKENS, D_K), QKV_INIT_NORMAL, 1));
    qkv_tensor *k = qkv_on(t, qkv_params_add(p, "k", QKV_SHAPE(BATCH, KV_HEADS, TOKENS, D_K), QKV_INIT_NORMAL, 1));
    qkv_tensor *v = qkv_on(t, qkv_params_add(p, "v", QKV_SHAPE(BATCH, KV_HEADS, TOKENS, D_K), QKV_INIT_NORMAL, 1));
    qkv_tensor *grouped = qkv_attention(q, k, v, QKV_CAUSAL, NULL);
    qkv_tensor *repeated = qkv_attention(q, repeat_heads(k), repeat_heads(v), QKV_CAUSAL, NULL);
    qkv_status status = qkv_params_status(p) || qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) {
        say_heading(_("Grouped heads: a smaller cache"));
        say(_("Every token that was read leaves a key and a value in every layer. In Llama 3.1 8B 32 query heads share 8 heads "
              "of "
              "keys and values, four each. With %d query heads and %d of keys and values here, the result equals the one with "
              "keys and values repeated: largest difference %.6f."),
            HEADS, KV_HEADS,
            largest_difference(qkv_tensor_data(grouped), qkv_tensor_data(repeated), qkv_tensor_count(grouped)));
        say(_("The cache of a token: 2 (key and value) x 32 layers x 8 heads x 128 numbers x 2 bytes = %d KiB. With 32 heads "
              "it "
              "would be %d KiB, and for a context of 131072 tokens %d GiB instead of %d."),
            2 * 32 * 8 * 128 * 2 / 1024, 2 * 32 * 32 * 128 * 2 / 1024, 512 / 8, 128 / 8);
    }
    qkv_tape_reset(t);
    qkv_params_free(p);
    return status;
}

/* ---- RMSNorm and gated SiLU ---- */

static qkv_status show_norm(qkv_tape *t)
{
    static const float heights[] = { 140, 150, 160, 170, 180 }, ones[] = { 1, 1, 1, 1, 1 };
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(1, 5), heights), *gain = qkv_constant(t, QKV_SHAPE(5), ones);
    qkv_tensor *rows[] = { qkv_layer_norm(x, gain, NULL, 1e-5f), qkv_rms_norm(x, gain, 1e-5f),
                           qkv_rms_norm(qkv_scale(x, 10), gain, 1e-5f) };
    qkv_tensor *all = qkv_concat(3, rows, 0);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("RMSNorm: only the length"));
    puts("    RMSNorm(x) = gain x / sqrt(mean(x^2) + eps)\n");
    say(_(
        "LayerNorm takes the mean away and divides by the spread. RMSNorm only divides by the size: no mean, no bias, one pass "
        "less. Of [140, 150, 160, 170, 180]:"));
    show_numbers(qkv_tensor_data(all), 3, 5,
                 (labels){ .names = (const char *const[]){ "LayerNorm", "RMSNorm", "RMSNorm(10 x)" } }, (labels){ 0 }, 4);
    say(_("Ten times the numbers give the same result: that is what keeps a deep stack in bounds. Llama norms before each "
          "sub-layer, x + Sublayer(RMSNorm(x)), and the residual connection stays untouched from bottom to top."));
    return QKV_OK;
}

static qkv_status show_gate(qkv_tape *t)
{
    static const float x[] = { -4, -1, 0, 1, 4 };
    qkv_tensor *in = qkv_constant(t, QKV_SHAPE(1, 5), x), *rows[] = { in, qkv_relu(in), qkv_silu(in) };
    qkv_tensor *all = qkv_concat(3, rows, 0);
    if (qkv_tape_status(t)) return library_failed();
    say_heading(_("Gated SiLU: a feed-forward with a valve"));
    puts("    FFN(x) = (silu(x W_g) * (x W_1)) W_2      silu(x) = x / (1 + exp(-x))\n");
    show_numbers(qkv_tensor_data(all), 3, 5, (labels){ .names = (const char *const[]){ "x", "ReLU", "SiLU" } }, (labels){ 0 },
                 4);
    say(_("SiLU is a ReLU with a soft corner. One product makes the numbers, another says of each how far it is let through. "
          "Three "
          "matrices instead of two, so d_ff is not 4 d but less: 14336 = 3.5 d in Llama 3.1 8B."));
    return QKV_OK;
}

/* ---- size ---- */

#define LLAMA(layers, width, query_heads, inner)                                                                          \
    {                                                                                                                     \
        .vocab_size = 128256, .decoder_layers = layers, .dim = width, .heads = query_heads, .kv_heads = 8, .d_ff = inner, \
        .untied = 1, .no_bias = 1, .pre_norm = 1, .norm = QKV_NORM_RMS, .activation = QKV_ACTIVATION_SWIGLU               \
    }

/* As published. */
/* clang-format off */
static const struct size {
    const char *name;
    qkv_config opts;
    double tokens; /* trained on; 0: not told */
} models[] = {
    { "Transformer base",
      { .vocab_size = 37000, .encoder_layers = 6, .decoder_layers = 6, .dim = 512, .heads = 8, .d_ff = 2048 }, 0 },
    { "Llama 3.1 8B", LLAMA(32, 4096, 32, 14336), 15e12 },
    { "Llama 3.1 70B", LLAMA(80, 8192, 64, 28672), 15e12 },
    { "Llama 3.1 405B", LLAMA(126, 16384, 128, 53248), 15.6e12 },
};
/* clang-format on */

/* The formulas against a model that is made: the 8B's shape, 64 times narrower and 2 layers deep. */
static qkv_status check_formula(double *counted, int64_t *made)
{
    qkv_config o = models[1].opts;
    o.vocab_size = 1000, o.decoder_layers = 2, o.dim /= 64, o.d_ff /= 64;
    qkv_model *m = qkv_model_new(&o, 1);
    qkv_status status = m ? QKV_OK : library_failed();
    *counted = count_weights(&o).total, *made = m ? qkv_model_get_info(m)->parameters : 0;
    qkv_model_free(m);
    return status;
}

static qkv_status show_sizes(void)
{
    double counted;
    int64_t made;
    qkv_status status = check_formula(&counted, &made);
    if (status) return status;
    say_heading(_("Size, and what it costs"));
    say(_("The same formulas as in lesson 11 count them (a small model of this shape has %lld weights, by formula %.0f). A "
          "token "
          "costs about 2 operations a weight to compute, and 6 to train on: once forward, twice backward."),
        (long long)made, counted);
    print_name("", 22, false);
    print_name(_("billions"), 10, true), print_name(_("GB, 16 bits"), 13, true), print_name(_("GFLOP a token"), 15, true);
    print_name(_("training FLOPs"), 16, true), putchar('\n');
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double n = count_weights(&models[i].opts).total;
        printf("    %-18s%10.3f%13.1f%15.1f", models[i].name, n / 1e9, 2 * n / 1e9, 2 * n / 1e9);
        if (models[i].tokens > 0) printf("%16.1e\n", 6 * n * models[i].tokens);
        else printf("%16s\n", "3.3e+18");
    }
    putchar('\n');
    say(_("(The base model's FLOPs are the paper's own.) From the paper to the 405B there are 7 years, %.0f times the weights "
          "and "
          "ten million times the training, and the formula in the middle is the same."),
        count_weights(&models[3].opts).total / count_weights(&models[0].opts).total);
    say(_("Generating reads all weights for every token, so its speed is memory divided by size: at 50 GB a second the 8B in "
          "16 "
          "bits cannot give more than %.1f tokens a second. That is why weights are kept in 8 or 4 bits, and why many users "
          "are served in one batch."),
        50e9 / (2 * count_weights(&models[1].opts).total));
    return QKV_OK;
}

static qkv_status run_llama_lesson(void)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!t) return library_failed();
    say(_(
        "Seven years after the paper Llama 3.1 is still the same machine: attention and feed-forward with residual connections "
        "around. It is a decoder alone, and four parts were exchanged. Each of them, computed:"));
    qkv_status status = show_rotary(t);
    if (!status) status = show_grouped(t);
    if (!status) status = show_norm(t);
    if (!status) status = show_gate(t);
    if (!status) status = show_sizes();
    qkv_tape_free(t);
    return status;
}

const lesson lesson_llama = {
    .name = "18",
    .title = N_("Llama 3.1's parts, and size"),
    .run = run_llama_lesson,
    .question = N_("With rotary positions, why are queries and keys turned, but values not?"),
    .answer = N_(
        "The place must be in the comparison, so that a score can depend on the distance; q . k is where the two turns "
        "meet and only their difference is left. A value is what is handed over. Turned by its place it would arrive "
        "differently from every distance, and nothing turns it back: the sum over keys would mix values in as many "
        "directions as there are places."),
};
