/* run_folder.c: the folder of a training: whether it may be written, its record, its log, the models that are kept. */
#include "run_folder.h"

#include <qkv/unstable/util.h>
#include <qkv/unstable/runs.h>

#include "../base/buffer.h"
#include "../base/file.h"
#include "../base/json.h"
#include "../base/options.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { PATH_BYTES = 3900, RECORD_BYTES = 16 << 20 };

qkv__run_path qkv__run_file(const qkv_train_opts *o, const char *name)
{
    qkv__run_path p;
    snprintf(p.text, sizeof p.text, "%s/%s", o->folder ? o->folder : "", name);
    return p;
}

bool qkv__run_has(const qkv_train_opts *o, const char *name) { return qkv__file_exists(qkv__run_file(o, name).text); }

/* ---- may it be written? ---- */

/* A path need not be UTF-8, and a JSON text must be. */
static qkv_status spell_setting(const qkv_train_setting *s, qkv_buffer *out)
{
    return qkv__utf8_repair(s->value, strlen(s->value), out);
}

/* A newer version may mean something else by the same words. Records without a version are taken as they are. */
static qkv_status check_version(const char *path, const char *written)
{
    int was[3], is[3], n = 0;
    if (!written) return QKV_OK;
    if (sscanf(written, "%d.%d.%d%n", &was[0], &was[1], &was[2], &n) != 3 || written[n])
        return qkv__fail(QKV_FORMAT, "%s: \"qkv\" is \"%.40s\", expected a version such as \"%s\"", path, written,
                         qkv_version());
    sscanf(qkv_version(), "%d.%d.%d", &is[0], &is[1], &is[2]);
    for (int i = 0; i < 3; i++) {
        if (was[i] < is[i]) return QKV_OK;
        if (was[i] > is[i])
            return qkv__fail(QKV_UNSUPPORTED,
                             "%s: written by qkv %.40s, and this is qkv %s: resume with version %.40s or newer", path, written,
                             qkv_version(), written);
    }
    return QKV_OK;
}

static qkv_status compare_settings(const qkv_train_opts *o)
{
    char differences[1024] = "";
    size_t used = 0;
    qkv_buffer value = { 0 };
    qkv__json_doc record;
    const qkv__run_path path = qkv__run_file(o, "training.json");
    qkv_status status = qkv__json_load(path.text, RECORD_BYTES, &record);
    if (status) return status;
    status = check_version(path.text, qkv__json_get_text(record.top, "qkv"));
    const qkv__json_value *then = qkv__json_get(record.top, "options");
    if (!status && !then) status = qkv__fail(QKV_FORMAT, "%s: it does not tell the options of a training", path.text);
    for (int64_t i = 0; i < o->n_settings && !status; i++) {
        const qkv_train_setting *now = &o->settings[i];
        const char *was = qkv__json_get_text(then, now->name);
        if ((!was && now->is_default) || (status = spell_setting(now, &value))) continue;
        if (!was) was = "";
        if (!strcmp(was, value.data) || now->may_differ || used >= sizeof differences) continue;
        used += (size_t)snprintf(differences + used, sizeof differences - used, "%s--%s was \"%s\" and is \"%s\"",
                                 used ? "; " : "", now->name, was, value.data);
    }
    qkv_buffer_free(&value);
    qkv__json_free(&record);
    if (status || !used) return status;
    return qkv__fail(QKV_USAGE, "cannot resume %s with other options: %s", o->folder, differences);
}

static bool is_utf8(const char *text) { return qkv_utf8_valid(text, strlen(text)) == strlen(text); }

static qkv_status check_words(const qkv_train_opts *o)
{
    if (o->n_settings < 0 || (o->n_settings && !o->settings)) return qkv__fail(QKV_USAGE, "training: the settings are missing");
    for (int64_t i = 0; i < o->n_settings; i++)
        if (!o->settings[i].name || !o->settings[i].value || !is_utf8(o->settings[i].name))
            return qkv__fail(QKV_USAGE, "training: setting %lld needs a name, in UTF-8, and a value", (long long)i);
    return o->job && !is_utf8(o->job) ? qkv__fail(QKV_USAGE, "training: the job's name is not UTF-8") : QKV_OK;
}

static bool is_no_folder(const char *path)
{
    bool is_folder = true;
    return qkv__file_exists(path) && !qkv__is_folder(path, &is_folder) && !is_folder;
}

