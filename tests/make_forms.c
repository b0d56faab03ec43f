/* make_forms.c: writes a model's folder in another form for the shell tests: its weights in
 * two files with their index, rounded to BF16, of three classes the first alone, or an encoder without its head, whose tensors begin with NAME (of
 * a T5 nothing, and it loses its decoder).
 * usage: make_forms FROM TO shards|bf16|one|bare [NAME]   (TO has the other files already)
 */
#include "json_values.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights {
    const qkv__json_value *header;
    unsigned char *data;
} weights;

static const char *const shard_names[] = { "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors" };

static FILE *open_in(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, mode);
    if (!f) exit((perror(path), 3));
    return f;
}

static weights read_weights(const char *folder)
{
    uint64_t length;
    FILE *f = open_in(folder, "model.safetensors", "rb");
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    unsigned char *all = malloc(size);
    rewind(f);
    if (!all || size < 8 || fread(all, 1, size, f) != size) exit(3);
    fclose(f);
    memcpy(&length, all, 8);
    weights w = { json_parse((const char *)all + 8, (size_t)length), malloc(size) };
    if (!w.header || !w.data) exit(3);
    memcpy(w.data, all + 8 + length, size - 8 - (size_t)length);
    json_edit(&w.header, "__metadata__", NULL);
    free(all);
    return w;
}

static size_t offset(const qkv__json_value *tensor, size_t i)
{
    return (size_t)qkv__json_int(qkv__json_at(qkv__json_get(tensor, "data_offsets"), i));
}

/* To the nearest, of two as near the even one. */
static uint16_t narrow(const unsigned char *from)
{
    uint32_t bits;
    memcpy(&bits, from, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The bytes of one tensor, written; how many they are. */
static size_t put(FILE *f, const weights *w, const qkv__json_value *tensor, int narrows)
{
    size_t begin = offset(tensor, 0), end = offset(tensor, 1);
    if (!narrows) return fwrite(w->data + begin, 1, end - begin, f);
    for (size_t i = begin; i < end; i += 4) {
        uint16_t half = narrow(w->data + i);
        fwrite(&half, 2, 1, f);
    }
    return (end - begin) / 2;
}

static void put_offsets(qkv__json_writer *w, size_t begin, size_t end)
{
    qkv__json_open_array(w, "data_offsets");
    qkv__json_put_int(w, NULL, (int64_t)begin);
    qkv__json_put_int(w, NULL, (int64_t)end);
    qkv__json_close(w);
}

/* The tensors whose number leaves `which` when it is divided by `of`. */
static void write_some(const char *folder, const char *name, const weights *w, size_t which, size_t of, int narrows)
{
    qkv__json_writer header = { 0 };
    size_t at = 0;
    FILE *data = tmpfile(), *f = open_in(folder, name, "wb");
    qkv__json_open_object(&header, NULL);
    for (size_t i = which; i < qkv__json_size(w->header); i += of) {
        const qkv__json_value *tensor = qkv__json_at(w->header, i);
        size_t bytes = put(data, w, tensor, narrows);
        qkv__json_open_object(&header, qkv__json_key(w->header, i));
        qkv__json_put_text(&header, "dtype", narrows ? "BF16" : qkv__json_get_text(tensor, "dtype"));
        qkv__json_put_value(&header, "shape", qkv__json_get(tensor, "shape"));
        put_offsets(&header, at, at + bytes);
        qkv__json_close(&header);
        at += bytes;
    }
    qkv__json_close(&header);
    uint64_t length = (header.length + 7) / 8 * 8;
    fwrite(&length, 8, 1, f);
    fprintf(f, "%-*s", (int)length, header.text);
    rewind(data);
    for (int c; (c = getc(data)) != EOF;) putc(c, f);
    fclose(data);
    fclose(f);
    qkv__json_writer_free(&header);
}

static void write_index(const char *folder, const weights *w)
{
    qkv__json_writer index = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&index, NULL);
    qkv__json_open_object(&index, "metadata");
    qkv__json_close(&index);
    qkv__json_open_object(&index, "weight_map");
    for (size_t i = 0; i < qkv__json_size(w->header); i++)
        qkv__json_put_text(&index, qkv__json_key(w->header, i), shard_names[i % 2]);
    qkv__json_close(&index);
    qkv__json_close(&index);
    FILE *f = open_in(folder, "model.safetensors.index.json", "w");
    fputs(index.text, f);
    fclose(f);
    qkv__json_writer_free(&index);
}

/* The first row of what has three, of the classifier's weights. */
static void keep_first_class(weights *w)
{
    for (size_t i = 0; i < qkv__json_size(w->header); i++) {
        const char *key = qkv__json_key(w->header, i);
        const qkv__json_value *tensor = qkv__json_at(w->header, i);
        if (strncmp(key, "classifi", 8) || qkv__json_int(qkv__json_at(qkv__json_get(tensor, "shape"), 0)) != 3) continue;
        char path[256], end[24];
        size_t begin = offset(tensor, 0);
        snprintf(end, sizeof end, "%zu", begin + (offset(tensor, 1) - begin) / 3);
        snprintf(path, sizeof path, "%s/shape/0", key);
        json_edit(&w->header, path, "1");
        key = qkv__json_key(w->header, i);
        snprintf(path, sizeof path, "%s/data_offsets/1", key);
        json_edit(&w->header, path, end);
    }
}

static void keep_encoder(weights *w, const char *name)
{
    qkv__json_writer kept = { 0 };
    qkv__json_open_object(&kept, NULL);
    for (size_t i = 0; i < qkv__json_size(w->header); i++) {
        const char *key = qkv__json_key(w->header, i);
        if (*name ? !strncmp(key, name, strlen(name)) : strncmp(key, "decoder.", 8) && strncmp(key, "lm_head.", 8))
            qkv__json_put_value(&kept, key + strlen(name), qkv__json_at(w->header, i));
    }
    qkv__json_close(&kept);
    json_free(w->header);
    w->header = json_parse(kept.text, kept.length);
    qkv__json_writer_free(&kept);
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) return 2;
    weights w = read_weights(argv[1]);
    if (!strcmp(argv[3], "one")) keep_first_class(&w);
    if (argc == 5) keep_encoder(&w, argv[4]);
    if (strcmp(argv[3], "shards")) write_some(argv[2], "model.safetensors", &w, 0, 1, !strcmp(argv[3], "bf16"));
    else {
        for (size_t i = 0; i < 2; i++) write_some(argv[2], shard_names[i], &w, i, 2, 0);
        write_index(argv[2], &w);
    }
    json_free(w.header);
    free(w.data);
    return 0;
}
