/* test_null.c: NULL in every pointer argument of every public function, one at a time and with what is right in the others: an
 * error, or nothing at all, never a crash; and options of a size that none has, which no function takes. The calls are read off
 * the headers by null_calls.awk. */
#include "data/corpus.h"

#include <qkv/qkv.h>
#include <qkv/unstable/runs.h>
#include <qkv/unstable/shortlist.h>
#include <qkv/unstable/inspect.h>
#include <qkv/unstable/util.h>
#include "report/arrays.h"
#include "recipe/shortlist_learn.h"
#include "recipe/fit_length.h"
#include "report/attention.h"
#include "report/results.h"
#include "report/scores.h"
#include "report/tokens.h"
#include "report/average.h"
#include "term/read_text.h"
#include "bench/bench.h"
#include "recipe/job.h"
#include "serve/serve.h"
#include "draw/view.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "model/model.h"

/* ---- what is right: one of each type ---- */

static struct {
    qkv_tape *tape;
    qkv_tensor *tensor;
    qkv_params *params;
    qkv_linear linear;
    qkv_embedding embed;
    qkv_norm norm;
    qkv_mha mha;
    qkv_ffn ffn;
    qkv_word_counts *words;
    qkv_tokenizer *tokenizer, *of_model;
    qkv_model *model;
    qkv_session *session;
    qkv_sampler *sampler;
    qkv_model *talker;
    qkv_chat *chat;
    qkv_dataset *pairs;
    qkv_shortlist *shortlist;
    qkv_loader *epoch;
    qkv_trainer *trainer;
    qkv_training *training;
    qkv_attention_capture *attended;
    char file[128];
} it;

static int32_t ids[64] = { 3, 4 };
static float floats[4096];
static double numbers[64];
static size_t sizes[64];
static const char *const texts[] = { "a b", "b" };
static const qkv_str strings[] = { { "a", 1 } }, *const references[] = { strings };
static struct {
    qkv_class_scores *classes;
    qkv_regression_score *regression;
    qkv_bleu_score *bleu;
    qkv_chrf_score *chrf;
    qkv_train_result *training;
} results; /* used again and again */

static qkv_status each_document(void *data, qkv_str a) { return (void)data, (void)a, QKV_OK; }
static qkv_status each_pair(void *data, qkv_str a, qkv_str b) { return (void)data, (void)a, (void)b, QKV_OK; }
static qkv_status each_row(void *data, const qkv_bench_row *x) { return (void)data, (void)x, QKV_FAILURE; } /* one is enough */
static qkv_status each_labelled(void *data, const qkv_labelled *x) { return (void)data, (void)x, QKV_OK; }