qkv_status qkv_train_check(const qkv_train_opts *opts)
{
    qkv_train_opts own, *o = &own;
    if (!opts) return qkv__fail(QKV_USAGE, "training: options are needed");
    if (QKV__READ_OPTIONS(o, end_texts, opts, "training")) return QKV_USAGE;
    if (!o->folder) return o->resume ? qkv__fail(QKV_USAGE, "training: there is no folder to resume") : QKV_OK;
    if (check_words(o)) return QKV_USAGE;
    if (strlen(o->folder) > PATH_BYTES) return qkv__fail(QKV_USAGE, "training: the path of the folder is too long");
    if (is_no_folder(o->folder)) return qkv__fail(QKV_IO, "%s: it is a file, and a training needs a folder", o->folder);
    if (o->resume == QKV_RESUME_IF_ANY && !qkv__run_has(o, "training.json")) o->resume = QKV_RESUME_NONE;
    if (o->resume && !qkv__run_has(o, "training.json"))
        return qkv__fail(QKV_USAGE, "there is no training in %s to resume", o->folder);
    if (o->resume) return compare_settings(o);
    if (qkv__run_has(o, "checkpoint.safetensors"))
        return qkv__fail(QKV_USAGE, "%s holds a training already: resume it, or give another folder", o->folder);
    if (!qkv__run_has(o, "training.json") && qkv__run_has(o, "config.json"))
        return qkv__fail(QKV_USAGE, "%s holds a model already: give another folder", o->folder);
    return QKV_OK;
}

/* ---- the record ---- */

/* Of settings of one name the last counts. */
static void put_settings(const qkv_train_opts *o, qkv__json_writer *w)
{
    qkv_buffer value = { 0 };
    qkv__json_open_object(w, "options");
    for (int64_t i = 0; i < o->n_settings && !w->status; i++) {
        const char *name = o->settings[i].name;
        int64_t first = 0, last = o->n_settings - 1;
        while (strcmp(o->settings[first].name, name)) first++;
        while (strcmp(o->settings[last].name, name)) last--;
        if (first < i) continue;
        w->status = spell_setting(&o->settings[last], &value);
        if (!w->status) qkv__json_put_string(w, name, value.data, value.length);
    }
    qkv__json_close(w);
    qkv_buffer_free(&value);
}

/* Adds the members of the caller's object. */
static qkv_status add_about(const qkv_train_opts *o, qkv__json_writer *w)
{
    qkv__json_doc about;
    if (!o->about) return QKV_OK;
    const qkv__json_source source = { .name = "training", .text = o->about, .length = strlen(o->about) };
    qkv_status status = qkv__json_parse(&source, &about);
    if (status != QKV_MEMORY && !qkv__json_is_object(about.top))
        status = qkv__fail(QKV_USAGE, "training: what is to be written down about it is no JSON object");
    for (size_t i = 0; i < qkv__json_size(about.top) && !status; i++)
        qkv__json_put_value(w, qkv__json_key(about.top, i), qkv__json_at(about.top, i));
    qkv__json_free(&about);
    return status;
}

qkv_status qkv__run_record(const qkv_train_opts *o, const qkv__run_state *s)
{
    if (!o->folder) return QKV_OK;
    const qkv__run_path path = qkv__run_file(o, "training.json");
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true, .digits = QKV__JSON_FLOAT };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "qkv", qkv_version());
    qkv__json_put_text(&w, "job", o->job ? o->job : "");
    put_settings(o, &w);
    qkv__json_put_int(&w, "pairs", s->pairs);
    qkv__json_put_int(&w, "steps", s->step);
    qkv__json_put_int(&w, "epochs_begun", s->epochs_begun);
    qkv__json_put_int(&w, "best_step", s->best->best_step);
    qkv__json_put_text(&w, "stopped", s->reason ? s->reason : "");
    if (s->planned) qkv__json_put_int(&w, "schedule_steps", s->planned);
    if (o->validate && s->best->best_step) qkv__json_put_real(&w, "best_score", s->best->best, QKV__JSON_FLOAT);
    qkv_status status = add_about(o, &w);
    qkv__json_close(&w);
    if (!status) return qkv__json_save(&w, path.text);
    qkv__json_writer_free(&w);
    return status;
}

int64_t qkv__run_recorded(const qkv_train_opts *o, const char *name)
{
    qkv__json_doc record;
    if (!o->folder || !o->resume || qkv__json_load(qkv__run_file(o, "training.json").text, RECORD_BYTES, &record)) return 0;
    int64_t number = qkv__json_int(qkv__json_get(record.top, name));
    qkv__json_free(&record);
    return number;
}

/* ---- the log ---- */

enum { LINE_BYTES = 1024 };
static const size_t LOG_BYTES = (size_t)1 << 32;

/* The start of a line that a full disk cut: what is written next would go on in it. */
static void drop_cut_line(int log)
{
    char end[LINE_BYTES];
    off_t size = lseek(log, 0, SEEK_END), from = size > LINE_BYTES ? size - LINE_BYTES : 0;
    ssize_t n = pread(log, end, sizeof end, from);
    while (n > 0 && end[n - 1] != '\n') n--;
    bool is_start = n > 0 || (n == 0 && !from);                          /* of a line; a longer one is not ours */
    if (is_start && from + n < size && ftruncate(log, from + n)) return; /* it stays then, and can be cut by hand */
}

