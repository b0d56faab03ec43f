/* test_exporting.c: what stands in the way of saving a model as one of a published family, one difference at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"

#include <string.h>

static const qkv_config bert = { .vocab_size = 11,
                                 .encoder_layers = 1,
                                 .dim = 8,
                                 .heads = 2,
                                 .d_ff = 12,
                                 .positions = QKV_POSITION_LEARNED,
                                 .max_positions = 9,
                                 .activation = QKV_ACTIVATION_GELU,
                                 .norm_eps = 1e-12f,
                                 .embed_norm = 1,
                                 .unscaled = 1,
                                 .token_types = 2 };
static const qkv_config gpt2 = { .vocab_size = 11,
                                 .decoder_layers = 1,
                                 .dim = 8,
                                 .heads = 2,
                                 .d_ff = 12,
                                 .positions = QKV_POSITION_LEARNED,
                                 .max_positions = 9,
                                 .pre_norm = 1,
                                 .unscaled = 1 };
static const qkv_config llama = { .vocab_size = 11,
                                  .decoder_layers = 1,
                                  .dim = 8,
                                  .heads = 2,
                                  .d_ff = 12,
                                  .positions = QKV_POSITION_ROPE,
                                  .pre_norm = 1,
                                  .norm = QKV_NORM_RMS,
                                  .unscaled = 1,
                                  .no_bias = 1,
                                  .activation = QKV_ACTIVATION_SWIGLU };
static const qkv_config marian = { .vocab_size = 11,
                                   .encoder_layers = 1,
                                   .decoder_layers = 1,
                                   .dim = 8,
                                   .heads = 2,
                                   .d_ff = 12,
                                   .positions = QKV_POSITION_SINUSOID_HALVES };

static const qkv_config modernbert = { .vocab_size = 11,
                                       .encoder_layers = 1,
                                       .dim = 8,
                                       .heads = 2,
                                       .d_ff = 12,
                                       .positions = QKV_POSITION_ROPE,
                                       .pre_norm = 1,
                                       .no_first_norm = 1,
                                       .no_norm_bias = 1,
                                       .embed_norm = 1,
                                       .unscaled = 1,
                                       .no_bias = 1,
                                       .activation = QKV_ACTIVATION_GEGLU };

/* NULL: nothing does. */
static void expect(const char *family, const qkv_config *o, const char *wanted)
{
    const char *said = qkv__family_find(family)->missing(o);
    if (!wanted != !said || (said && wanted && !strstr(said, wanted)))
        fail_msg("%s: %s, expected %s", family, said ? said : "nothing", wanted ? wanted : "nothing");
}

/* The options `base` of a family, but with one change. */
#define DIFFERS(family, base, change, wanted) \
    do {                                      \
        qkv_config o = base;                  \
        change;                               \
        expect(family, &o, wanted);           \
    } while (0)

