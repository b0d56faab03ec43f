/* test_heads.c: labels of words, answers, ranked passages and the modules of sentence-transformers. The models are the goldens of
 * tests/golden/heads.py, some with weights that make each token mean what a case needs. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"
#include "io/safetensors.h"
#include "as_strings.h"
#include "nn/params.h"
#include "model/model.h"
#include "tensor/packed.h"
#include "report/results.h"

enum { DIM = 16 };

/* The ids of the goldens' vocabulary, from 0. */
static const char *const words[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the",   "cat",   "sat",
                                     "on",    "mat",   "a",     "dog",   "ran",    "##s",   ".",     ",",
                                     "good",  "bad",   "film",  "is",    "was",    "paris", "france" };
enum { WORDS = sizeof words / sizeof *words };

static qkv_model *load_golden(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '" QKV_GOLDEN "/families/%s' %s && chmod -R u+w %s", folder, name,
             folder, folder);
    assert_int_equal(system(command), 0);
    FILE *f = fopen(in_folder("vocab.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < WORDS; i++) fprintf(f, "%s\n", words[i]);
    fclose(f);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s: %s", name, qkv_error());
    return m;
}

static void set_weight(const qkv_model *m, const char *name, float value)
{
    qkv_tensor *w = qkv_params_find(qkv__model_params(m), name);
    if (!w) fail_msg("there is no weight %s", name);
    for (int64_t i = 0; i < qkv_tensor_count(w); i++) qkv_tensor_data_mut(w)[i] = value;
}

/* A model whose hidden state of a token is its row of the table, normalised: attention and feed-forward add nothing. */
static qkv_model *load_plain(const char *name)
{
    static const char *const nothing[] = { "token_types.weight",        "encoder.positions.weight", "encoder.embed_norm.bias",
                                           "encoder.0.self.out.weight", "encoder.0.self.out.bias",  "encoder.0.self_norm.bias",
                                           "encoder.0.ffn.out.weight",  "encoder.0.ffn.out.bias",   "encoder.0.ffn_norm.bias" };
    static const char *const one[] = { "encoder.embed_norm.weight", "encoder.0.self_norm.weight", "encoder.0.ffn_norm.weight" };
    qkv_model *m = load_golden(name);
    assert_int_equal(qkv__params_materialize(qkv__model_params(m)), QKV_OK);
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) set_weight(m, nothing[i], 0);
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) set_weight(m, one[i], 1);
    set_weight(m, "embed.weight", 0);
    return m;
}

static float *row(const qkv_model *m, const char *name, int64_t i)
{
    return qkv_tensor_data_mut(qkv_params_find(qkv__model_params(m), name)) + i * DIM;
}

/* ---- labels ---- */

