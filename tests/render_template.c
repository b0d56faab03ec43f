/* render_template.c: a chat template with variables: what it writes.
 * usage: render_template TEMPLATE.jinja VARIABLES.json [SECONDS SINCE 1970] */
#include "jinja/template.h"

#include <stdio.h>
#include <stdlib.h>

static int failed(void)
{
    fprintf(stderr, "%s\n", qkv_error());
    return (int)qkv_error_status();
}

/* As it is, newlines at its end too. */
static char *read_whole(const char *path, size_t *length)
{
    enum { MOST = 1 << 22 };
    FILE *f = fopen(path, "rb");
    char *text = malloc(MOST);
    *length = f && text ? fread(text, 1, MOST, f) : 0;
    if (f) fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    qkv_buffer out = { 0 };
    size_t source_length, length;
    qkv__chat_render_opts opts = { .size = sizeof opts };
    if (argc < 3) return 2;
    if (argc > 3) opts.now = atoll(argv[3]);
    char *source = read_whole(argv[1], &source_length), *variables = read_whole(argv[2], &length);
    qkv__chat_template *t = qkv__chat_template_new(source, source_length);
    if (!t || qkv__chat_template_render_json(t, variables, length, &opts, &out)) return failed();
    fwrite(out.data, 1, out.length, stdout);
    qkv__chat_template_free(t);
    free(source);
    free(variables);
    qkv_buffer_free(&out);
    return 0;
}
