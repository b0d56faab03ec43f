/* 12_chat.c: a talk of two turns: the second reads what is new alone. Given the folder of a model with a chat template, it talks
 * with that; else with a small model of random weights, whose answers have no meaning: how it is asked is the same.
 * usage: 12_chat [FOLDER] */
#include <qkv/qkv.h>

#include <stdio.h>
#include <string.h>

static const char template[] = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
                               "{% if add_generation_prompt %}<s>assistant: {% endif %}";

static qkv_model *make_model(void)
{
    static const char text[] = "user assistant system the cat sat on the mat and the dog sat on the cat";
    qkv_word_counts *w = qkv_word_counts_new();
    qkv_tokenizer *t = w && !qkv_word_counts_add(w, text, strlen(text)) ? qkv_tokenizer_train(w, NULL) : NULL;
    const qkv_config o = {
        .vocabulary = qkv_tokenizer_vocab_size(t), .decoder_layers = 2, .dim = 32, .heads = 4, .d_ff = 64, .pre_norm = 1
    };
    qkv_model *m = t ? qkv_model_new(&o, 7) : NULL;
    qkv_word_counts_free(w);
    if (m && !qkv_model_set_tokenizers(m, t, NULL)) return m;
    qkv_tokenizer_free(t);
    qkv_model_free(m);
    return NULL;
}

static qkv_status print_piece(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)so_far;
    fwrite(piece.data, 1, piece.length, data);
    return QKV_OK;
}

static qkv_status talk(qkv_chat *c)
{
    static const char *const messages[] = { "where is the cat?", "and the dog?" };
    const qkv_generate_opts opts = { .max_tokens = 12, .on_text = print_piece, .on_text_data = stdout };
    qkv_generated *answer = NULL;
    qkv_status status = qkv_chat_set_system(c, qkv_cstr("be brief"));
    for (int i = 0; i < 2 && !status; i++) {
        qkv_chat_usage usage = QKV_OPTS(qkv_chat_usage);
        printf("> %s\n", messages[i]);
        status = qkv_chat_add(c, "user", qkv_cstr(messages[i]));
        if (!status) status = qkv_chat_reply(c, &opts, &answer, &usage);
        if (!status) printf("\n(%lld tokens, %lld read)\n", (long long)usage.prompt_tokens, (long long)usage.evaluated_tokens);
    }
    qkv_free(answer);
    return status;
}

int main(int argc, char **argv)
{
    qkv_model *m = argc > 1 ? qkv_model_load(argv[1], NULL) : make_model();
    qkv_chat *c = m ? qkv_chat_new(m, &(qkv_chat_opts){ .chat_template = argc > 1 ? NULL : template }) : NULL;
    qkv_status status = c ? talk(c) : qkv_error_status();
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_chat_free(c);
    qkv_model_free(m);
    qkv_shutdown();
    return (int)status;
}