qkv_status qkv__run_log_open(const qkv_train_opts *o, int *log)
{
    const qkv__run_path path = qkv__run_file(o, "log.jsonl");
    if ((*log = open(path.text, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) < 0)
        return qkv__fail(QKV_IO, "%s: cannot write: %s", path.text, strerror(errno));
    if (flock(*log, LOCK_EX | LOCK_NB)) return qkv__fail(QKV_USAGE, "another training is running in %s", o->folder);
    drop_cut_line(*log);
    return QKV_OK;
}

/* Whether a line, which need not end in a NUL, is of a run without a stop; one that is not ours is. */
static bool is_of_whole_run(const char *line, size_t length, int64_t step, bool has_report, bool has_validation)
{
    char text[LINE_BYTES] = "", next = '\0';
    long long of;
    memcpy(text, line, length < sizeof text ? length : sizeof text - 1);
    if (sscanf(text, "{\"step\": %lld, \"%c", &of, &next) != 2) return true;
    bool is_report = strstr(text, ", \"epoch\": ") != NULL;
    return of < step || (of == step && (is_report ? has_report : has_validation));
}

qkv_status qkv__run_log_rewind(const qkv_train_opts *o, int log, int64_t step, bool has_report, bool has_validation,
                               double *seconds)
{
    static const char name[] = "\"seconds\": ";
    qkv__bytes file;
    const qkv__run_path path = qkv__run_file(o, "log.jsonl");
    qkv_status status = qkv__file_read(path.text, LOG_BYTES, &file);
    if (status) return status;
    const char *text = (const char *)file.data, *end = text + file.size, *cut = NULL;
    *seconds = 0;
    for (const char *line = text, *next; line < end; line = next + 1) {
        if (!(next = memchr(line, '\n', (size_t)(end - line)))) break;
        if (!cut && !is_of_whole_run(line, (size_t)(next - line), step, has_report, has_validation)) cut = line;
        const char *found = memmem(line, (size_t)(next - line), name, sizeof name - 1);
        if (found) *seconds = strtod(found + sizeof name - 1, NULL); /* ends at the comma, brace or line end */
    }
    if (cut && ftruncate(log, cut - text))
        status = qkv__fail(QKV_IO, "%s: cannot be shortened to step %lld: %s", path.text, (long long)step, strerror(errno));
    qkv__bytes_free(&file);
    return status;
}

qkv_status qkv__run_log(const qkv_train_opts *o, int log, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    if (log < 0) return QKV_OK;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof line) return qkv__fail(QKV_LIMIT, "training: a line of the log is too long");
    ssize_t written = write(log, line, (size_t)length);
    if (written == length) return QKV_OK;
    if (written > 0) drop_cut_line(log);
    return qkv__fail(QKV_IO, "%s/log.jsonl: cannot write: %s", o->folder, written < 0 ? strerror(errno) : "the disk is full");
}

/* ---- models that are kept, and what was half-written ---- */

static bool is_of_model(const char *name)
{
    static const char *const endings[] = { ".json", ".safetensors", ".spm", ".model", NULL };
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && endings[i]; i++)
        if (!strcmp(dot, endings[i])) return true;
    return false;
}

static void forget_files(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char file[4096 + sizeof e->d_name];
        if (!is_of_model(e->d_name)) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (folder) closedir(folder);
    rmdir(path);
}

/* Files that someone else put there stay, and the folder with them. */
void qkv__run_forget(const qkv_train_opts *o, int64_t step)
{
    char name[64];
    if (step <= 0) return;
    snprintf(name, sizeof name, "step-%lld/1_Pooling", (long long)step);
    forget_files(qkv__run_file(o, name).text);
    *strrchr(name, '/') = '\0';
    forget_files(qkv__run_file(o, name).text);
}

/* "NAME.123.tmp" */
static bool is_temporary(const char *name)
{
    size_t length = strlen(name), digits = 0;
    if (length < 6 || strcmp(name + length - 4, ".tmp")) return false;
    for (length -= 4; digits < length && isdigit((unsigned char)name[length - 1 - digits]);) digits++;
    return digits && digits + 1 < length && name[length - 1 - digits] == '.';
}

/* Also in the folders of the models that are kept: step-N, step-N/1_Pooling. */
static void sweep_folder(const char *path, int depth)
{
    DIR *folder = opendir(path);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char entry[4096 + sizeof e->d_name];
        snprintf(entry, sizeof entry, "%.4095s/%s", path, e->d_name);
        if (is_temporary(e->d_name)) unlink(entry);
        else if (depth && (!strncmp(e->d_name, "step-", 5) || !strcmp(e->d_name, "1_Pooling"))) sweep_folder(entry, depth - 1);
    }
    if (folder) closedir(folder);
}

void qkv__run_sweep(const qkv_train_opts *o) { sweep_folder(o->folder, 2); }
