/* html.h: an HTML document cut into markup and texts. */
#ifndef QKV_SRC_SERVE_HTML_H
#define QKV_SRC_SERVE_HTML_H

#include "../../src/base/buffer.h"

#include <stdbool.h>

/* Markup, which is kept, and the text after it. The last piece of a document has an empty text. */
typedef struct qkv__html_piece {
    const char *markup; /* of the document */
    size_t markup_length;
    size_t text, text_length; /* in qkv__html.texts */
} qkv__html_piece;

/* The pieces of one document or several, one after the other. Starts as zero. */
typedef struct qkv__html {
    qkv_buffer texts; /* of all pieces, without entities */
    qkv__html_piece *pieces;
    int64_t n;
    size_t bytes;
} qkv__html;

/* Adds a document, which must outlive *h. A text is anything between tags except white space. A line break in a text becomes a
 * space, except in <pre> and <textarea>. Markup includes comments, attributes, elements with translate="no" and the elements that
 * LibreTranslate does not translate: <address>, <applet>, <audio>, <canvas>, <code>, <script>, <style>, <time> and <video>. Linear
 * time. LIMIT for more than `most` texts in *h; MEMORY. */
qkv_status qkv__html_add(qkv__html *h, const char *document, size_t length, int64_t most);
void qkv__html_free(qkv__html *h);

/* Adds text to `out`, with entities for &, < and >. MEMORY. */
qkv_status qkv__html_put_text(qkv_buffer *out, const char *text, size_t length);

#endif
