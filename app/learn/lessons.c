/* lessons.c: all lessons in their order, and how one is taught. */
#include "../term/errors.h"
#include "lesson.h"

#include <stdio.h>
#include <string.h>

static const lesson *const lessons[] = {
    &lesson_by_hand,      &lesson_scaling,    &lesson_masks,    &lesson_heads,  &lesson_cross,        &lesson_positions,
    &lesson_parts,        &lesson_optimizers, &lesson_additive, &lesson_costs,  &lesson_architecture, &lesson_embeddings,
    &lesson_feed_forward, &lesson_multihead,  &lesson_families, &lesson_recipe, &lesson_subwords,     &lesson_llama,
    &lesson_sampling,     &lesson_imdb,       &lesson_summary,  NULL,
};

void list_lessons(void)
{
    for (int i = 0; lessons[i]; i++) printf("  %7s  %s\n", lessons[i]->name, _(lessons[i]->title));
    printf("\n%s\n", _("\"qkv learn 1\" runs the first one and \"qkv learn all\" all of them; --answer adds the answer to the "
                       "question, -o DIR "
                       "the pictures. \"qkv quiz\" asks, \"qkv exercise\" lets you write."));
}

const lesson *find_lesson(const char *name)
{
    char names[256] = "";
    for (int i = 0; lessons[i]; i++) {
        size_t used = strlen(names);
        if (!strcmp(lessons[i]->name, name)) return lessons[i];
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", lessons[i]->name);
    }
    fail(QKV_USAGE, "there is no lesson \"%s\", but these: %s, and all; \"qkv learn\" tells what they are about", name, names);
    return NULL;
}

qkv_status teach(const lesson *l, bool answer)
{
    say_heading(_(l->title));
    qkv_status status = l->run();
    if (status || !l->question) return status;
    say(_("Question: %s"), _(l->question));
    if (answer) say(_("Answer: %s"), _(l->answer));
    else say(_("(\"qkv learn %s --answer\" gives the answer.)"), l->name);
    return QKV_OK;
}

qkv_status teach_all(bool answer)
{
    qkv_status status = QKV_OK;
    for (int i = 0; lessons[i] && !status; i++) status = teach(lessons[i], answer);
    return status;
}
