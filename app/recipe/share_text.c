/* share_text.c: the text of a training, read and cut into ids by one rank for all of them. */
#include "job.h"
#include "share_text.h"

#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/dist/dist.h"
#include "../../src/base/buffer.h"
#include "../../src/data/pairs.h"
#include "../../src/token/tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct shared_path {
    char text[4096];
} shared_path;

static shared_path path_in_folder(const qkv_training *t, const char *name)
{
    shared_path p;
    snprintf(p.text, sizeof p.text, "%s/%s", t->o.v.out, name);
    return p;
}

static qkv_status write_sign(const char *path, const char *sign)
{
    qkv__writer w;
    qkv_status status = qkv__write_begin(&w, path);
    if (!status) status = qkv__write_put(&w, sign, strlen(sign));
    if (!status) status = qkv__write_end(&w);
    if (status) qkv__write_abandon(&w);
    return status;
}

static bool sees_sign(const char *path, const char *sign)
{
    qkv__bytes found = { 0 };
    bool sees = !qkv__file_read(path, 4096, &found) && found.size == strlen(sign) && !memcmp(found.data, sign, found.size);
    qkv__bytes_free(&found);
    return sees;
}

/* Whether it is so on every rank. */
static qkv_status ask_all(bool own, bool *all)
{
    size_t ranks = (size_t)qkv_dist_size();
    bool *each = qkv__alloc(ranks);
    qkv_status status = each ? qkv__dist_share(&own, sizeof own, each) : QKV_MEMORY;
    *all = !status;
    for (size_t r = 0; r < ranks && *all; r++) *all = each[r];
    qkv__release(each, ranks);
    return status;
}

/* Whether every rank finds what rank 0 writes: the folder of the same name may be another elsewhere. */
static qkv_status find_common_folder(const qkv_training *t, bool *is_common)
{
    const shared_path path = path_in_folder(t, "ranks.0.tmp");
    char sign[64] = "";
    if (!qkv_dist_rank()) {
        snprintf(sign, sizeof sign, "%ld %lld", (long)getpid(), (long long)time(NULL));
        if (write_sign(path.text, sign)) sign[0] = '\0';
    }
    qkv_status status = qkv__dist_copy(sign, sizeof sign);
    if (!status) status = ask_all(*sign && sees_sign(path.text, sign), is_common);
    if (!qkv_dist_rank() && *sign) unlink(path.text);
    return status;
}

qkv_status qkv__share_status(qkv_status status)
{
    char sentence[QKV_SENTENCE_MAX] = "";
    if (status) snprintf(sentence, sizeof sentence, "%s", qkv_error());
    qkv_status copied = qkv__dist_copy(&status, sizeof status);
    if (!copied) copied = qkv__dist_copy(sentence, sizeof sentence);
    if (copied) return copied;
    return status ? qkv__fail_again(status, sentence) : QKV_OK;
}

/* The file is gone from the folder once all have it open. */
static qkv_status share_pairs(const qkv_training *t, qkv_dataset *p)
{
    const shared_path path = path_in_folder(t, "ids.0.tmp");
    bool is_open = true;
    qkv_status status = qkv__share_status(qkv_dist_rank() ? QKV_OK : qkv__dataset_write(p, path.text));
    if (!status) {
        qkv_status opened = qkv__dataset_open(p, path.text), asked = ask_all(!opened, &is_open);
        status = opened ? opened : asked;
    }
    if (!qkv_dist_rank()) unlink(path.text);
    return status || is_open ? status : qkv__fail(QKV_IO, "%s: another rank cannot open it", path.text);
}

static qkv_status send_pairs(qkv_dataset *p)
{
    qkv__pair_arrays all = qkv__dataset_arrays(p);
    int64_t counts[] = { all.n, all.n_ids };
    qkv_status status = qkv__dist_copy(counts, sizeof counts);
    if (!status && qkv_dist_rank()) status = qkv__dataset_make_room(p, counts[0], counts[1]);
    if (status) return status;
    all = qkv__dataset_arrays(p);
    status = qkv__dist_copy(all.ends, 2 * sizeof *all.ends * (size_t)counts[0]);
    return status ? status : qkv__dist_copy(all.ids, sizeof *all.ids * (size_t)counts[1]);
}

qkv_status qkv__read_for_all(qkv_training *t, qkv__text_reader *read, void *told, size_t bytes)
{
    bool is_common = false;
    if (qkv_dist_size() == 1) return read(t, told);
    qkv_status status = t->o.v.out && !t->o.v.dry_run ? find_common_folder(t, &is_common) : QKV_OK;
    if (!status) status = qkv__share_status(qkv_dist_rank() ? QKV_OK : read(t, told));
    if (!status) status = qkv__dist_copy(told, bytes);
    if (!status) status = is_common ? share_pairs(t, t->pairs) : send_pairs(t->pairs);
    if (status) return status;
    return is_common ? share_pairs(t, t->valid) : send_pairs(t->valid);
}

/* ---- texts without a newline ---- */

qkv_status qkv__share_lines(char *const *lines, int64_t n, qkv__line_taker *take, void *data)
{
    qkv_buffer all = { 0 };
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !qkv_dist_rank() && !status; i++) {
        status = qkv__buffer_put(&all, lines[i], strlen(lines[i]));
        if (!status) status = qkv__buffer_put(&all, "\n", 1);
    }
    if (!status) status = qkv_dist_broadcast(&all);
    char *at = all.data, *end;
    for (; qkv_dist_rank() && !status && at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        status = take(data, at);
    }
    qkv_buffer_free(&all);
    return status;
}

static qkv_status add_shared_label(void *labels, const char *name) { return qkv__label_add(labels, name); }

qkv_status qkv__share_labels(qkv__label_set *labels)
{
    qkv_status status = qkv__share_lines(labels->names, labels->n, add_shared_label, labels);
    return status ? status : qkv__dist_copy(labels->counts, sizeof *labels->counts * (size_t)labels->n);
}

/* ---- the tokenizer ---- */

/* No bytes: there is none. */
qkv_status qkv__share_tokenizer(qkv_tokenizer **t)
{
    qkv_buffer text = { 0 };
    bool has = !qkv_dist_rank() && *t;
    qkv_status status = qkv__share_status(has ? qkv__tokenizer_write(*t, &text) : QKV_OK);
    if (!status) status = qkv_dist_broadcast(&text);
    if (!status && qkv_dist_rank() && text.length && !(*t = qkv__tokenizer_read("the tokenizer of rank 0", &text)))
        status = qkv_error_status();
    qkv_buffer_free(&text);
    return status;
}