/* clang-format off */
#define V_float 1.0f
#define V_double 1.0
#define V_int 1
#define V_unsigned 1
#define V_int32_t 1
#define V_int64_t 1
#define V_size_t 1
#define V_uint64_t 1
#define V_const_char_P it.file
#define V_qkv_str qkv_cstr(it.file)
#define V_qkv_text_P_P &(qkv_text *){ NULL }
#define V_const_char_Pconst_P texts
#define V_const_qkv_str_Pconst_P references
#ifndef V_const_qkv_str_P
#define V_const_qkv_str_P strings
#endif
#define V_const_float_P floats
#define V_const_int32_t_P ids
#define V_const_int64_t_P (const int64_t[]){ 1, 1, 1, 1 }
#define V_const_double_P (const double[]){ 1, 1, 1, 1 }
#define V_const_uint8_t_P (const uint8_t[]){ 1, 1, 1, 1 }
#define V_const_int_P (const int[]){ 0, 0, 0, 0 }
#define V_const_size_t_P (const size_t[]){ 1, 1 }
#define V_const_void_P floats
#define V_void_P floats
#define V_char_P (char[64]){ 0 }
#define V_double_P numbers
#define V_float_P floats
#define V_int32_t_P ids
#define V_size_t_P sizes
#define V_const_qkv_bench_opts_P &(qkv_bench_opts){ .repeat = 1, .batch = 1 }
#define V_const_qkv_bench_row_P ZERO(qkv_bench_row)
#define V_qkv_bench_kind QKV_BENCH_MATMUL
#define V_qkv_bench_each each_row
#define V_qkv_shortlist_P NULL /* it would be freed */
#define V_const_qkv_shortlist_P it.shortlist
#define V_const_qkv_shortlist_opts_P ZERO(qkv_shortlist_opts)
#define V_qkv_tape_P it.tape
#define V_qkv_tensor_P it.tensor
#define V_const_qkv_tensor_P it.tensor
#define V_const_qkv_tape_P it.tape
#define V_qkv_params_P it.params
#define V_const_qkv_params_P it.params
#define V_const_qkv_linear_P &it.linear
#define V_qkv_norm_kind QKV_NORM_LAYER
#define V_qkv_position_kind QKV_POSITION_SINUSOID
#define V_const_qkv_embedding_P &it.embed
#define V_const_qkv_norm_P &it.norm
#define V_const_qkv_mha_P &it.mha
#define V_const_qkv_ffn_P &it.ffn
#define V_qkv_model_P it.model
#define V_const_qkv_model_P it.model
#define V_const_qkv_tokens_P &(qkv_tokens){ .ids = ids, .rows = 1, .length = 1 }
#define V_qkv_session_P it.session
#define V_qkv_sampler_P it.sampler
#define V_qkv_generation_P_P EMPTY(qkv_generation)
#define V_const_qkv_sampling_opts_P ZERO(qkv_sampling_opts)
#define V_const_qkv_session_P it.session
#define V_qkv_chat_P it.chat
#define V_const_qkv_chat_P it.chat
#define V_qkv_chat_usage_P ZERO(qkv_chat_usage)
#define V_const_qkv_chat_opts_P ZERO(qkv_chat_opts)
#define V_const_qkv_chat_render_opts_P ZERO(qkv__chat_render_opts)
#define V_qkv_tokenizer_P it.tokenizer
#define V_const_qkv_tokenizer_P it.tokenizer
#define V_qkv_tokenizer_P_P (qkv_tokenizer *[]){ NULL }
#define V_qkv_word_counts_P it.words
#define V_const_qkv_word_counts_P it.words
#define V_qkv_dataset_P it.pairs
#define V_const_qkv_dataset_P it.pairs
#define V_const_qkv_loader_P it.epoch
#define V_qkv_trainer_P it.trainer
#define V_const_qkv_trainer_P it.trainer
#define V_const_qkv_attention_capture_P it.attended
#define ZERO(type) &(type){ 0 }
#define EMPTY(type) &(type *){ NULL }
#define V_const_qkv_array_P ZERO(qkv_array)
#define V_qkv_array_P ZERO(qkv_array)
#define V_qkv_mask_arrays_P ZERO(qkv_mask_arrays)
#define V_qkv_projections_P ZERO(qkv_projections)
#define V_qkv_attention_capture_P_P EMPTY(qkv_attention_capture)
#define V_qkv_batch_P_P EMPTY(qkv_batch)
#define V_qkv_class_scores_P_P &results.classes
#define V_qkv_regression_score_P_P &results.regression
#define V_qkv_bleu_score_P_P &results.bleu
#define V_qkv_chrf_score_P_P &results.chrf
#define V_const_qkv_regression_score_P ZERO(qkv_regression_score)
#define V_qkv_labelled_score_P ZERO(qkv_labelled_score)
#define V_qkv_neighbour_P ZERO(qkv_neighbour)
#define V_qkv_confusion_P ZERO(qkv_confusion)
#define V_const_qkv_classify_labelled_opts_P ZERO(qkv_classify_labelled_opts)
#define V_const_qkv_matrix_P ZERO(qkv_matrix)
#define V_const_qkv_translations_P ZERO(qkv_translations)
#define V_int64_t_P (int64_t[4]){ 0 }
#define V_const_qkv_train_opts_P ZERO(qkv_train_opts)
#define V_qkv_train_result_P_P &results.training
#define V_qkv_training_end_P ZERO(qkv_training_end)
#define V_qkv_end QKV_END_STEPS
#define V_qkv_run_plan_P ZERO(qkv_run_plan)
#define V_qkv_training_P it.training
#define V_const_qkv_training_P it.training
#define V_const_qkv_training_watch_P ZERO(qkv_training_watch)
#define V_const_qkv_bleu_score_P ZERO(qkv_bleu_score)
#define V_const_qkv_chrf_score_P ZERO(qkv_chrf_score)
#define V_qkv_read_stats_P ZERO(qkv_read_stats)
#define V_qkv_filled_P_P EMPTY(qkv_filled)
#define V_const_qkv_filled_P ZERO(qkv_filled)
#define V_qkv_tagged_P_P EMPTY(qkv_tagged)
#define V_const_qkv_tagged_P ZERO(qkv_tagged)
#define V_qkv_answers_P_P EMPTY(qkv_answers)
#define V_const_qkv_answers_P ZERO(qkv_answers)
#define V_const_qkv_answer_opts_P ZERO(qkv_answer_opts)
#define V_qkv_ranking_P_P EMPTY(qkv_ranking)
#define V_qkv_search_result_P_P EMPTY(qkv_search_result)
#define V_qkv_special_tokens_P ZERO(qkv_special_tokens)
#define V_qkv_generated_P_P EMPTY(qkv_generated)
#define V_const_qkv_generated_P ZERO(qkv_generated)
#define V_qkv_head_measures_P ZERO(qkv_head_measures)
#define V_qkv_encoding_P_P &(qkv_encoding *){ NULL }
#define V_token_ids_P ZERO(token_ids)
#define V_qkv_length_fit_P ZERO(qkv_length_fit)
#define V_qkv_model_comparison_P ZERO(qkv_model_comparison)
#define V_const_qkv_model_comparison_P ZERO(qkv_model_comparison)
#define V_const_qkv_encoding_P ZERO(qkv_encoding)
#define V_qkv_lines_read_P ZERO(qkv__lines_read)
#define V_qkv_train_state_P ZERO(qkv_train_state)
#define V_qkv_matrix_P_P EMPTY(qkv_matrix)
#define V_qkv_span_P ZERO(qkv_span)
#define V_qkv_measured_P ZERO(qkv_measured)
#define V_const_qkv_measured_P ZERO(qkv_measured)
#define V_const_qkv_measure_opts_P ZERO(qkv_measure_opts)
#define V_const_qkv_likelihood_opts_P ZERO(qkv_likelihood_opts)
#define V_const_qkv_fill_opts_P ZERO(qkv_fill_opts)
#define V_const_qkv_str_P strings
#define V_qkv_nll_P ZERO(qkv_nll)
#define V_qkv_axis_P_P EMPTY(qkv_axis)
#define V_qkv_training_curves_P ZERO(qkv_training_curves)
#define V_qkv_buffer_P ZERO(qkv_buffer)
#define V_qkv_status QKV_IO
#define V_qkv_config_P ZERO(qkv_config)
#define V_qkv_generate_opts_P ZERO(qkv_generate_opts)
#define V_qkv_translations_P_P EMPTY(qkv_translations)
#define V_const_qkv_attend_opts_P ZERO(qkv_attend_opts)
#define V_const_qkv_attention_maps_opts_P ZERO(qkv_attention_maps_opts)
#define V_const_qkv_attention_maps_P ZERO(qkv_attention_maps)
#define V_qkv_attention_maps_P ZERO(qkv_attention_maps)
#define V_qkv_ranked_head_P ((qkv_ranked_head[64]){ 0 })
#define V_const_qkv_mask_P ZERO(qkv_mask)
#define V_const_qkv_attention_opts_P ZERO(qkv_attention_opts)
#define V_const_qkv_batch_opts_P &(qkv_batch_opts){ .max_tokens = 64, .end = 2 }
#define V_const_qkv_bleu_opts_P ZERO(qkv_bleu_opts)
#define V_const_qkv_tokenizer_opts_P ZERO(qkv_tokenizer_opts)
#define V_const_qkv_chrf_opts_P ZERO(qkv_chrf_opts)
#define V_const_qkv_corpus_opts_P ZERO(qkv_corpus_opts)
#define V_const_qkv_cross_entropy_opts_P ZERO(qkv_cross_entropy_opts)
#define V_const_qkv_curve_P &(qkv_curve){ .x = numbers, .y = numbers, .n = 2 }
#define V_const_qkv_curve_opts_P ZERO(qkv_curve_opts)
#define V_const_qkv_embed_opts_P ZERO(qkv_embed_opts)
#define V_const_qkv_encode_opts_P ZERO(qkv_encode_opts)
#define V_const_qkv_ffn_opts_P &(qkv_ffn_opts){ .dim = 4, .d_ff = 4 }
#define V_const_qkv_flow_P ZERO(qkv_flow)
#define V_const_qkv_generate_opts_P ZERO(qkv_generate_opts)
#define V_const_qkv_heatmap_P &(qkv_heatmap){ .values = floats }
#define V_const_qkv_heatmap_opts_P &(qkv_heatmap_opts){ .rows = 2, .columns = 2 }
#define V_const_qkv_fit_length_opts_P ZERO(qkv_fit_length_opts)
#define V_const_qkv_labelled_opts_P ZERO(qkv_labelled_opts)
#define V_const_qkv_classified_opts_P ZERO(qkv_classified_opts)
#define V_const_qkv_load_opts_P ZERO(qkv_load_opts)
#define V_const_qkv_mha_opts_P &(qkv_mha_opts){ .dim = 4, .heads = 1 }
#define V_const_qkv_loss_P &loss
#define V_const_qkv_evaluate_opts_P ZERO(qkv_evaluate_opts)
#define V_const_qkv_masked_lm_opts_P ZERO(qkv_masked_lm_opts)
#define V_const_qkv_example_P ZERO(qkv_example)
#define V_const_qkv_optimizer_opts_P ZERO(qkv_optimizer_opts)
#define V_const_qkv_encoder_opts_P ZERO(qkv_encoder_opts)
#define V_const_qkv_flow_opts_P ZERO(qkv_flow_opts)
#define V_const_qkv_model_drawing_opts_P ZERO(qkv_model_drawing_opts)
#define V_const_qkv_rope_opts_P ZERO(qkv_rope_opts)
#define V_const_qkv_screen_opts_P ZERO(qkv_screen_opts)
#define V_const_qkv_search_opts_P &(qkv_search_opts){ .start = 1, .end = 2, .max_length = 3 }
#define V_const_qkv_server_P NULL /* its threads would not survive a fork */
#define V_const_qkv_access_P ZERO(qkv_access)
#define V_const_qkv_server_opts_P ZERO(qkv_server_opts)
#define V_const_qkv_session_opts_P ZERO(qkv_session_opts)
#define V_const_qkv_trainer_opts_P &(qkv_trainer_opts){ .batches = &(qkv_batch_opts){ .max_tokens = 64, .end = 2 } }
#define V_const_qkv_config_P &shape
#define V_const_qkv_translate_opts_P ZERO(qkv_translate_opts)
#define V_qkv_attention_kind QKV_ATTENTION_CROSS
#define V_qkv_head_measure QKV_HEAD_MEASURE_NEXT
#define V_const_qkv_edit_P ZERO(qkv_edit)
#define V_qkv_edit_kind QKV_EDIT_HIDE_KEY
#define V_qkv_touches_P ZERO(qkv_touches)
#define V_const_qkv_logit_lens_opts_P ZERO(qkv_logit_lens_opts)
#define V_qkv_logit_lens_result_P_P EMPTY(qkv_logit_lens_result)
#define V_const_qkv_logit_lens_result_P ZERO(qkv_logit_lens_result)
#define V_qkv_attribute_method QKV_ATTRIBUTE_ROLLOUT
#define V_const_qkv_attribute_opts_P ZERO(qkv_attribute_opts)
#define V_qkv_attribution_P_P EMPTY(qkv_attribution)
#define V_const_qkv_attribution_P ZERO(qkv_attribution)
#define V_const_qkv_page_opts_P ZERO(qkv_page_opts)
#define V_const_qkv_trace_opts_P ZERO(qkv_trace_opts)
#define V_qkv_trace_result_P_P EMPTY(qkv_trace_result)
#define V_const_qkv_trace_result_P ZERO(qkv_trace_result)
#define V_qkv_side QKV_SIDE_SOURCE
#define V_qkv_token_style QKV_TOKEN_STYLE_SHOWN
#define V_qkv_document_kind QKV_DOCUMENT_LINES
#define V_qkv_init QKV_INIT_ZERO
#define V_qkv_logits QKV_LOGITS_LAST
#define V_qkv_pooling QKV_POOLING_MEAN
#define V_qkv_problem QKV_PROBLEM_CLASSIFICATION
#define V_qkv_document_each each_document
#define V_qkv_labelled_each each_labelled
#define V_qkv_line_pair_each each_pair
/* clang-format on */

