/* examples.c: texts of the training that a page offers to begin with, as examples.txt beside the model. */
#include "job.h"

#include <qkv/unstable/util.h>
#include "training.h"

#include "../../src/model/model_info.h"
#include "../../src/data/pairs.h"
#include "../../src/token/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { MAX_EXAMPLES = 5, MAX_TRIES = 64, PROMPT_BYTES = 24, SHORT_BYTES = 60, LONG_BYTES = 240, PATH_BYTES = 4096 };

/* Cuts a text to at most so many bytes, between words; between characters where there are none. */
static void cut_text(qkv_buffer *text, size_t most)
{
    if (text->length <= most) return;
    size_t end = most;
    while (end && text->data[end] != ' ') end--;
    if (!end)
        for (end = most; ((unsigned char)text->data[end] & 0xc0) == 0x80;) end--;
    text->data[text->length = end] = '\0';
}

/* The text of pair i: *text is empty with an unknown token or a line end in it, or with more than `most` bytes unless it may be cut. */
static qkv_status take_text(const qkv_training *t, const qkv_dataset *pairs, int64_t i, size_t most, qkv_buffer *text)
{
    const qkv_tokenizer *tokenizer = qkv_model_tokenizer(t->model, QKV_SIDE_SOURCE);
    bool is_prompt = t->job->bit == QKV__GENERATE,
         may_be_cut = is_prompt || (most == LONG_BYTES && t->job->bit != QKV__TRANSLATE);
    int64_t n;
    const int32_t *ids = qkv__dataset_side(pairs, i, is_prompt, &n);
    bool is_known = n > 0;
    for (int64_t k = 0; k < n; k++) is_known = is_known && ids[k] != tokenizer->unknown;
    text->length = 0;
    if (!is_known) return QKV_OK;
    qkv_text *decoded = NULL;
    qkv_status status = qkv_tokenizer_decode(tokenizer, ids, n, QKV_DECODE_SKIP_SPECIAL, &decoded);
    size_t spaces = status ? 0 : strspn(decoded->data, " ");
    if (!status) status = qkv__buffer_put(text, decoded->data + spaces, decoded->length - spaces);
    qkv_free(decoded);
    if (status) return status;
    if (may_be_cut) cut_text(text, most);
    if (text->length > most || memchr(text->data, '\n', text->length)) text->length = 0;
    return QKV_OK;
}

/* Adds up to MAX_EXAMPLES different texts of at most so many bytes, evenly spaced, each on a line. */
static qkv_status collect_texts(const qkv_training *t, const qkv_dataset *pairs, size_t most, char *lines, size_t room)
{
    int64_t n = qkv_dataset_size(pairs), tries = n < MAX_TRIES ? n : MAX_TRIES;
    qkv_buffer text = { 0 };
    qkv_status status = QKV_OK;
    size_t used = 0;
    *lines = '\0';
    for (int64_t i = 0, found = 0; i < tries && found < MAX_EXAMPLES && !status; i++) {
        status = take_text(t, pairs, i * n / tries, most, &text);
        if (status || !text.length || strstr(lines, text.data)) continue;
        used += (size_t)snprintf(lines + used, room - used, "%s\n", text.data);
        found++;
    }
    qkv_buffer_free(&text);
    return status;
}

qkv_status qkv__write_examples(const qkv_training *t)
{
    char path[PATH_BYTES], lines[MAX_EXAMPLES * (LONG_BYTES + 1) + 1];
    const qkv_dataset *pairs = qkv_dataset_size(t->valid) ? t->valid : t->pairs;
    size_t most = t->job->bit == QKV__GENERATE ? PROMPT_BYTES : SHORT_BYTES;
    if (!qkv_model_tokenizer(t->model, QKV_SIDE_SOURCE)) return QKV_OK;
    qkv_status status = collect_texts(t, pairs, most, lines, sizeof lines);
    if (!status && !*lines) status = collect_texts(t, pairs, LONG_BYTES, lines, sizeof lines);
    if (status || !*lines) return status;
    snprintf(path, sizeof path, "%.4000s/" QKV__EXAMPLES, t->o.v.out);
    return qkv_file_write(path, lines, strlen(lines));
}
