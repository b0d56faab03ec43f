/* live.c: the live page as a file that holds a model and the engine that runs it. */
#include <qkv/model.h>
#include <qkv/unstable/util.h>
#include "serve.h"

#include "../../src/base/file.h"
#include "../../src/base/options.h"
#include "../engine/json.h"
#include "../../src/io/safetensors.h"
#include "../../src/model/model_info.h"
#include "../../src/model/special_tokens.h"
#include "checkpoints.h"
#include "page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { MOST_PATH = 4096, USUAL_BITS = 16, CHECKPOINT_BYTES = 8 << 20 };

size_t qkv__page_place(const unsigned char *page, size_t size, const char *id)
{
    char mark[96];
    int length = snprintf(mark, sizeof mark, "<script type=\"application/json\" id=\"%s\">null", id);
    const unsigned char *at = memmem(page, size, mark, (size_t)length);
    return at ? (size_t)(at - page) + (size_t)length - strlen("null") : size;
}

/* ---- numbers of 16 bits ---- */

/* The nearest bfloat16, of two that are as near the even one. NaN stays one. */
static uint16_t bfloat_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool is_rounded(const qkv__stored *t) { return t->ndim > 1 && !strcmp(t->dtype, "F32"); }

/* Matrices of float32 become bfloat16, which lie in `room`; everything else stays as it is. */
static void lay_out_rounded(const qkv__safetensors *s, qkv__to_store *all, uint16_t *room)
{
    for (int i = 0; i < s->n; i++) {
        const qkv__stored *t = &s->tensors[i];
        all[i] = (qkv__to_store){ t->name, t->ndim, t->shape, t->count, t->data, NULL, NULL, t->dtype };
        if (!is_rounded(t)) continue;
        for (int64_t k = 0; k < t->count; k++) {
            float x;
            memcpy(&x, t->data + 4 * k, sizeof x);
            room[k] = bfloat_of(x);
        }
        all[i].data = room;
        all[i].dtype = "BF16";
        room += t->count;
    }
}

static qkv_status write_rounded(const char *from, const char *to)
{
    qkv__safetensors s;
    qkv_status status = qkv__safetensors_read(from, &s);
    if (status) return status;
    size_t numbers = 1, bytes = sizeof(qkv__to_store) * ((size_t)s.n + 1);
    for (int i = 0; i < s.n; i++) numbers += is_rounded(&s.tensors[i]) ? (size_t)s.tensors[i].count : 0;
    qkv__to_store *all = qkv__alloc(bytes);
    uint16_t *room = qkv__alloc(2 * numbers);
    if (!all || !room) status = QKV_MEMORY;
    if (!status) lay_out_rounded(&s, all, room);
    if (!status) status = qkv__safetensors_write(to, s.n, all, 0, NULL);
    qkv__release(all, bytes);
    qkv__release(room, 2 * numbers);
    qkv__safetensors_free(&s);
    return status;
}

/* ---- the model's files ---- */

