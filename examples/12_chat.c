/* 12_chat.c MODEL: a conversation. Each line of standard input is a message; the session reads only what is new. Ctrl-C ends a
 * reply, end of input the program. MODEL: a folder with a chat template. */
#include <qkv/qkv.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted;
static void interrupt(int signal) { (void)signal, interrupted = 1; }
static int cancel(void *data) { return (void)data, interrupted; }

static qkv_status print(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)so_far, fwrite(piece.data, 1, piece.length, data), fflush(data);
    return QKV_OK;
}

int main(int argc, char **argv)
{
    char line[4096];
    if (argc < 2) return fprintf(stderr, "usage: 12_chat MODEL\n"), QKV_USAGE;
    qkv_model *m = qkv_model_load(argv[1], NULL);
    qkv_chat *c = m ? qkv_chat_new(m, NULL) : NULL;
    const qkv_hooks hooks = { .cancel = cancel };
    qkv_generate_opts how = QKV_OPTS(qkv_generate_opts);
    qkv_generated *reply = NULL;
    qkv_status status = c ? qkv_chat_set_system(c, qkv_cstr("Answer briefly.")) : qkv_error_status();
    if (!status) status = qkv_sampling_defaults(m, &how);
    how.max_tokens = 100, how.hooks = &hooks, how.on_text = print, how.on_text_data = stdout;
    signal(SIGINT, interrupt);
    while (!status && fgets(line, sizeof line, stdin)) {
        qkv_chat_usage usage = QKV_OPTS(qkv_chat_usage);
        interrupted = 0;
        status = qkv_chat_add(c, "user", (qkv_str){ line, strcspn(line, "\n") });
        if (!status) status = qkv_chat_reply(c, &how, &reply, &usage);
        if (!status) printf("\n(%lld tokens, %lld read)\n", (long long)usage.prompt_tokens, (long long)usage.evaluated_tokens);
    }
    if (status) fprintf(stderr, "%s\n", qkv_error());
    qkv_free(reply);
    qkv_chat_free(c);
    qkv_model_free(m);
    return (int)status;
}
