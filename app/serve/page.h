/* page.h: the pages, made of web/ by tools/embed.c; each has its Content-Security-Policy. */
#ifndef QKV_SRC_PAGE_H
#define QKV_SRC_PAGE_H

#include "../engine/json.h"

extern const unsigned char qkv__explorer_page[], qkv__live_page[];
extern const size_t qkv__explorer_size, qkv__live_size;
extern const char qkv__explorer_policy[], qkv__live_policy[];

/* Where the word null stands in an element of a page, which data takes the place of; the element begins with
 * <script type="application/json" id="ID"> and is there once. */
size_t qkv__page_place(const unsigned char *page, size_t size, const char *id);

/* The bytes as gzip in base64, in quotes. Without memory j->status says so. */
void qkv__put_gzip(qkv__json *j, const void *bytes, size_t size);

#endif