static void encoders(void **state)
{
    (void)state;
    expect("bert", &bert, NULL);
    DIFFERS("bert", bert, o.encoder_layers = 0, "an encoder alone");
    DIFFERS("bert", bert, o.decoder_layers = 1, "an encoder alone");
    DIFFERS("bert", bert, o.positions = QKV_POSITION_ROPE, "positions are learned");
    DIFFERS("bert", bert, o.pre_norm = 1, "after each sub-layer");
    DIFFERS("bert", bert, o.norm = QKV_NORM_RMS, "layer norms");
    DIFFERS("bert", bert, o.embed_norm = 0, "embed_norm");
    DIFFERS("bert", bert, o.unscaled = 0, "not scaled");
    DIFFERS("bert", bert, o.no_bias = 1, "have biases");
    DIFFERS("bert", bert, o.activation = QKV_ACTIVATION_SWIGLU, "no gate");
    DIFFERS("bert", bert, o.kv_heads = 1, "heads are alike");
    DIFFERS("bert", bert, o.kv_heads = 2, NULL);
    DIFFERS("bert", bert, o.d_k = 3, "heads are alike");
    DIFFERS("bert", bert, o.d_k = 4, NULL);
    DIFFERS("bert", bert, o.head = 1, "come together");
    DIFFERS("bert", bert, o.output_bias = 1, "come together");
    DIFFERS("bert", bert, (o.head = 1, o.output_bias = 1), NULL);
    DIFFERS("bert", bert, o.untied = 1, "output layer is the embedding");
    DIFFERS("bert", bert, (o.untied = 1, o.head = 1, o.output_bias = 1), NULL);
    DIFFERS("bert", bert, (o.classes = 2, o.pooler = QKV_POOLER_TANH), "reads the first token");
    DIFFERS("bert", bert, (o.classes = 2, o.pooler = QKV_POOLER_TANH, o.pooling = QKV_POOLING_FIRST), NULL);
    DIFFERS("bert", bert, (o.classes = 2, o.pooling = QKV_POOLING_FIRST), "a tanh");
    DIFFERS("bert", bert, o.pooler = QKV_POOLER_RELU, "a tanh");
    DIFFERS("bert", bert, o.first_position = 1, "first position is 0");
    DIFFERS("bert", bert, o.token_types = 0, "have types");

    DIFFERS("roberta", bert, o.first_position = 2, NULL);
    DIFFERS("roberta", bert, (o.first_position = 2, o.pre_norm = 1), "after each sub-layer");
    expect("roberta", &bert, "after the padding's");
    DIFFERS("roberta", bert, (o.first_position = 2, o.token_types = 0), "have types");
    DIFFERS("roberta", bert, (o.first_position = 2, o.activation = QKV_ACTIVATION_RELU), NULL);
    DIFFERS("roberta", bert, (o.first_position = 2, o.head = 1, o.output_bias = 1, o.activation = QKV_ACTIVATION_RELU),
            "is gelu");
    DIFFERS("roberta", bert, (o.first_position = 2, o.head = 1, o.output_bias = 1), NULL);
    DIFFERS("roberta", bert, (o.first_position = 2, o.pooler = QKV_POOLER_RELU), "a tanh");
    DIFFERS("roberta", bert, (o.first_position = 2, o.classes = 2, o.pooling = QKV_POOLING_FIRST), "a tanh");

    DIFFERS("distilbert", bert, o.token_types = 0, NULL);
    DIFFERS("distilbert", bert, (o.token_types = 0, o.pre_norm = 1), "after each sub-layer");
    expect("distilbert", &bert, "no types");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.first_position = 1), "first position is 0");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.norm_eps = 1e-5f), "1e-12");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.pooler = QKV_POOLER_TANH), "a ReLU before a classifier");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.pooler = QKV_POOLER_RELU), "a ReLU before a classifier");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.classes = 2, o.pooling = QKV_POOLING_FIRST),
            "a ReLU before a classifier");
    DIFFERS("distilbert", bert, (o.token_types = 0, o.classes = 2, o.pooling = QKV_POOLING_FIRST, o.pooler = QKV_POOLER_RELU),
            NULL);
}