/* The label of token i is number (i - 5) % 5; special tokens and unknown ones have the first. */
static qkv_model *load_tagger(const char *const *labels)
{
    qkv_model *m = load_plain("bert_tag");
    for (int i = 0; i < WORDS; i++) row(m, "embed.weight", i)[i < 5 ? 0 : (i - 5) % 5] = 1;
    set_weight(m, "token_classifier.weight", 0);
    set_weight(m, "token_classifier.bias", 0);
    for (int i = 0; i < 5; i++) row(m, "token_classifier.weight", i)[i] = 1;
    assert_int_equal(qkv_model_set_labels(m, labels, 5, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    return m;
}

static void spell(const qkv_tagged_text *t, const qkv_tagged_span *spans, int64_t n, char *out)
{
    *out = '\0';
    for (int64_t i = 0; i < n; i++)
        sprintf(out + strlen(out), "%s%s:%.*s", i ? " " : "", spans[i].label.data,
                (int)(spans[i].bytes.end - spans[i].bytes.begin), t->text.data + spans[i].bytes.begin);
}

static void words_become_entities(void **state)
{
    (void)state;
    static const char *const bio[] = { "O", "B-PER", "I-PER", "B-LOC", "I-LOC" };
    static const char *const iobes[] = { "O", "B-X", "E-X", "S-X", "I-X" };
    static const char *const bilou[] = { "O", "B-X", "L-X", "U-X", "I-X" };
    static const char *const plain[] = { "O", "NOUN", "E-MAIL", "S-BAHN", "DET" };
    static const struct {
        const char *const *labels;
        const char *text, *words, *entities;
    } rows[] = {
        { bio, "the cat sat on mat a dog", "O:the B-PER:cat I-PER:sat B-LOC:on I-LOC:mat O:a B-PER:dog",
          "PER:cat sat LOC:on mat PER:dog" },
        { bio, "sat ran cat", "I-PER:sat I-PER:ran B-PER:cat", "PER:sat ran PER:cat" }, /* an I- may begin one */
        { bio, "cat mat", "B-PER:cat I-LOC:mat", "PER:cat LOC:mat" },
        { bio, "cats sat.", "B-PER:cats I-PER:sat I-LOC:.", "PER:cats sat LOC:." }, /* ##s would be B-LOC */
        { bio, "cat the sat", "B-PER:cat O:the I-PER:sat", "PER:cat PER:sat" },
        { bio, "zebra cat", "O:zebra B-PER:cat", "PER:cat" }, /* unknown */
        { bio, "the", "O:the", "" },
        { bio, "", "", "" },
        { bio, "  ", "", "" },
        { iobes, "cat mat sat on cat mat", "B-X:cat I-X:mat E-X:sat S-X:on B-X:cat I-X:mat", "X:cat mat sat X:on X:cat mat" },
        { iobes, "sat mat on on", "E-X:sat I-X:mat S-X:on S-X:on", "X:sat X:mat X:on X:on" },
        { bilou, "cat sat mat film", "B-X:cat L-X:sat I-X:mat U-X:film", "X:cat sat X:mat X:film" },
        { plain, "cat dog sat on film the mat", "NOUN:cat NOUN:dog E-MAIL:sat S-BAHN:on S-BAHN:film O:the DET:mat",
          "NOUN:cat dog E-MAIL:sat S-BAHN:on film DET:mat" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[512];
        qkv_tagged *t = NULL;
        qkv_model *m = load_tagger(rows[i].labels);
        assert_int_equal(qkv_tag(m, as_strings(&rows[i].text, NULL, 1), 1, NULL, &t), QKV_OK);
        spell(&t->texts[0], t->texts[0].words, t->texts[0].n_words, got);
        assert_string_equal(got, rows[i].words);
        spell(&t->texts[0], t->texts[0].entities, t->texts[0].n_entities, got);
        assert_string_equal(got, rows[i].entities);
        qkv_free(t);
        qkv_model_free(m);
    }
}

static const char *const some_labels[] = { "O", "B-PER", "I-PER", "B-LOC", "I-LOC" };

static void spans_in_bytes_and_characters(void **state)
{
    (void)state;
    qkv_model *m = load_tagger(some_labels);
    const char *text = "\xC3\xA9\xC3\xA9 cat \xFF the sat"; /* a byte that is no UTF-8 becomes U+FFFD, 3 bytes */
    qkv_tagged *t = NULL;
    qkv_buffer lines = { 0 };
    assert_int_equal(qkv_tag(m, as_strings(&text, NULL, 1), 1, NULL, &t), QKV_OK);
    const qkv_tagged_span *e = t->texts[0].entities;
    assert_int_equal(t->texts[0].n_entities, 2);
    assert_true(e[0].bytes.begin == 5 && e[0].bytes.end == 8 && e[0].characters.begin == 3 && e[0].characters.end == 6);
    assert_true(e[1].bytes.begin == 17 && e[1].bytes.end == 20 && e[1].characters.begin == 13 && e[1].characters.end == 16);
    assert_true(e[0].score > 0.5 && e[0].score < 1 && e[0].label_id == 1);
    assert_int_equal(qkv_tagged_lines(t, 0, 0, 1, &lines), QKV_OK);
    assert_non_null(strstr(lines.data, "\"text\": \"cat\", \"span\": [5, 8], \"characters\": [3, 6]}"));
    assert_int_equal(qkv_tagged_lines(t, 1, 0, 1, &lines), QKV_USAGE);
    qkv_buffer_free(&lines);
    qkv_free(t);
    qkv_model_free(m);
}

/* Each token's label depends on the token alone: whatever the windows, the words are the same. */
static void long_texts_are_read_in_windows(void **state)
{
    (void)state;
    char text[1024] = "", wanted[2048] = "", got[2048];
    for (int i = 0; i < 61; i++) {
        int id = 5 + i * 7 % 8;
        sprintf(text + strlen(text), "%s%s", i ? " " : "", words[id]);
        sprintf(wanted + strlen(wanted), "%s%s:%s", i ? " " : "", some_labels[(id - 5) % 5], words[id]);
    }
    qkv_model *m = load_tagger(some_labels);
    for (int length = 0; length < 14; length++) {
        const char *given[] = { "the cat", text };
        qkv_tagged *t = NULL;
        assert_int_equal(qkv_tag(m, as_strings(given, NULL, 2), 2, &(qkv_encoder_opts){ .max_length = length }, &t), QKV_OK);
        spell(&t->texts[1], t->texts[1].words, t->texts[1].n_words, got);
        assert_string_equal(got, wanted);
        assert_true(t->texts[1].windows > 6 && (length == 2 || t->texts[0].windows == 1 || length == 1));
        qkv_free(t);
    }
    qkv_model_free(m);
}

/* In the golden every token counts: the words' scores are those of its logits. */
static void scores_are_probabilities(void **state)
{
    (void)state;
    qkv_model *m = load_golden("bert_tag");
    const char *text = "the cats";
    qkv_tagged *t = NULL;
    assert_int_equal(qkv_tag(m, as_strings(&text, NULL, 1), 1, NULL, &t), QKV_OK);
    const int32_t ids[] = { 2, 5, 6, 13, 3 }, types[] = { 0, 0, 0, 0, 0 };
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *p = qkv_softmax(qkv__transformer_tag(
        x, qkv__transformer_encode(x, tape, &(qkv_tokens){ .ids = ids, .types = types, .rows = 1, .length = 5 })));
    assert_int_equal(t->texts[0].n_words, 2);
    for (int i = 0; i < 2; i++) {
        const qkv_tagged_span *w = &t->texts[0].words[i];
        assert_true(fabs(w->score - (double)qkv_tensor_data(p)[(i + 1) * 5 + w->label_id]) < 1e-6);
        for (int k = 0; k < 5; k++) assert_true((double)qkv_tensor_data(p)[(i + 1) * 5 + k] <= w->score + 1e-6);
    }
    assert_null(qkv__transformer_classify(x, qkv_constant(tape, 3, (int64_t[]){ 1, 1, DIM }, NULL), NULL));
    qkv_tape_free(tape);
    qkv_free(t);
    qkv_model_free(m);
}

/* ---- answers ---- */

/* An answer begins with "dog" and ends with "ran"; where there is none, the first token is both. */
static qkv_model *load_finder(void)
{
    qkv_model *m = load_plain("bert_answer");
    for (int i = 0; i < WORDS; i++) row(m, "embed.weight", i)[i == 11 ? 0 : i == 12 ? 1 : 5] = 1;
    row(m, "embed.weight", 2)[0] = row(m, "embed.weight", 2)[1] = 0.5f;
    set_weight(m, "span_classifier.weight", 0);
    set_weight(m, "span_classifier.bias", 0);
    row(m, "span_classifier.weight", 0)[0] = row(m, "span_classifier.weight", 1)[1] = 5;
    return m;
}

static qkv_answers *found;

static const qkv_answer_span *ask(const qkv_model *m, const char *question, const char *context, const qkv_answer_opts *o)
{
    qkv_status status = qkv_answer(m, qkv_cstr(question), qkv_cstr(context), o, &found);
    if (status) fail_msg("%s", qkv_error());
    return found->n ? &found->best[0] : NULL;
}

static void says(const qkv_model *m, const char *context, const qkv_answer_opts *o, const char *wanted)
{
    const qkv_answer_span *x = ask(m, "the cat", context, o);
    assert_non_null(x);
    assert_int_equal(x->is_none, !wanted);
    if (!wanted) return;
    assert_int_equal(x->bytes.end - x->bytes.begin, strlen(wanted));
    assert_memory_equal(found->context.data + x->bytes.begin, wanted, strlen(wanted));
}

static void answers_are_found(void **state)
{
    (void)state;
    qkv_model *m = load_finder();
    says(m, "a dog ran", NULL, "dog ran");
    assert_true(found->best[0].score > 0.9 && found->none_score < 1e-6 && found->windows == 1);
    says(m, "a dogs is rans.", NULL, "dogs is rans"); /* whole words */
    says(m, "a film", NULL, NULL);
    assert_true(found->best[0].score > 0.4 && fabs(found->best[0].score - found->none_score) < 1e-12);
    says(m, "", NULL, NULL);
    says(m, "\xC3\xA9\n the dog ran", NULL, "dog ran");
    assert_true(found->best[0].bytes.begin == 8 && found->best[0].characters.begin == 7 && found->best[0].characters.end == 14);
    says(m, "the cat sat on the mat. the cat sat. a dog is bad and ran. the cat sat on the mat. the film", NULL,
         "dog is bad and ran");
    assert_true(found->windows > 2 && found->none_score < 1e-3); /* no answer anywhere is the least of all windows */
    says(m, "dog the the the dog ran the cat", &(qkv_answer_opts){ .n_best = 3 },
         "dog ran"); /* in the first window it shares its start with another */
    assert_true(found->windows == 2 && found->best[0].score > 0.9);
    says(m, "a dog ran", &(qkv_answer_opts){ .max_answer = 1 }, "dog"); /* as good as "ran": the first of equals */
    assert_null(ask(m, "x", "", &(qkv_answer_opts){ .must_answer = 1 }));
    assert_int_equal(qkv_answer(m, qkv_cstr("x"), qkv_cstr("y"), &(qkv_answer_opts){ .n_best = 101 }, &found), QKV_USAGE);
    qkv_model_free(m);
}

static void answers_have_an_order(void **state)
{
    (void)state;
    qkv_model *m = load_golden("bert_answer");
    const char *context = "the cats sat on the mat. the dog ran, a good film was on. paris is bad";
    ask(m, "the dog", context, &(qkv_answer_opts){ .n_best = 20 });
    assert_true(found->n == 20 && found->windows > 3);
    for (int i = 0; i < found->n; i++)
        for (int k = 0; k < i; k++) {
            assert_true(found->best[k].score >= found->best[i].score);
            assert_true(found->best[k].bytes.begin != found->best[i].bytes.begin ||
                        found->best[k].bytes.end != found->best[i].bytes.end);
        }
    qkv_answer_span first = found->best[0];
    ask(m, "the dog", context, NULL);
    assert_true(found->n == 1 && found->best[0].bytes.begin == first.bytes.begin && found->best[0].score == first.score);
    qkv_model_free(m);
}

/* The numbers by their definition, from the logits of one window. */
static void scores_of_answers(void **state)
{
    (void)state;
    qkv_model *m = load_golden("bert_answer");
    ask(m, "a dog", "the cat sat", &(qkv_answer_opts){ .n_best = 10 });
    const int32_t ids[] = { 2, 10, 11, 3, 5, 6, 7, 3 }, types[] = { 0, 0, 0, 0, 1, 1, 1, 1 };
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    const float *z = qkv_tensor_data(qkv__transformer_tag(
        x, qkv__transformer_encode(x, tape, &(qkv_tokens){ .ids = ids, .types = types, .rows = 1, .length = 8 })));
    double sum[2] = { 0 };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 8; i++) sum[k] += i == 0 || (i >= 4 && i < 7) ? exp((double)z[i * 2 + k]) : 0;
    assert_int_equal(found->n, 7);
    for (int i = 0; i < found->n; i++) {
        const qkv_answer_span *a = &found->best[i];
        int from = a->is_none ? 0 : 4 + (int)a->bytes.begin / 4, to = a->is_none ? 0 : 4 + (int)a->bytes.end / 4;
        assert_true(fabs(a->score - exp((double)z[from * 2]) / sum[0] * exp((double)z[to * 2 + 1]) / sum[1]) < 1e-6);
    }
    qkv_tape_free(tape);
    qkv_model_free(m);
}

/* ---- ranking ---- */

/* A BERT with one class; saved with the key, its scores are logits. */
static qkv_model *load_ranker(const char *key)
{
    qkv_model *three = load_golden("bert_classify");
    qkv_config o = *qkv__model_config(three);
    o.classes = 1;
    qkv_model *one = qkv_model_adapt(three, &o, 7);
    qkv_tokenizer *source, *target;
    assert_non_null(one);
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_int_equal(qkv_model_set_tokenizers(one, source, NULL), QKV_OK);
    qkv_model_free(three);
    char copy[128], path[512];
    snprintf(copy, sizeof copy, "%s/one", folder);
    snprintf(path, sizeof path, "sed -i '0,/{/s//{ %s/' %s/config.json", key, copy);
    assert_int_equal(qkv_model_save(one, copy, NULL), QKV_OK);
    qkv_model_free(one);
    assert_int_equal(system(path), 0);
    return qkv_model_load(copy, NULL);
}

static void passages_are_ranked(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "", "\"sbert_ce_default_activation_function\": \"torch.nn.modules.linear.Identity\",",
        "\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.linear.Identity\"},"
    };
    static const char *const passages[] = { "the mat", "a good film", "paris is bad", "a dog ran", "the mat" };
    static const char *const queries[] = { "a dog", "a dog", "a dog", "a dog", "a dog" };
    const qkv_encoder_opts pairs = { .pairs = as_strings(passages, NULL, 5) };
    for (int i = 0; i < 3; i++) {
        qkv_model *m = load_ranker(keys[i]);
        qkv_ranking *found_best = NULL;
        qkv_matrix *logits = NULL;
        if (!m) fail_msg("%s", qkv_error());
        assert_int_equal(qkv_rank(m, qkv_cstr("a dog"), as_strings(passages, NULL, 5), 5, NULL, &found_best), QKV_OK);
        assert_int_equal(qkv_classify(m, as_strings(queries, NULL, 5), 5, &pairs, &logits), QKV_OK);
        const qkv_ranked *best = found_best->best;
        assert_true(found_best->truncated == 0 && found_best->n == 5);
        for (int k = 0; k < 5; k++) {
            double x = (double)logits->data[best[k].index];
            assert_true((double)best[k].logit == x && fabs((double)best[k].score - (i ? x : 1 / (1 + exp(-x)))) < 1e-6);
            if (!k) continue;
            bool is_after = best[k - 1].logit > best[k].logit;
            assert_true(is_after || (best[k - 1].logit == best[k].logit && best[k - 1].index < best[k].index));
        }
        qkv_free(found_best);
        qkv_free(logits);
        qkv_model_free(m);
    }
    assert_null(load_ranker("\"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Tanh\"},"));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
}

/* ---- heads that are not there ---- */

static void other_heads_are_refused(void **state)
{
    (void)state;
    const char *text = "the cat";
    qkv_tagged *t = NULL;
    qkv_matrix *rows = NULL;
    qkv_ranking *best = NULL;
    qkv_model *m = load_golden("bert_classify");
    assert_int_equal(qkv_tag(m, as_strings(&text, NULL, 1), 1, NULL, &t), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "\"tag\": it can classify, embed"));
    assert_int_equal(qkv_answer(m, (qkv_str){ text, 7 }, (qkv_str){ text, 7 }, NULL, &found), QKV_UNSUPPORTED);
    assert_int_equal(qkv_rank(m, (qkv_str){ text, 7 }, as_strings(&text, NULL, 1), 1, NULL, &best), QKV_UNSUPPORTED);
    qkv_model_free(m);
    m = load_golden("bert_tag");
    assert_int_equal(qkv_classify(m, as_strings(&text, NULL, 1), 1, NULL, &rows), QKV_USAGE);
    assert_int_equal(qkv_model_check_ability(m, QKV_CAN_TAG | QKV_CAN_EMBED), QKV_OK);
    assert_int_equal(qkv_model_check_ability(m, QKV_CAN_TAG | QKV_CAN_FILL), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "\"fill\": it can tag, embed"));
    qkv_free(t);
    qkv_free(rows);
    qkv_free(best);
    qkv_model_free(m);
}