static qkv_config shape = {
    .encoder_layers = 1, .decoder_layers = 1, .dim = 8, .heads = 2, .d_ff = 8, .classes = 2, .vocab_size = 300
};
static qkv_loss loss;

static bool make_chat(void)
{
    static const char written[] = "{{ messages | length }}";
    const qkv_config o = { .decoder_layers = 1, .dim = 8, .heads = 2, .d_ff = 8, .vocab_size = 300 };
    it.talker = qkv_model_new(&o, 1);
    if (!it.talker || qkv_model_set_tokenizers(it.talker, qkv_tokenizer_train(it.words, NULL), NULL)) return false;
    it.chat = qkv_chat_new(it.talker, &(qkv_chat_opts){ .chat_template = written, .max_context = 16 });
    return it.chat && !qkv_chat_add(it.chat, "user", qkv_cstr("a"));
}

static int make_one_of_each(void **state)
{
    if (make_folder(state) || qkv_set_num_threads(1)) return -1; /* threads do not survive a fork */
    snprintf(it.file, sizeof it.file, "%s", in_folder("file.tsv"));
    FILE *f = fopen(it.file, "w");
    fputs("a b\tb a\nb\ta\n", f);
    fclose(f);
    it.tape = qkv_tape_new(NULL);
    it.tensor = qkv_variable(it.tape, QKV_SHAPE(1, 1), NULL);
    it.params = qkv_params_new(1);
    it.linear = qkv_linear_new(it.params, "linear", 1, 1, true);
    it.embed = qkv_embedding_new(it.params, "embed", 300, 8);
    it.norm = qkv_norm_new(it.params, "norm", 1, QKV_NORM_LAYER);
    it.mha = qkv_mha_new(it.params, "mha", &(qkv_mha_opts){ .dim = 4, .heads = 1 });
    it.ffn = qkv_ffn_new(it.params, "ffn", &(qkv_ffn_opts){ .dim = 4, .d_ff = 4 });
    it.words = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_word_counts_add(it.words, (qkv_str){ "a b b a", 7 });
    it.tokenizer = qkv_tokenizer_train(it.words, NULL);
    it.of_model = qkv_tokenizer_train(it.words, NULL);
    it.model = qkv_model_new(&shape, 1);
    if (!it.of_model || !it.model || qkv_model_set_tokenizers(it.model, it.of_model, NULL)) return -1;
    it.session = qkv_session_new(it.model, NULL);
    it.sampler = qkv_sampler_new(it.model, NULL);
    qkv_session_encode(it.session, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 2 });
    it.pairs = qkv_dataset_new();
    qkv_dataset_add_ids(it.pairs, ids, 2, ids, 2);
    it.shortlist = qkv_shortlist_learn(it.model, it.pairs, NULL);
    it.epoch = qkv_loader_new(it.pairs, V_const_qkv_batch_opts_P, 0);
    it.trainer = qkv_trainer_new(it.model, it.pairs, V_const_qkv_trainer_opts_P);
    it.training = qkv_training_new("translate");
    loss = qkv_loss_language_model();
    qkv_attend(it.model, qkv_cstr("a b"), NULL, &it.attended);
    return make_chat() && it.tensor && it.session && it.shortlist && it.epoch && it.trainer && it.attended->heads &&
                   !qkv_params_status(it.params)
               ? 0
               : -1;
}