static void modern_encoders(void **state)
{
    (void)state;
    const char *family = "modernbert";
    qkv_config filler = modernbert, classifier = modernbert;
    filler.head = filler.no_head_bias = filler.output_bias = 1;
    classifier.head = 1, classifier.classes = 2, classifier.pooler = QKV_POOLER_HEAD;
    expect(family, &modernbert, NULL);
    expect(family, &filler, NULL);
    expect(family, &classifier, NULL);
    DIFFERS(family, modernbert, o.encoder_layers = 0, "an encoder alone");
    DIFFERS(family, modernbert, o.decoder_layers = 1, "an encoder alone");
    DIFFERS(family, modernbert, o.positions = QKV_POSITION_LEARNED, "are rotary");
    DIFFERS(family, modernbert, o.rope_factor = 8, "not scaled");
    DIFFERS(family, modernbert, o.pre_norm = 0, "but the first");
    DIFFERS(family, modernbert, o.no_first_norm = 0, "but the first");
    DIFFERS(family, modernbert, o.norm = QKV_NORM_RMS, "layer norms");
    DIFFERS(family, modernbert, o.embed_norm = 0, "embed_norm");
    DIFFERS(family, modernbert, o.unscaled = 0, "not scaled");
    DIFFERS(family, modernbert, o.activation = QKV_ACTIVATION_GELU, "a gate");
    DIFFERS(family, modernbert, o.activation = QKV_ACTIVATION_SWIGLU, NULL);
    DIFFERS(family, modernbert, o.kv_heads = 1, "heads are alike");
    DIFFERS(family, modernbert, o.d_k = 3, "heads are alike");
    DIFFERS(family, modernbert, (o.kv_heads = 2, o.d_k = 4), NULL);
    DIFFERS(family, modernbert, o.qkv_bias = 1, "no bias of their own");
    DIFFERS(family, modernbert, o.no_bias = 0, NULL);
    DIFFERS(family, modernbert, o.no_norm_bias = 0, NULL);
    DIFFERS(family, modernbert, o.token_types = 2, "no types");
    DIFFERS(family, modernbert, o.output_bias = 1, "comes with a head");
    DIFFERS(family, modernbert, o.untied = 1, "comes with a head");
    DIFFERS(family, modernbert, o.pooler = QKV_POOLER_TANH, "no pooler");
    DIFFERS(family, modernbert, (o.window_size = 3, o.global_every = 3, o.window_rope_base = 50), NULL);
    DIFFERS(family, filler, o.untied = 1, NULL);
    DIFFERS(family, classifier, o.pooler = QKV_POOLER_NONE, "reads its head");
    DIFFERS(family, classifier, o.pooling = QKV_POOLING_FIRST, NULL);
    DIFFERS(family, classifier, o.pooling = QKV_POOLING_LAST, "the mean or the first");

    /* and what it has differs from the others */
    DIFFERS("bert", bert, o.activation = QKV_ACTIVATION_GEGLU, "no gate");
    DIFFERS("bert", bert, o.no_norm_bias = 1, "norms have biases");
    DIFFERS("bert", bert, o.no_head_bias = 1, NULL); /* there is no head */
    DIFFERS("bert", bert, (o.head = 1, o.output_bias = 1, o.no_head_bias = 1), "head has a bias");
    DIFFERS("bert", bert, (o.head = 1, o.output_bias = 1, o.pooler = QKV_POOLER_HEAD), "does not read its head");
    DIFFERS("gpt2", gpt2, o.no_first_norm = 1, "first layer has a norm");
    DIFFERS("gpt2", gpt2, o.no_norm_bias = 1, "norms have biases");
    DIFFERS("llama", llama, o.no_first_norm = 1, "first layer has a norm");
    DIFFERS("llama", llama, o.no_norm_bias = 1, NULL); /* RMS norms have none */
    DIFFERS("marian", marian, o.no_norm_bias = 1, "norms have biases");
}

