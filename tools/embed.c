/* embed.c: joins the files of web/ into one page, as C source. usage: embed explorer.html explorer.css strings.js
 * explorer.js OUT.c
 *
 * The lines "<!-- explorer.css -->" and "<!-- explorer.js -->" of the page become a <style> and a <script> with the two files,
 * and the comment "strings.js" of the script becomes that file. The page's data element must be there once, with the word null
 * in it. */
#include "sha256.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *problem)
{
    fprintf(stderr, "embed: %s: %s\n", path, problem);
    exit(1);
}

static char *read_file(const char *path)
{
    enum { LARGEST = 4 << 20 };
    FILE *f = fopen(path, "rb");
    char *text = malloc(LARGEST + 1);
    if (!f || !text) fail(path, "cannot be read");
    size_t n = fread(text, 1, LARGEST + 1, f);
    if (ferror(f) || n > LARGEST) fail(path, "cannot be read, or is larger than 4 MiB");
    text[n] = '\0';
    if (strlen(text) != n) fail(path, "has a NUL");
    fclose(f);
    return text;
}

/* The only place of piece in text. */
static char *find_once(const char *path, char *text, const char *piece)
{
    char *at = strstr(text, piece);
    if (!at || strstr(at + 1, piece)) {
        fprintf(stderr, "embed: %s: \"%s\" must be there, once\n", path, piece);
        exit(1);
    }
    return at;
}

static char *joined(const char *path, char *page, const char *mark, const char *open, const char *text, const char *close)
{
    char *at = find_once(path, page, mark);
    size_t room = strlen(page) + strlen(open) + strlen(text) + strlen(close) + 1;
    char *whole = malloc(room);
    if (!whole) fail(path, "out of memory");
    snprintf(whole, room, "%.*s%s%s%s%s", (int)(at - page), page, open, text, close, at + strlen(mark));
    free(page);
    return whole;
}

static void put_base64(FILE *out, const unsigned char *bytes, size_t n)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned long bits = (unsigned long)bytes[i] << 16;
        if (i + 1 < n) bits |= (unsigned long)bytes[i + 1] << 8;
        if (i + 2 < n) bits |= bytes[i + 2];
        for (size_t k = 0; k < 4; k++) fputc(i + k > n ? '=' : signs[bits >> (18 - 6 * k) & 63], out);
    }
}

/* Of the page's own script and no other one: what a model says can then never run, however it comes into the page. */
static void put_policy(FILE *out, const char *script)
{
    sha256 s;
    char hex[65];
    unsigned char hash[32];
    sha256_start(&s);
    sha256_add(&s, script, strlen(script));
    sha256_end(&s, hex);
    for (int i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        hash[i] = (unsigned char)byte;
    }
    fputs("const char qkv__explorer_policy[] =\n    \"default-src 'none'; script-src 'sha256-", out);
    put_base64(out, hash, sizeof hash);
    fputs("'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \"\n"
          "    \"form-action 'none'; base-uri 'none'; frame-ancestors 'none'\";\n",
          out);
}

static void put_bytes(FILE *out, const char *page)
{
    fputs("const unsigned char qkv__explorer_page[] = {", out);
    for (size_t i = 0; page[i]; i++) fprintf(out, "%s%u,", i % 24 ? "" : "\n    ", (unsigned char)page[i]);
    fputs("\n};\nconst size_t qkv__explorer_size = sizeof qkv__explorer_page;\n", out);
}

int main(int argc, char **argv)
{
    if (argc != 6) fail("usage", "embed explorer.html explorer.css strings.js explorer.js OUT.c");
    char *page = read_file(argv[1]), *style = read_file(argv[2]), *words = read_file(argv[3]), *script = read_file(argv[4]);
    script = joined(argv[4], script, "/* strings.js */\n", "", words, "");
    if (strstr(style, "</style")) fail(argv[2], "must not have </style in it");
    if (strstr(script, "</script")) fail(argv[4], "must not have </script in it");
    static const char data[] = "<script type=\"application/json\" id=\"qkv-data\">";
    find_once(argv[1], page, "<script type=\"application/json\" id=\"qkv-data\">null</script>");
    page = joined(argv[1], page, "<!-- explorer.css -->", "<style>", style, "</style>");
    page = joined(argv[1], page, "<!-- explorer.js -->", "<script>", script, "</script>");
    FILE *out = fopen(argv[5], "wb");
    if (!out) fail(argv[5], "cannot be written");
    fputs("/* Made of web/ by tools/embed.c. */\n#include \"serve/page.h\"\n\n", out);
    put_bytes(out, page);
    fprintf(out, "const size_t qkv__explorer_data = %zu;\n", (size_t)(find_once(argv[1], page, data) - page) + strlen(data));
    put_policy(out, script);
    if (fclose(out)) fail(argv[5], "cannot be written");
    free(page), free(style), free(words), free(script);
    return 0;
}