/* ---- sentence-transformers ---- */

static void compare_embedding(const char *path)
{
    static const char *const texts[] = { "the cat sat on mat", "a dog" };
    qkv__safetensors golden;
    qkv_matrix *rows = NULL;
    qkv_model *m = qkv_model_load(path, NULL);
    if (!m) fail_msg("%s", qkv_error());
    assert_int_equal(qkv_embed(m, as_strings(texts, NULL, 2), 2, NULL, &rows), QKV_OK);
    assert_int_equal(qkv__safetensors_read(QKV_GOLDEN "/families/bert_dense/golden.safetensors", &golden), QKV_OK);
    const float *wanted = qkv__safetensors_floats(qkv__safetensors_find(&golden, "embedding"));
    assert_true(rows->rows == 2 && rows->width == 5);
    for (int i = 0; i < 10; i++)
        if (!(fabs((double)rows->data[i] - (double)wanted[i]) <= 1e-5))
            fail_msg("number %d is %.8g, PyTorch says %.8g", i, (double)rows->data[i], (double)wanted[i]);
    qkv__safetensors_free(&golden);
    qkv_free(rows);
    qkv_model_free(m);
}

/* Six poolings side by side, two Dense modules and Normalize; saved again, the same. */
static void modules_are_computed(void **state)
{
    (void)state;
    qkv_model *m = load_golden("bert_dense");
    compare_embedding(folder);
    char copy[128];
    snprintf(copy, sizeof copy, "%s/copy", folder);
    assert_int_equal(qkv_model_save(m, copy, NULL), QKV_OK);
    compare_embedding(copy);
    qkv_model *like = qkv_model_adapt(m, qkv__model_config(m), 1);
    assert_non_null(like);
    qkv_tokenizer *source, *target;
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_int_equal(qkv_model_set_tokenizers(like, source, NULL), QKV_OK);
    assert_int_equal(qkv_model_save(like, copy, NULL), QKV_OK);
    compare_embedding(copy);
    assert_int_equal(qkv_model_save(m, copy, "qkv"), QKV_UNSUPPORTED);
    qkv_model_free(like);
    qkv_model_free(m);
}