static void decoders(void **state)
{
    (void)state;
    expect("gpt2", &gpt2, NULL);
    DIFFERS("gpt2", gpt2, o.decoder_layers = 0, "a decoder alone");
    DIFFERS("gpt2", gpt2, o.encoder_layers = 1, "a decoder alone");
    DIFFERS("gpt2", gpt2, o.positions = QKV_POSITION_SINUSOID, "learned, from 0 on");
    DIFFERS("gpt2", gpt2, o.first_position = 1, "learned, from 0 on");
    DIFFERS("gpt2", gpt2, o.pre_norm = 0, "before each sub-layer");
    DIFFERS("gpt2", gpt2, o.norm = QKV_NORM_RMS, "layer norms");
    DIFFERS("gpt2", gpt2, o.unscaled = 0, "not scaled");
    DIFFERS("gpt2", gpt2, o.no_bias = 1, "have biases");
    DIFFERS("gpt2", gpt2, o.output_bias = 1, "but not the output");
    DIFFERS("gpt2", gpt2, o.activation = QKV_ACTIVATION_SWIGLU, "no gate");
    DIFFERS("gpt2", gpt2, o.kv_heads = 1, "heads are alike");
    DIFFERS("gpt2", gpt2, (o.kv_heads = 2, o.d_k = 4), NULL);
    DIFFERS("gpt2", gpt2, o.d_k = 3, "heads are alike");
    DIFFERS("gpt2", gpt2, o.embed_norm = 1, "no norm of embeddings");
    DIFFERS("gpt2", gpt2, o.head = 1, "no head");
    DIFFERS("gpt2", gpt2, o.classes = 2, "no classifier");

    expect("llama", &llama, NULL);
    DIFFERS("llama", llama, o.decoder_layers = 0, "a decoder alone");
    DIFFERS("llama", llama, o.encoder_layers = 1, "a decoder alone");
    DIFFERS("llama", llama, o.positions = QKV_POSITION_SINUSOID, "are rotary");
    DIFFERS("llama", llama, o.pre_norm = 0, "before each sub-layer");
    DIFFERS("llama", llama, o.norm = QKV_NORM_LAYER, "RMS norms");
    DIFFERS("llama", llama, o.unscaled = 0, "not scaled");
    DIFFERS("llama", llama, o.activation = QKV_ACTIVATION_SILU, "a SiLU gate");
    DIFFERS("llama", llama, o.embed_norm = 1, "no norm of embeddings");
    DIFFERS("llama", llama, o.head = 1, "no head");
    DIFFERS("llama", llama, o.output_bias = 1, "no bias of the output");
    DIFFERS("llama", llama, o.classes = 2, "no classifier");
    DIFFERS("llama", llama, o.kv_heads = 1, NULL);
    DIFFERS("llama", llama, o.no_bias = 0, NULL);
    DIFFERS("llama", llama, (o.no_bias = 0, o.qkv_bias = 1), NULL);
    DIFFERS("llama", llama, o.qkv_bias = 1, "no bias of their own");
    DIFFERS("mistral", llama, o.qkv_bias = 1, "no bias of their own");
    DIFFERS("qwen2", llama, o.qkv_bias = 1, NULL);
    DIFFERS("qwen2", llama, (o.qkv_bias = 1, o.pre_norm = 0), "before each sub-layer");
    DIFFERS("qwen2", llama, (o.qkv_bias = 1, o.no_bias = 0), "only its queries");
    expect("qwen2", &llama, "only its queries");
}

