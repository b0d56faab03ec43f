/* embed_texts.c: puts text files into a C source. usage: embed_texts OUT.c FILE...
 *
 * OUT.c has their names without folders and their texts, in two arrays that end with NULL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_or_exit(const char *path, const char *mode)
{
    FILE *f = fopen(path, mode);
    if (f) return f;
    fprintf(stderr, "embed_texts: %s: cannot be opened\n", path);
    exit(1);
}

static void put_text(FILE *out, const char *path)
{
    FILE *in = open_or_exit(path, "rb");
    fputs("    \"", out);
    for (int c; (c = getc(in)) != EOF;) {
        if (c == '\n') fputs("\\n\"\n    \"", out);
        else if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else putc(c, out);
    }
    fputs("\",\n", out);
    fclose(in);
}

int main(int argc, char **argv)
{
    if (argc < 3) return fputs("usage: embed_texts OUT.c FILE...\n", stderr), 1;
    FILE *out = open_or_exit(argv[1], "wb");
    fputs(
        "/* Made by tools/embed_texts.c. */\n#include \"learn/exercise.h\"\n\nconst char *const exercise_file_names[] = {\n",
        out);
    for (int i = 2; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        fprintf(out, "    \"%s\",\n", slash ? slash + 1 : argv[i]);
    }
    fputs("    NULL,\n};\nconst char *const exercise_file_texts[] = {\n", out);
    for (int i = 2; i < argc; i++) put_text(out, argv[i]);
    fputs("    NULL,\n};\n", out);
    return fclose(out) ? 1 : 0;
}
