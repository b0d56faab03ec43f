/* 10_cpp.cpp PAIRS.tsv: libqkv from C++17: trains a translator for some steps, translates, and runs a session of it. */
#include <qkv/qkv.h>

#include <cstdio>

int main(int argc, char **argv)
{
    if (argc < 2) return QKV_USAGE;
    qkv_tokenizer_opts words = QKV_OPTS(qkv_tokenizer_opts);
    words.vocab_size = 1100;
    qkv_tokenizer *t = qkv_tokenizer_train_files(argv + 1, 1, &words);
    qkv_config config = QKV_OPTS(qkv_config);
    qkv_status status = t ? qkv_config_preset("tiny", qkv_tokenizer_vocab_size(t), &config) : qkv_error_status();
    qkv_model *m = status ? nullptr : qkv_model_new(&config, 1);
    qkv_dataset *pairs = qkv_dataset_new();
    if (!status) status = qkv_model_set_tokenizers(m, t, nullptr); /* the model owns t now */
    if (!status) status = qkv_dataset_add_files(pairs, m, argv[1], nullptr, nullptr, nullptr);
    qkv_batch_opts batches = QKV_OPTS(qkv_batch_opts);
    batches.start = 1, batches.end = 2;
    qkv_trainer_opts trainer = QKV_OPTS(qkv_trainer_opts);
    trainer.batches = &batches;
    qkv_train_opts run = QKV_OPTS(qkv_train_opts);
    run.trainer = &trainer, run.steps = 4;
    qkv_train_result *trained = nullptr;
    if (!status) status = qkv_train(m, pairs, &run, &trained);
    if (!status) std::printf("trained for %lld steps\n", (long long)trained->state->step);
    const qkv_str text = qkv_cstr("I love you");
    qkv_translate_opts how = QKV_OPTS(qkv_translate_opts);
    how.max_length = 5;
    qkv_translations *found = nullptr;
    if (!status) status = qkv_translate(m, &text, 1, &how, &found);
    if (!status) std::printf("translated %lld text\n", (long long)found->n);
    qkv_session *s = status ? nullptr : qkv_session_new(m, nullptr);
    qkv_encoding *source = nullptr;
    if (s) status = qkv_model_tokenize(m, QKV_SIDE_SOURCE, text, nullptr, &source);
    const qkv_tokens tokens = { sizeof tokens, source ? source->ids : nullptr, nullptr, 1, source ? source->n : 0, nullptr };
    if (s && !status) status = qkv_session_encode(s, &tokens);
    if (s && !status) status = qkv_session_read(s, &batches.start, nullptr, QKV_LOGITS_LAST);
    if (s && !status) std::printf("read %lld token\n", (long long)qkv_session_length(s, 0));
    if (status) std::fprintf(stderr, "%s\n", qkv_error());
    qkv_session_free(s), qkv_free(source), qkv_free(found), qkv_free(trained), qkv_dataset_free(pairs), qkv_model_free(m);
    return status;
}
