/* copy_tokenizer_files.c: files that a model takes with it as they are. */
#include "copy_tokenizer_files.h"

#include <qkv/unstable/util.h>

#include <stdio.h>
#include <string.h>

#define CARRIED_MAX ((size_t)256 << 20)

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), e = strlen(ending);
    return n >= e && !strcmp(name + n - e, ending);
}

/* SentencePiece's files; an OPUS-MT folder has the ids of their pieces in vocab.json. */
static bool is_tokenizer(const char *name)
{
    return ends_with(name, ".spm") || ends_with(name, ".model") || !strcmp(name, "vocab.json");
}

static bool is_about_it(const char *name)
{
    return !strcmp(name, "tokenizer_config.json") || !strcmp(name, "special_tokens_map.json");
}

static qkv_status path_of(char path[4096], const char *folder, const char *name)
{
    if (snprintf(path, 4096, "%s/%s", folder, name) < 4096) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

static qkv_status read_contents(const char *folder, bool whole_tokenizer, qkv__tokenizer_files *out)
{
    qkv_status status = QKV_OK;
    if (!(out->contents = qkv__alloc_zero(sizeof *out->contents * out->names.n))) return QKV_MEMORY;
    for (size_t i = 0; i < out->names.n && !status; i++) {
        const char *name = out->names.at[i];
        char path[4096];
        if (!is_about_it(name) && !(whole_tokenizer && is_tokenizer(name))) continue;
        status = path_of(path, folder, name);
        if (!status) status = qkv__file_read(path, CARRIED_MAX, &out->contents[i]);
    }
    return status;
}

qkv_status qkv__tokenizer_files_read(const char *folder, bool whole_tokenizer, qkv__tokenizer_files *out)
{
    *out = (qkv__tokenizer_files){ 0 };
    qkv_status status = qkv__folder_list(folder, &out->names);
    if (!status) status = read_contents(folder, whole_tokenizer, out);
    if (status) qkv__tokenizer_files_free(out);
    return status;
}

qkv_status qkv__tokenizer_files_write(const qkv__tokenizer_files *files, const char *folder)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < files->names.n && !status; i++) {
        char path[4096];
        if (!files->contents[i].data) continue;
        status = path_of(path, folder, files->names.at[i]);
        if (!status) status = qkv_file_write(path, files->contents[i].data, files->contents[i].size);
    }
    return status;
}

void qkv__tokenizer_files_free(qkv__tokenizer_files *files)
{
    for (size_t i = 0; files->contents && i < files->names.n; i++) qkv__bytes_free(&files->contents[i]);
    qkv__release(files->contents, sizeof *files->contents * files->names.n);
    qkv__names_free(&files->names);
    *files = (qkv__tokenizer_files){ 0 };
}