/* ---- the calls ---- */

#define NOTHING(call) (call)
#define SOMETHING(call) ((void)(call))
#define WRONG_SIZE(type) \
    &(type) { .size = 3 }
#define CALL(name, kind, call) \
    static void COUNTED(__LINE__)(void) { kind(call); }
#define SIZED(name, kind, call) \
    static void COUNTED(__LINE__)(void) { _exit((kind(call), !strstr(qkv_error(), "the options say that they are 3 bytes"))); }
#define OPTIONS(type) _Static_assert(offsetof(type, size) == 0 && sizeof((type *)0)->size == sizeof(size_t), #type);
#define COUNTED_(line) call_##line
#define COUNTED(line) COUNTED_(line)
#include "null_calls.inc"
#undef CALL
#undef SIZED
#undef OPTIONS

typedef struct named_call {
    const char *name;
    void (*call)(void);
} named_call;

#define OPTIONS(type)
#define CALL(name, kind, call) { name, COUNTED(__LINE__) },
#define SIZED(name, kind, call)
static const named_call calls[] = {
#include "null_calls.inc"
};
#undef CALL
#undef SIZED
#define CALL(name, kind, call)
#define SIZED(name, kind, call) { name, COUNTED(__LINE__) },
static const named_call sized[] = {
#include "null_calls.inc"
};

/* In a process of its own: 0 when it came back. */
static int status_of(void (*call)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL); /* cmocka's stay outside */
        alarm(60);
        call();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
    return status;
}

static void no_null_crashes(void **state)
{
    (void)state;
    int crashed = 0, n = (int)(sizeof calls / sizeof *calls);
    for (int i = 0; i < n; i++)
        if (status_of(calls[i].call)) crashed++, print_error("%s: NULL crashes\n", calls[i].name);
    print_message("%d calls\n", n);
    assert_true(n > 400);
    assert_int_equal(crashed, 0);
}

static void no_wrong_size_is_taken(void **state)
{
    (void)state;
    int taken = 0, n = (int)(sizeof sized / sizeof *sized);
    for (int i = 0; i < n; i++)
        if (status_of(sized[i].call)) taken++, print_error("%s: options of 3 bytes are taken\n", sized[i].name);
    print_message("%d calls\n", n);
    assert_true(n > 30);
    assert_int_equal(taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_null_crashes), cmocka_unit_test(no_wrong_size_is_taken) };
    return cmocka_run_group_tests(tests, make_one_of_each, remove_folder);
}
