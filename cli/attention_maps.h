/* attention_maps.h: maps of attention as text and files, heads as a table. */
#ifndef QKV_CLI_ATTENTION_MAPS_H
#define QKV_CLI_ATTENTION_MAPS_H

#include <qkv/qkv.h>

#include <stdbool.h>

/* One way out each; they report their error. */
qkv_status print_maps(const qkv_attention_maps *maps, bool json); /* for people, or JSON, to stdout */
/* .png .svg .pdf .csv .json; the note stands under a picture */
qkv_status write_maps(const char *path, const qkv_attention_maps *maps, const char *note);

/* Prints what each head of a kind does, in the order of a measure. */
qkv_status print_ranks(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by, bool json);

#endif