static void write_to(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* One pooling that qkv_pooling has too is computed as it is without these files. */
static void one_pooling(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        qkv_pooling pooling;
    } rows[] = { { "{\"pooling_mode_lasttoken\": true}", QKV_POOLING_LAST },
                 { "{\"pooling_mode_cls_token\": true}", QKV_POOLING_FIRST },
                 { "{\"pooling_mode_mean_tokens\": true}", QKV_POOLING_MEAN } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = "the cat";
        qkv_matrix *by_files = NULL, *by_option = NULL;
        qkv_model_free(load_golden("bert_dense"));
        write_to("modules.json", "[{\"type\": \"Pooling\", \"path\": \"1_Pooling\"}]");
        write_to("1_Pooling/config.json", rows[i].config);
        qkv_model *m = qkv_model_load(folder, NULL);
        assert_non_null(m);
        assert_int_equal(qkv__model_get_info(m)->pooling, rows[i].pooling);
        assert_int_equal(qkv_embed(m, as_strings(&text, NULL, 1), 1, NULL, &by_files), QKV_OK);
        assert_int_equal(qkv_embed(m, as_strings(&text, NULL, 1), 1,
                                   &(qkv_embed_opts){ .as = QKV_EMBED_AS_GIVEN, .pooling = rows[i].pooling }, &by_option),
                         QKV_OK);
        assert_memory_equal(by_files->data, by_option->data, sizeof(float) * DIM);
        qkv_free(by_files);
        qkv_free(by_option);
        qkv_model_free(m);
    }
}