typedef struct packing {
    const char *folder, *name, *engine;
    int bits, checkpoints; /* as in qkv_page_opts */
    char made[MOST_PATH];  /* a folder of our own, for what is made of the weights; "": none */
    qkv__json j;
    int n_files; /* that were put into it */
} packing;

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* What a model is loaded from; a folder may hold much else, such as a training. */
static bool is_needed(const char *name)
{
    static const char *const begins[] = { "config",
                                          "examples",
                                          "generation_config",
                                          "tokenizer",
                                          "target_tokenizer",
                                          "special_tokens_map",
                                          "added_tokens",
                                          "vocab",
                                          "merges",
                                          "model",
                                          "source",
                                          "target",
                                          "spiece",
                                          "sentencepiece",
                                          "sentence_",
                                          "modules",
                                          "spm" };
    static const char *const ends[] = { ".json", ".safetensors", ".model", ".txt", ".spm" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (size_t k = 0; ends_with(name, ends[i]) && k < sizeof begins / sizeof *begins; k++)
            if (!strncmp(name, begins[k], strlen(begins[k]))) return true;
    return false;
}

/* The first bytes of all pairs, then the second ones: the exponents of bfloat16 numbers lie together then, and are packed to
 * less than half. An odd byte at the end comes last. */
static qkv_status split_pairs(qkv__bytes *file)
{
    size_t half = file->size / 2;
    unsigned char *apart = qkv__alloc(half + 1);
    if (!apart) return QKV_MEMORY;
    for (size_t i = 0; i < half; i++) apart[i] = file->data[2 * i + 1];
    for (size_t i = 0; i < half; i++) file->data[i] = file->data[2 * i];
    memcpy(file->data + half, apart, half);
    qkv__release(apart, half + 1);
    return QKV_OK;
}

void qkv__put_gzip(qkv__json *j, const void *bytes, size_t size)
{
    z_stream z = { .next_in = (z_const Bytef *)bytes, .avail_in = (uInt)size };
    if (size > QKV_PAGE_BYTES || deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        j->status = QKV_MEMORY;
        return;
    }
    size_t room = deflateBound(&z, (uLong)size);
    unsigned char *packed = qkv__alloc(room);
    z.next_out = packed;
    z.avail_out = (uInt)room;
    if (packed && deflate(&z, Z_FINISH) == Z_STREAM_END) qkv__put_base64(j, packed, (size_t)z.total_out);
    else j->status = QKV_MEMORY;
    deflateEnd(&z);
    qkv__release(packed, room);
}

typedef enum file_kind { AS_IT_IS, TO_BE_PACKED, PAIRS_SPLIT } file_kind;

static qkv_status put_file(packing *p, const char *path, file_kind kind)
{
    qkv__bytes file;
    qkv_status status = qkv__file_read(path, QKV_PAGE_BYTES, &file);
    if (status) return status;
    if (kind == PAIRS_SPLIT) status = split_pairs(&file);
    if (kind == AS_IT_IS && (file.size < 2 || file.data[0] != 0x1f || file.data[1] != 0x8b))
        status = qkv__fail(QKV_FORMAT, "%s is not the engine: expected engine.wasm.gz, which \"make wasm\" makes", path);
    if (kind == AS_IT_IS) qkv__put_base64(&p->j, file.data, file.size);
    else if (!status) qkv__put_gzip(&p->j, file.data, file.size);
    qkv__bytes_free(&file);
    return status;
}

/* A file of a model; weights in 16 bits are made first. */
static qkv_status put_model_file(packing *p, const char *folder, const char *name)
{
    char path[MOST_PATH], rounded[MOST_PATH];
    bool is_made = p->bits == 16 && ends_with(name, ".safetensors");
    if (snprintf(path, sizeof path, "%s/%s", p->bits == 8 ? p->made : folder, name) >= MOST_PATH ||
        snprintf(rounded, sizeof rounded, "%s/%s", p->made, name) >= MOST_PATH)
        return qkv__fail(QKV_USAGE, "page: the path of %s is too long", name);
    qkv_status status = is_made ? write_rounded(path, rounded) : QKV_OK;
    return status ? status : put_file(p, is_made ? rounded : path, is_made ? PAIRS_SPLIT : TO_BE_PACKED);
}

/* Loading it tells what is wrong with it, and gives what is written in 8 bits. */
static qkv_status check_model(const packing *p, const char *folder)
{
    const qkv_load_opts opts = { .dtype = p->bits == 8 ? QKV_DTYPE_INT8 : QKV_DTYPE_STORED };
    qkv_model *m = qkv_model_load(folder, &opts);
    qkv_status status = m ? QKV_OK : qkv_error_status();
    if (!status && !qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) status = qkv__refuse_without_tokenizer(m, "page");
    if (!status && p->bits == 8) status = qkv_model_save(m, p->made, NULL);
    qkv_model_free(m);
    return status;
}

/* ,"INSIDE/NAME": before a file; the first one of all has no comma. */
static void put_file_name(packing *p, const char *inside, const char *name)
{
    char whole[MOST_PATH];
    snprintf(whole, sizeof whole, "%.1000s%s%.1000s", inside, *inside ? "/" : "", name);
    qkv__put_raw(&p->j, p->n_files++ ? "," : "");
    qkv__put_name(&p->j, whole);
    qkv__put_raw(&p->j, ":");
}

/* The files of the model in FOLDER/INSIDE, of the folder itself where that is "". */
static qkv_status put_model_files(packing *p, const char *inside)
{
    char folder[MOST_PATH];
    qkv__names names = { 0 };
    if (snprintf(folder, sizeof folder, "%s/%s", p->folder, inside) >= MOST_PATH)
        return qkv__fail(QKV_USAGE, "page: the path of %s is too long", inside);
    qkv_status status = check_model(p, *inside ? folder : p->folder);
    if (!status) status = qkv__folder_list(p->bits == 8 ? p->made : folder, &names);
    for (size_t i = 0; i < names.n && !status; i++) {
        if (!is_needed(names.at[i])) continue;
        put_file_name(p, inside, names.at[i]);
        status = put_model_file(p, folder, names.at[i]);
    }
    qkv__names_free(&names);
    if (status || p->bits != 8 || *inside) return status;
    /* What was saved in 8 bits is the model alone. */
    if (snprintf(folder, sizeof folder, "%s/" QKV__EXAMPLES, p->folder) >= MOST_PATH || !qkv__file_exists(folder))
        return status;
    put_file_name(p, inside, QKV__EXAMPLES);
    return put_file(p, folder, TO_BE_PACKED);
}

/* ---- models that its training kept ---- */

/* How many are likely to fit; what is written in base64 has 4 bytes for 3. */
static size_t count_fitting(const packing *p)
{
    char path[MOST_PATH];
    struct stat about;
    if (snprintf(path, sizeof path, "%s/model.safetensors", p->folder) >= MOST_PATH || stat(path, &about)) return 0;
    return (size_t)(CHECKPOINT_BYTES / ((double)about.st_size * p->bits / 32 * 4 / 3 + 1));
}

/* They lie in folders beside the model's files, and a list of them in checkpoints.json, which the engine reads. */
static qkv_status put_checkpoints(packing *p)
{
    qkv__kept_list list = { 0 };
    qkv__json_writer w = { 0 };
    qkv_status status = p->checkpoints < 0 ? QKV_OK : qkv__find_checkpoints(p->folder, &list);
    if (status || !list.n) return status;
    qkv__thin_checkpoints(&list, p->checkpoints ? (size_t)p->checkpoints : count_fitting(p));
    if (list.n > 1) {
        qkv__put_kept(&list, &w);
        if (!(status = w.status)) {
            put_file_name(p, "", "checkpoints.json");
            qkv__put_gzip(&p->j, w.text, w.length);
        }
        for (size_t i = 0; i < list.n && !status && p->j.text.length <= QKV_PAGE_BYTES; i++)
            if (list.all[i].folder) status = put_model_files(p, list.all[i].folder);
    }
    qkv__json_writer_free(&w);
    qkv__kept_free(&list);
    return status;
}

static qkv_status put_all_files(packing *p)
{
    qkv__put_raw(&p->j, "{\"name\":");
    qkv__put_name(&p->j, p->name);
    qkv__put_raw(&p->j, p->bits == 16 ? ",\"split\":\".safetensors\"" : "");
    qkv__put_raw(&p->j, ",\"files\":{");
    qkv_status status = put_model_files(p, "");
    if (!status) status = put_checkpoints(p);
    qkv__put_raw(&p->j, "}}");
    return status;
}

/* ---- the page ---- */

/* The page from one place to another, then what takes the place of a null there. */
static size_t put_up_to(packing *p, size_t from, const char *id)
{
    size_t place = qkv__page_place(qkv__live_page, qkv__live_size, id);
    qkv__put_bytes(&p->j, qkv__live_page + from, place - from);
    return place + strlen("null");
}

/* What the file may do: what the page of a server may, but ask nobody anything. A file has nobody around it either, and a
 * browser would complain about the word. */
static size_t put_policy(packing *p)
{
    static const char after[] = "<meta charset=\"utf-8\">", asks[] = "connect-src 'self'", around[] = "; frame-ancestors";
    const char *at = strstr(qkv__live_policy, asks), *end = strstr(qkv__live_policy, around);
    const unsigned char *head = memmem(qkv__live_page, qkv__live_size, after, strlen(after));
    size_t place = (size_t)(head - qkv__live_page) + strlen(after);
    qkv__put_bytes(&p->j, qkv__live_page, place);
    qkv__put_raw(&p->j, "\n<meta http-equiv=\"Content-Security-Policy\" content=\"");
    qkv__put_bytes(&p->j, qkv__live_policy, (size_t)(at - qkv__live_policy));
    qkv__put_raw(&p->j, "connect-src 'none'");
    qkv__put_bytes(&p->j, at + strlen(asks), (size_t)(end - at) - strlen(asks));
    qkv__put_raw(&p->j, "\">");
    return place;
}

static qkv_status make_live_page(packing *p)
{
    size_t at = put_policy(p);
    at = put_up_to(p, at, "qkv-engine");
    qkv_status status = put_file(p, p->engine, AS_IT_IS);
    at = put_up_to(p, at, "qkv-model");
    if (!status) status = put_all_files(p);
    qkv__put_bytes(&p->j, qkv__live_page + at, qkv__live_size - at);
    if (!status && p->j.text.length > QKV_PAGE_BYTES)
        status = qkv__fail(
            QKV_LIMIT, "page: it would have %zu MiB, more than %zu: choose fewer bits, fewer checkpoints or a smaller model",
            p->j.text.length >> 20, QKV_PAGE_BYTES >> 20);
    return status ? status : p->j.status;
}

/* ---- the call ---- */

static void remove_made(const packing *p)
{
    qkv__names names;
    char path[MOST_PATH];
    if (!*p->made || qkv__folder_list(p->made, &names)) return;
    for (size_t i = 0; i < names.n; i++)
        if (snprintf(path, sizeof path, "%s/%s", p->made, names.at[i]) < MOST_PATH) unlink(path);
    qkv__names_free(&names);
    rmdir(p->made);
}

static qkv_status make_folder_for_made(packing *p)
{
    if (snprintf(p->made, sizeof p->made, "%s/qkv-page-XXXXXX", qkv__temporary_folder()) < MOST_PATH && mkdtemp(p->made))
        return QKV_OK;
    *p->made = '\0';
    return qkv__fail(QKV_IO, "page: no folder can be made in %s", qkv__temporary_folder());
}

qkv_status qkv_page_write(const char *path, const char *folder, const qkv_page_opts *opts)
{
    qkv_page_opts o;
    if (QKV__READ_OPTIONS(&o, name, opts, "page")) return QKV_USAGE;
    if (!path || !folder || !o.engine) return qkv__fail(QKV_USAGE, "page: a path, a model's folder and the engine are needed");
    if (o.bits && o.bits != 8 && o.bits != 16 && o.bits != 32)
        return qkv__fail(QKV_USAGE, "page: weights of %d bits: expected 8, 16 or 32", o.bits);
    packing p = { .folder = folder,
                  .name = o.name ? o.name : "qkv",
                  .engine = o.engine,
                  .bits = o.bits ? o.bits : USUAL_BITS,
                  .checkpoints = o.checkpoints };
    qkv_status status = p.bits == 32 ? QKV_OK : make_folder_for_made(&p);
    if (!status) status = make_live_page(&p);
    if (!status) status = qkv_file_write(path, p.j.text.data, p.j.text.length);
    remove_made(&p);
    qkv_buffer_free(&p.j.text);
    return status;
}
