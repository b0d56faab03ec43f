/* no_folder.c: why a path is not the folder of a model. */
#include "no_folder.h"

#include "../base/file.h"
#include "../io/weights.h"

#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 4096, NAMES_SHOWN = 4, NAMES_TRIED = 64 };

/* Looking for a folder tells that something is there without opening it, which a pipe would take long to answer. */
static bool has_config(const char *folder)
{
    char path[PATH_ROOM];
    bool is_folder;
    if (qkv__is_folder(folder, &is_folder) || !is_folder) return false;
    return snprintf(path, sizeof path, "%s/config.json", folder) < PATH_ROOM && !qkv__is_folder(path, &is_folder);
}

/* ---- nothing there ---- */

/* "owner/name", as models are called where they are published. With a folder "owner" here it is a path. */
static bool is_hub_name(const char *path)
{
    char owner[256];
    const char *slash = strchr(path, '/');
    if (!slash || slash == path || !slash[1] || strchr(slash + 1, '/') || strchr(".~", *path)) return false;
    return snprintf(owner, sizeof owner, "%.*s", (int)(slash - path), path) < (int)sizeof owner && !qkv__file_exists(owner);
}

static qkv_status explain_nothing(const char *path)
{
    if (is_hub_name(path))
        return qkv__fail(QKV_IO,
                         "%s: there is no such folder on this machine, and qkv downloads nothing: fetch the model's files, "
                         "and give the folder they are in",
                         path);
    return qkv__fail(
        QKV_IO, "%s: there is no such folder: a model is a folder that \"qkv train\" wrote, or that its authors publish", path);
}

/* ---- a file ---- */

static qkv_status explain_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_ROOM];
    qkv_status status = qkv__weights_refuse_file(path);
    if (status) return status;
    int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (n > 0 && n < PATH_ROOM && has_config(folder))
        return qkv__fail(QKV_IO, "%s is not a folder, as a model is: give \"%s\"", path, folder);
    return qkv__fail(QKV_IO, "%s is not a folder, as a model is, with config.json, model.safetensors and tokenizer.json", path);
}

/* ---- a folder ---- */

static bool is_listed(const qkv__names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->at[i], name)) return true;
    return false;
}

/* Models often lie one folder deeper. */
static bool find_deeper(const char *path, const qkv__names *names, char found[PATH_ROOM])
{
    for (size_t i = 0; i < names->n && i < NAMES_TRIED; i++)
        if (snprintf(found, PATH_ROOM, "%s/%s", path, names->at[i]) < PATH_ROOM && has_config(found)) return true;
    return false;
}

static void list_names(const qkv__names *names, char *list, size_t room)
{
    size_t used = (size_t)snprintf(list, room, "%s", names->n ? "" : "nothing");
    for (size_t i = 0; i < names->n && i < NAMES_SHOWN && used < room; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%.40s", i ? ", " : "", names->at[i]);
    if (names->n > NAMES_SHOWN && used < room) snprintf(list + used, room - used, " and %zu more", names->n - NAMES_SHOWN);
}

static qkv_status explain_contents(const char *path, const qkv__names *names)
{
    char deeper[PATH_ROOM], list[256];
    qkv_status status = qkv__weights_refuse_folder(path);
    if (status) return status;
    if (find_deeper(path, names, deeper))
        return qkv__fail(QKV_IO, "%s holds no config.json, so no model; but \"%s\" does", path, deeper);
    list_names(names, list, sizeof list);
    return qkv__fail(QKV_IO,
                     "%s holds no config.json: a model's folder has one, with model.safetensors and tokenizer.json; this one "
                     "holds %s",
                     path, list);
}

qkv_status qkv__explain_no_folder(const char *path)
{
    char sentence[512];
    qkv_status status = qkv_error_status();
    bool is_folder;
    qkv__names names = { 0 };
    snprintf(sentence, sizeof sentence, "%s", qkv_error());
    qkv_status looked = qkv__is_folder(path, &is_folder);
    if (looked && !qkv__file_exists(path)) return explain_nothing(path);
    if (!looked && !is_folder) return explain_file(path);
    if (!looked) looked = qkv__folder_list(path, &names);
    if (!looked && !is_listed(&names, "config.json")) status = explain_contents(path, &names);
    else qkv__fail(status, "%s", sentence);
    qkv__names_free(&names);
    return status;
}
