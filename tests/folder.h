/* folder.h: a folder of a test program's own, for cmocka_run_group_tests(tests, make_folder, remove_folder). */
#ifndef QKV_TESTS_FOLDER_H
#define QKV_TESTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* A path in it; the last four stay valid. */
static const char *in_folder(const char *name)
{
    static char path[4][256];
    static int turn;
    char *to = path[turn++ % 4];
    snprintf(to, sizeof *path, "%s/%s", folder, name);
    return to;
}

#endif
