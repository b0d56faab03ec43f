/* architecture_text.c: a Transformer as lines of text, from the top down. */
#include "architecture.h"
#include "view.h"

#include "../report/out.h"

#include <math.h>
#include <stdio.h>

static const char call[] = "model drawing";

enum { TEXT_LEFT = 4 };

static int text_width(const qkv__architecture *a)
{
    int width = 24;
    for (int s = 0; s < a->n; s++)
        for (int i = 0; i < a->stacks[s].n; i++) {
            const qkv__block *b = &a->stacks[s].blocks[i];
            width = (int)fmax(width, fmax(qkv__width(b->name), qkv__width(b->more)));
        }
    return width + 2;
}

static void put_rule(qkv__out *out, const char *left, const char *right, int width, const char *after)
{
    qkv__out_printf(out, "%*s%s", TEXT_LEFT, "", left);
    for (int i = 0; i < width; i++) qkv__out_printf(out, "─");
    qkv__out_printf(out, "%s%s\n", right, after);
}

static void put_inside(qkv__out *out, const char *text, int width, const char *after)
{
    qkv__out_printf(out, "%*s│ ", TEXT_LEFT, "");
    qkv__out_name(out, text, width - 1, false);
    qkv__out_printf(out, "│%s\n", after);
}

/* The arrow to the next block; something may leave here and pass it by. */
static void put_down(qkv__out *out, const char *shape, int width, bool leaves, bool passes)
{
    char text[QKV__BLOCK_TEXT + 16];
    snprintf(text, sizeof text, "↓  %s", shape);
    qkv__out_printf(out, "%*s", TEXT_LEFT + 4, "");
    qkv__out_name(out, text, leaves ? qkv__width(text) + 1 : passes ? width - 2 : 0, false);
    for (int i = qkv__width(text) + 1; leaves && i < width + 1; i++) qkv__out_printf(out, "─");
    qkv__out_printf(out, "%s\n", leaves ? "╮" : passes ? "   │" : "");
}

static void put_text_block(qkv__out *out, const qkv__block *b, int width, bool passes)
{
    const char *after = passes ? "   │" : "", *into = b->residual >= 0 ? "◄──╯" : after, *none = b->residual >= 0 ? "" : after;
    put_rule(out, "┌", "┐", width, after);
    put_inside(out, b->name, width, into);
    if (*b->more) put_inside(out, b->more, width, b->takes_memory ? "◄──┼── K, V" : none);
    put_rule(out, "└", "┘", width, none);
}

static void put_text_stack(qkv__out *out, const qkv__stack_drawing *s, int width)
{
    int passes_until = -1;
    qkv__out_printf(out, "%*s%s\n", TEXT_LEFT + 1, "", s->input);
    for (int i = 0; i < s->n; i++) {
        bool leaves = false;
        for (int k = i; k < s->n; k++)
            if (s->blocks[k].residual == i) leaves = true, passes_until = k;
        if (i == s->first) qkv__out_printf(out, "%*s%d × {\n", TEXT_LEFT - 3, "", s->layers);
        put_down(out, i == s->first || i == s->last + 1 ? s->shape : "", width, leaves, i <= passes_until);
        put_text_block(out, &s->blocks[i], width, i <= passes_until);
        if (i == s->last) qkv__out_printf(out, "%*s}\n", TEXT_LEFT - 3, "");
    }
}

qkv_status qkv_model_drawing_text(const qkv_config *model, const qkv_model_drawing_opts *opts, qkv_buffer *out)
{
    qkv__architecture a;
    qkv_status status = out ? qkv__architecture_make(model, opts, &a)
                            : qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    if (status) return status;
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "%s\n\n", a.title);
    for (int s = 0; s < a.n; s++) {
        put_text_stack(&text, &a.stacks[s], text_width(&a));
        qkv__out_printf(&text, "\n");
    }
    for (int i = 0; i < a.n_notes; i++) qkv__out_printf(&text, "%s\n", a.notes[i]);
    return qkv__out_end(&text);
}