static void wrong_modules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *config, *why;
    } rows[] = { { "1_Pooling/config.json", "{\"word_embedding_dimension\": 768, \"pooling_mode_mean_tokens\": true}",
                   "key \"word_embedding_dimension\": the model's is 16" },
                 { "2_Dense/config.json", "{\"in_features\": 96, \"out_features\": 8, \"bias\": false}",
                   "tensor \"linear.bias\" has no place: key \"bias\" of config.json is false" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_model_free(load_golden("bert_dense"));
        write_to(rows[i].file, rows[i].config);
        assert_null(qkv_model_load(folder, NULL));
        assert_int_equal(qkv_error_status(), QKV_FORMAT);
        if (!strstr(qkv_error(), rows[i].why)) fail_msg("%s", qkv_error());
    }
}

/* ---- memory that is not there ---- */

static qkv_model *used;

static qkv_status tag_once(void)
{
    const char *texts[] = { "the cats sat on the mat. a dog ran, the cat sat", "paris" };
    qkv_tagged *t = NULL;
    qkv_buffer text = { 0 };
    qkv_status status = qkv_tag(used, as_strings(texts, NULL, 2), 2, NULL, &t);
    assert_true(!status || !t || (!t->n && !t->texts));
    if (!status) status = qkv_tagged_lines(t, 0, 1, 1, &text);
    qkv_buffer_free(&text);
    qkv_free(t);
    return status;
}

