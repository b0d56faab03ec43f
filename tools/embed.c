/* embed.c: joins a page of web/ and the files it names into one, as C source. usage: embed NAME PAGE.html OUT.c
 *
 * <link rel="stylesheet" href="X"> becomes a <style> and <script src="X"></script> a <script> with that file, which lies beside
 * the page; the line of a script that says "strings.js" in a comment becomes that file. Before the first script of the live page
 * come the elements that "qkv page" fills, and the text of the worker. The result is qkv__NAME_page, _size and _policy. */
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SCRIPTS = 32, MOST_PATH = 1024 };

static const char *page_path;
static char *scripts[MOST_SCRIPTS]; /* for the policy */
static int n_scripts;

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

/* A file beside the page; the name ends with a quote. */
static char *read_beside(const char *name, size_t length)
{
    char path[MOST_PATH];
    const char *slash = strrchr(page_path, '/');
    int folder = slash ? (int)(slash - page_path) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%.*s", folder, page_path, (int)length, name) >= MOST_PATH) fail(name, "is too long");
    return read_file(path);
}

/* page with the n bytes at `at` replaced, in memory of its own. */
static char *replaced(char *page, char *at, size_t n, const char *open, const char *text, const char *close)
{
    size_t before = (size_t)(at - page), room = strlen(page) + strlen(open) + strlen(text) + strlen(close) + 1;
    char *whole = malloc(room);
    if (!whole) fail(page_path, "out of memory");
    snprintf(whole, room, "%.*s%s%s%s%s", (int)before, page, open, text, close, at + n);
    free(page);
    return whole;
}

static char *with_strings(char *script)
{
    static const char comment[] = "/* strings.js */\n";
    char *at = strstr(script, comment);
    if (!at) return script;
    char *strings = read_beside("strings.js", 10);
    script = replaced(script, at, strlen(comment), "", strings, "");
    free(strings);
    return script;
}

/* Every tag that begins so, up to its closing quote, and ends so, becomes the file it names. */
static char *with_files(char *page, const char *tag, const char *end, const char *open, const char *close)
{
    for (char *at; (at = strstr(page, tag));) {
        char *name = at + strlen(tag), *quote = strchr(name, '"');
        if (!quote || strncmp(quote + 1, end, strlen(end))) fail(page_path, "has a tag that does not end as it should");
        char *text = with_strings(read_beside(name, (size_t)(quote - name)));
        if (strstr(text, close)) fail(page_path, "names a file that has the end of its own tag in it");
        page = replaced(page, at, (size_t)(quote - at) + 1 + strlen(end), open, text, close);
        if (!strcmp(open, "<script>") && n_scripts < MOST_SCRIPTS) scripts[n_scripts++] = text;
        else if (!strcmp(open, "<script>")) fail(page_path, "has too many scripts");
        else free(text);
    }
    return page;
}

/* What a page with an engine of its own holds; "qkv page" puts the code and the model in place of null. The code and the worker
 * come before the first script, which starts them; the model comes before the second, which sends it. */
static char *with_engine(char *page)
{
    static const char script[] = "<script", end[] = "</script>\n";
    char *first = strstr(page, script), *second = first ? strstr(first + 1, script) : NULL,
         *worker = read_beside("worker.js", 9);
    if (!second || strstr(worker, "</script")) fail(page_path, "has no two scripts, or its worker has the end of one");
    page = replaced(page, second, 0, "<script type=\"application/json\" id=\"qkv-model\">", "null", end);
    page = replaced(page, strstr(page, script), 0,
                    "<script type=\"application/json\" id=\"qkv-engine\">null</script>\n"
                    "<script type=\"text/plain\" id=\"qkv-worker\">",
                    worker, end);
    free(worker);
    return page;
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

static void put_hash(FILE *out, const char *script)
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
    fputs(" 'sha256-", out);
    put_base64(out, hash, sizeof hash);
    fputs("'", out);
}

/* Of the page's own scripts and no other one: what a model says can then never run, however it comes into the page. */
static void put_policy(FILE *out, const char *name, int is_live)
{
    fprintf(out, "const char qkv__%s_policy[] =\n    \"default-src 'none'; script-src", name);
    for (int i = 0; i < n_scripts; i++) put_hash(out, scripts[i]);
    fprintf(out, "%s; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \"\n",
            is_live ? " 'wasm-unsafe-eval'; worker-src blob:" : "");
    fputs("    \"form-action 'none'; base-uri 'none'; frame-ancestors 'none'\";\n", out);
}

static void put_bytes(FILE *out, const char *name, const char *page)
{
    fprintf(out, "const unsigned char qkv__%s_page[] = {", name);
    for (size_t i = 0; page[i]; i++) fprintf(out, "%s%u,", i % 24 ? "" : "\n    ", (unsigned char)page[i]);
    fprintf(out, "\n};\nconst size_t qkv__%s_size = sizeof qkv__%s_page;\n", name, name);
}

int main(int argc, char **argv)
{
    if (argc != 4) fail("usage", "embed NAME PAGE.html OUT.c");
    const char *name = argv[1];
    int is_live = !strcmp(name, "live");
    page_path = argv[2];
    char *page = read_file(page_path);
    if (is_live) page = with_engine(page);
    page = with_files(page, "<link rel=\"stylesheet\" href=\"", ">", "<style>", "</style>");
    page = with_files(page, "<script src=\"", "></script>", "<script>", "</script>");
    FILE *out = fopen(argv[3], "wb");
    if (!out) fail(argv[3], "cannot be written");
    fputs("/* Made of web/ by tools/embed.c. */\n#include \"serve/page.h\"\n\n", out);
    put_bytes(out, name, page);
    put_policy(out, name, is_live);
    if (fclose(out)) fail(argv[3], "cannot be written");
    for (int i = 0; i < n_scripts; i++) free(scripts[i]);
    free(page);
    return 0;
}
