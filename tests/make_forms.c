/* make_forms.c: writes a model's folder in another form for the shell tests, sharing no code with the library: its weights in
 * two files with their index, rounded to BF16, of three classes the first alone, or an encoder without its head, whose tensors begin with NAME (of
 * a T5 nothing, and it loses its decoder).
 * usage: make_forms FROM TO shards|bf16|one|bare [NAME]   (TO has the other files already)
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights {
    json_t *header;
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
    weights w = { json_loadb((const char *)all + 8, (size_t)length, 0, NULL), malloc(size) };
    if (!w.header || !w.data) exit(3);
    memcpy(w.data, all + 8 + length, size - 8 - (size_t)length);
    json_object_del(w.header, "__metadata__");
    free(all);
    return w;
}

static size_t offset(const json_t *tensor, size_t i)
{
    return (size_t)json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), i));
}

/* To the nearest, of two as near the even one. */
static uint16_t narrow(const unsigned char *from)
{
    uint32_t bits;
    memcpy(&bits, from, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The bytes of one tensor, written; how many they are. */
static size_t put(FILE *f, const weights *w, const json_t *tensor, int narrows)
{
    size_t begin = offset(tensor, 0), end = offset(tensor, 1);
    if (!narrows) return fwrite(w->data + begin, 1, end - begin, f);
    for (size_t i = begin; i < end; i += 4) {
        uint16_t half = narrow(w->data + i);
        fwrite(&half, 2, 1, f);
    }
    return (end - begin) / 2;
}

/* The tensors whose number leaves `which` when it is divided by `of`. */
static void write_some(const char *folder, const char *name, const weights *w, size_t which, size_t of, int narrows)
{
    json_t *header = json_object(), *tensor;
    const char *key;
    size_t at = 0, i = 0;
    FILE *data = tmpfile(), *f = open_in(folder, name, "wb");
    json_object_foreach (w->header, key, tensor) {
        if (i++ % of != which) continue;
        size_t bytes = put(data, w, tensor, narrows);
        json_object_set_new(
            header, key,
            json_pack("{s:s, s:O, s:[I, I]}", "dtype", narrows ? "BF16" : json_string_value(json_object_get(tensor, "dtype")),
                      "shape", json_object_get(tensor, "shape"), "data_offsets", (json_int_t)at, (json_int_t)(at + bytes)));
        at += bytes;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    uint64_t length = (strlen(text) + 7) / 8 * 8;
    fwrite(&length, 8, 1, f);
    fprintf(f, "%-*s", (int)length, text);
    rewind(data);
    for (int c; (c = getc(data)) != EOF;) putc(c, f);
    fclose(data);
    fclose(f);
    free(text);
    json_decref(header);
}

static void write_index(const char *folder, const weights *w)
{
    json_t *map = json_object(), *tensor;
    const char *key;
    size_t i = 0;
    json_object_foreach (w->header, key, tensor) json_object_set_new(map, key, json_string(shard_names[i++ % 2]));
    json_t *index = json_pack("{s:{}, s:o}", "metadata", "weight_map", map);
    FILE *f = open_in(folder, "model.safetensors.index.json", "w");
    json_dumpf(index, f, JSON_INDENT(2));
    fclose(f);
    json_decref(index);
}

/* The first row of what has three, of the classifier's weights. */
static void keep_first_class(const weights *w)
{
    json_t *tensor;
    const char *key;
    json_object_foreach (w->header, key, tensor) {
        json_t *shape = json_object_get(tensor, "shape");
        if (strncmp(key, "classifi", 8) || json_integer_value(json_array_get(shape, 0)) != 3) continue;
        size_t begin = offset(tensor, 0), end = begin + (offset(tensor, 1) - begin) / 3;
        json_array_set_new(shape, 0, json_integer(1));
        json_array_set_new(json_object_get(tensor, "data_offsets"), 1, json_integer((json_int_t)end));
    }
}

static void keep_encoder(weights *w, const char *name)
{
    json_t *kept = json_object(), *tensor;
    const char *key;
    json_object_foreach (w->header, key, tensor)
        if (*name ? !strncmp(key, name, strlen(name)) : strncmp(key, "decoder.", 8) && strncmp(key, "lm_head.", 8))
            json_object_set(kept, key + strlen(name), tensor);
    json_decref(w->header);
    w->header = kept;
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
    json_decref(w.header);
    free(w.data);
    return 0;
}
