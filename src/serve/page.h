/* page.h: the explorer page, made of web/ by tools/embed.c. */
#ifndef QKV_SRC_PAGE_H
#define QKV_SRC_PAGE_H

#include <stddef.h>

extern const unsigned char qkv__explorer_page[];
extern const size_t qkv__explorer_size;
extern const size_t qkv__explorer_data;   /* where the word null stands that data takes the place of */
extern const char qkv__explorer_policy[]; /* its Content-Security-Policy */

#endif
