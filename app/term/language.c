/* language.c: texts in the reader's language, through gettext. */
#include "language.h"

#include "translator.h"

#include <qkv/base.h>
#include <qkv/unstable/util.h>

#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const language_names[] = { "locale", "en", "zh", NULL };
static bool chinese;

/* The texts of an installed command are in ../share/locale from its folder, those of a build folder in ../po. */
static bool find_texts(char *folder, size_t room)
{
    static const char *const places[] = { "../share/locale", "../po" };
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) return false;
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    for (int i = 0; i < 2; i++) {
        char texts[PATH_MAX];
        if (snprintf(texts, sizeof texts, "%s/%s/zh_CN/LC_MESSAGES/qkv.mo", own, places[i]) >= (int)sizeof texts) return false;
        if (access(texts, R_OK)) continue;
        return snprintf(folder, room, "%s/%s", own, places[i]) < (int)room;
    }
    return false;
}

static bool locale_is_chinese(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_MESSAGES", "LANG" };
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value) return !strncmp(value, "zh", 2);
    }
    return false;
}

bool speak(language l)
{
    /* gettext translates nothing while the locale is plain "C"; in any other one LANGUAGE decides, and it need not be Chinese.
     * Numbers keep their point: LC_NUMERIC stays "C". */
    static const char *const locales[] = { "zh_CN.UTF-8", "C.UTF-8", "en_US.UTF-8" };
    static const char header[] = ""; /* the text whose translation is the header of the file */
    char folder[PATH_MAX];
    if (l == ENGLISH || (l == LANGUAGE_OF_LOCALE && !locale_is_chinese())) return true;
    for (int i = 0; i < 3 && !setlocale(LC_MESSAGES, locales[i]); i++) continue;
    setenv("LANGUAGE", "zh_CN", 1);
    chinese = find_texts(folder, sizeof folder) && bindtextdomain("qkv", folder) && bind_textdomain_codeset("qkv", "UTF-8") &&
              *dgettext("qkv", header);
    bindtextdomain("libc", "/"); /* strerror(3) is a part of the library's sentences, which stay English */
    if (chinese) qkv_set_translator(translated);
    return chinese;
}

bool speaks_chinese(void) { return chinese; }

const char *translated(const char *text) { return chinese && *text ? dgettext("qkv", text) : text; }