/* What newer families have, one switch at a time. */
static void newer_decoders(void **state)
{
    (void)state;
    qkv_config gemma = llama;
    gemma.size = sizeof gemma;
    gemma.unscaled = 0;
    gemma.activation = QKV_ACTIVATION_GEGLU_TANH;
    expect("gemma", &gemma, NULL);
    expect("gemma", &llama, "are scaled");
    DIFFERS("gemma", gemma, o.activation = QKV_ACTIVATION_GEGLU, "a GELU gate");
    DIFFERS("gemma", gemma, o.no_bias = 0, "no biases");
    DIFFERS("gemma", gemma, o.post_norm = 1, "no norms behind");
    DIFFERS("gemma", gemma, o.window_size = 4, "the whole text");
    expect("gemma2", &gemma, "post_norm");
    DIFFERS("gemma2", gemma, (o.post_norm = 1, o.window_size = 4, o.global_every = 2, o.score_softcap = o.logit_softcap = 3),
            NULL);
    DIFFERS("gemma2", gemma, (o.post_norm = 1, o.qk_norm = 1), "no norms");
    DIFFERS("gemma2", gemma, (o.post_norm = 1, o.parallel = 1), "one after the other");
    DIFFERS("gemma3_text", gemma, o.post_norm = 1, "qk_norm");
    DIFFERS("gemma3_text", gemma, (o.post_norm = o.qk_norm = 1, o.window_size = 4, o.window_rope_base = 50), NULL);
    expect("phi3", &llama, NULL);
    DIFFERS("phi3", gemma, (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.rope_width = 2), NULL);
    DIFFERS("phi3", llama, o.no_bias = 0, "no biases");
    DIFFERS("phi3", llama, o.d_k = 6, "share dim evenly");
    expect("qwen3", &llama, "qk_norm");
    DIFFERS("qwen3", gemma, (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.qk_norm = 1), NULL);
    DIFFERS("llama", gemma, (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.attention_scale = 1), "sqrt(d_k)");
    DIFFERS("llama", gemma, (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.logit_softcap = 1), "no caps");
    DIFFERS("mistral", gemma, (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.window_size = 3), NULL);
    DIFFERS("mistral", gemma,
            (o.unscaled = 1, o.activation = QKV_ACTIVATION_SWIGLU, o.window_size = 3, o.window_from_layer = 1),
            "all of its layers");
    DIFFERS("opt", gpt2, o.first_position = 2, NULL);
    expect("opt", &gpt2, "from 2 on");
    DIFFERS("gpt_neox", gpt2, o.positions = QKV_POSITION_ROPE, NULL);
    expect("gpt_neox", &gpt2, "are rotary");
}

static void translators(void **state)
{
    (void)state;
    static const char *const both[] = { "marian", "pegasus" };
    for (int i = 0; i < 2; i++) {
        qkv_config base = marian;
        base.pre_norm = i;
        expect(both[i], &base, NULL);
        DIFFERS(both[i], base, o.encoder_layers = 0, "an encoder and a decoder");
        DIFFERS(both[i], base, o.decoder_layers = 0, "an encoder and a decoder");
        DIFFERS(both[i], base, o.positions = QKV_POSITION_SINUSOID, "sinusoid_halves");
        DIFFERS(both[i], base, o.first_position = 1, "first position is 0");
        DIFFERS(both[i], base, o.norm = QKV_NORM_RMS, "layer norms");
        DIFFERS(both[i], base, o.norm_eps = 1e-6f, "an eps of 1e-5");
        DIFFERS(both[i], base, o.norm_eps = 1e-5f, NULL);
        DIFFERS(both[i], base, o.no_bias = 1, "have biases");
        DIFFERS(both[i], base, o.no_source_eos = 1, "source_eos");
        DIFFERS(both[i], base, o.activation = QKV_ACTIVATION_SWIGLU, "no gate");
        DIFFERS(both[i], base, o.kv_heads = 1, "heads are alike");
        DIFFERS(both[i], base, (o.kv_heads = 2, o.d_k = 4), NULL);
        DIFFERS(both[i], base, o.d_k = 3, "heads are alike");
        DIFFERS(both[i], base, o.embed_norm = 1, "no norm of embeddings");
        DIFFERS(both[i], base, o.token_types = 2, "no token types");
        DIFFERS(both[i], base, o.head = 1, "no head");
        DIFFERS(both[i], base, o.classes = 2, "no classifier");
    }
    DIFFERS("marian", marian, o.pre_norm = 1, "after each sub-layer");
    DIFFERS("marian", marian, o.target_vocab_size = 9, NULL);
    expect("pegasus", &marian, "before each sub-layer");
    DIFFERS("pegasus", marian, (o.pre_norm = 1, o.target_vocab_size = 9), "share one vocabulary");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(encoders), cmocka_unit_test(modern_encoders),
                                        cmocka_unit_test(decoders), cmocka_unit_test(newer_decoders),
                                        cmocka_unit_test(translators) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