static qkv_status answer_once(void)
{
    const char *context = "the cats sat on the mat. a dog ran, the cat sat";
    qkv_answers *a = NULL;
    qkv_buffer text = { 0 };
    qkv_status status = qkv_answer(used, qkv_cstr("a cat"), qkv_cstr(context), NULL, &a);
    assert_true(!status || !a || (!a->n && !a->best));
    if (!status) status = qkv_answers_lines(a, 0, &text);
    qkv_buffer_free(&text);
    qkv_free(a);
    return status;
}

static qkv_status embed_once(void)
{
    const char *text = "the cat";
    qkv_matrix *rows = NULL;
    qkv_status status = qkv_embed(used, as_strings(&text, NULL, 1), 1, NULL, &rows);
    qkv_free(rows);
    return status;
}

static qkv_status load_and_save_once(void)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s/copy", folder);
    qkv_model *m = qkv_model_load(folder, NULL);
    qkv_status status = m ? qkv_model_save(m, copy, NULL) : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        qkv_status (*once)(void);
        int least;
    } rows[] = { { "bert_tag", tag_once, 10 },
                 { "bert_answer", answer_once, 10 },
                 { "bert_dense", embed_once, 5 },
                 { "bert_dense", load_and_save_once, 20 } };
    size_t limit = qkv_packed_limit();
    qkv__set_packed_limit(0); /* a packed weight stays with its model, which is there before and after */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        used = load_golden(rows[i].name);
        assert_true(each_allocation_fails(rows[i].once) > rows[i].least);
        qkv_model_free(used);
    }
    qkv__set_packed_limit(limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_entities),
        cmocka_unit_test(spans_in_bytes_and_characters),
        cmocka_unit_test(scores_are_probabilities),
        cmocka_unit_test(long_texts_are_read_in_windows),
        cmocka_unit_test(answers_are_found),
        cmocka_unit_test(answers_have_an_order),
        cmocka_unit_test(scores_of_answers),
        cmocka_unit_test(passages_are_ranked),
        cmocka_unit_test(other_heads_are_refused),
        cmocka_unit_test(modules_are_computed),
        cmocka_unit_test(one_pooling),
        cmocka_unit_test(wrong_modules_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
    qkv_free(found);
    return failed;
}
