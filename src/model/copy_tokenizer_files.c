/* copy_tokenizer_files.c: files that a model takes with it as they are. */
#include "copy_tokenizer_files.h"

#include "../base/file.h"

#include <stdio.h>
#include <string.h>

#define CARRIED_MAX ((size_t)256 << 20)

static qkv_status copy(const char *from, const char *to)
{
    qkv__bytes bytes;
    qkv_status status = qkv__file_read(from, CARRIED_MAX, &bytes);
    if (status) return status;
    status = qkv_file_write(to, bytes.data, bytes.size);
    qkv__bytes_free(&bytes);
    return status;
}

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

static qkv_status copy_one_file(const char *from, const char *to, const char *name)
{
    char source[4096], target[4096];
    if (snprintf(source, sizeof source, "%s/%s", from, name) >= (int)sizeof source ||
        snprintf(target, sizeof target, "%s/%s", to, name) >= (int)sizeof target)
        return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", from);
    return copy(source, target);
}

qkv_status qkv__copy_tokenizer_files(const char *from, const char *to, bool whole_tokenizer)
{
    qkv__names names;
    if (!strcmp(from, to)) return QKV_OK;
    qkv_status status = qkv__folder_list(from, &names);
    if (status) return status;
    for (size_t i = 0; i < names.n && !status; i++)
        if (is_about_it(names.at[i]) || (whole_tokenizer && is_tokenizer(names.at[i])))
            status = copy_one_file(from, to, names.at[i]);
    qkv__names_free(&names);
    return status;
}
