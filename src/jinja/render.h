/* render.h: templates with variables that were read. */
#ifndef QKV_SRC_JINJA_RENDER_H
#define QKV_SRC_JINJA_RENDER_H

#include <qkv/jinja.h>

#include "../base/json.h"

/* qkv_chat_template_render() with an object that was read; nothing it is given is NULL but opts. */
qkv_status qkv__chat_template_render(const qkv_chat_template *t, const qkv__json_value *variables,
                                     const qkv_chat_render_opts *opts, qkv_buffer *out);

#endif
