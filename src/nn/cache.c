/* cache.c: keys and values in pages that sequences share. */
#include "cache.h"

#include "../base/memory.h"
#include "../base/size.h"
#include "../base/status.h"

#include <string.h>

enum { PAGE = QKV__PAGE };

static int64_t layer_floats(const qkv__cache *c) { return c->kv_heads * (c->dk + c->dv) * PAGE; }

int64_t qkv__cache_at(const qkv__cache *c, int layer) { return layer * layer_floats(c); }

size_t qkv__cache_page_bytes(const qkv__cache *c)
{
    return sizeof(qkv__page) + sizeof(float) * (size_t)(c->layers * layer_floats(c));
}

size_t qkv__cache_bytes(const qkv__cache *c) { return (size_t)c->n_pages * qkv__cache_page_bytes(c); }

static qkv__page *page_of(float *data) { return (qkv__page *)(void *)((char *)data - offsetof(qkv__page, data)); }

/* ---- pages ---- */

static float *take_page(qkv__cache *c)
{
    qkv__page *page = c->unused;
    if (page) c->unused = page->next, c->n_unused--;
    else if ((page = qkv__alloc(qkv__cache_page_bytes(c)))) c->n_pages++;
    if (!page) return NULL;
    page->users = 1;
    return page->data;
}

static void leave_page(qkv__cache *c, float *data)
{
    qkv__page *page = page_of(data);
    if (--page->users) return;
    page->next = c->unused;
    c->unused = page;
    c->n_unused++;
}

void qkv__cache_trim(qkv__cache *c)
{
    while (c->unused) {
        qkv__page *page = c->unused;
        c->unused = page->next;
        qkv__release(page, qkv__cache_page_bytes(c));
        c->n_pages--;
    }
    c->n_unused = 0;
}

/* ---- sequences ---- */

static qkv_status list_room(qkv__sequence *s, int64_t pages)
{
    if (pages <= s->room) return QKV_OK;
    int64_t room = qkv__max(pages, 2 * s->room);
    float **list = qkv__alloc(sizeof *list * (size_t)room);
    if (!list) return QKV_MEMORY;
    if (s->n_pages) memcpy(list, s->pages, sizeof *list * (size_t)s->n_pages);
    qkv__release(s->pages, sizeof *list * (size_t)s->room);
    s->pages = list;
    s->room = room;
    return QKV_OK;
}

/* The page that the next token goes to, when others use it too, is replaced by one that is to be a copy. One of those others
 * keeps it. */
static qkv_status own_last_page(qkv__cache *c, qkv__sequence *s)
{
    int64_t last = s->length / PAGE;
    if (s->length % PAGE == 0 || page_of(s->pages[last])->users == 1) return QKV_OK;
    float *copy = take_page(c);
    if (!copy) return QKV_MEMORY;
    s->last_was = s->pages[last];
    leave_page(c, s->pages[last]);
    s->pages[last] = copy;
    return QKV_OK;
}

/* Of each layer all keys, where tokens are columns, and the values of the tokens that there are. */
void qkv__cache_settle(const qkv__cache *c, qkv__sequence *s)
{
    if (!s->last_was) return;
    int64_t keys = c->kv_heads * c->dk * PAGE, tokens = s->length % PAGE;
    float *to = s->pages[s->length / PAGE];
    const float *from = s->last_was;
    for (int64_t l = 0; l < c->layers; l++) {
        memcpy(to, from, sizeof(float) * (size_t)keys);
        to += keys, from += keys;
        for (int64_t h = 0; h < c->kv_heads; h++, to += PAGE * c->dv, from += PAGE * c->dv)
            memcpy(to, from, sizeof(float) * (size_t)(tokens * c->dv));
    }
    s->last_was = NULL;
}

qkv_status qkv__cache_reserve(qkv__cache *c, qkv__sequence *s, int64_t n)
{
    int64_t wanted = qkv__ceil_div(s->length + n, PAGE), had = s->n_pages;
    qkv_status status = list_room(s, wanted);
    if (!status) status = own_last_page(c, s);
    while (!status && s->n_pages < wanted) {
        float *page = take_page(c);
        if (page) s->pages[s->n_pages++] = page;
        else status = QKV_MEMORY;
    }
    while (status && s->n_pages > had) leave_page(c, s->pages[--s->n_pages]);
    return status;
}

/* Tokens of one page. Keys are columns there: a square of them at a time, so that its lines are written for all tokens at once. */
static void write_to_page(const qkv__cache *c, float *page, int64_t at, int64_t n, const float *k, const float *v)
{
    int64_t width = c->kv_heads * c->dk;
    float *values = page + width * PAGE;
    for (int64_t d = 0; d < width; d += PAGE)
        for (int64_t i = 0; i < n; i++)
            for (int64_t e = d; e < qkv__min(d + PAGE, width); e++) page[e * PAGE + at + i] = k[i * width + e];
    for (int64_t i = at; i < at + n; i++)
        for (int64_t h = 0; h < c->kv_heads; h++, v += c->dv)
            memcpy(values + (h * PAGE + i) * c->dv, v, sizeof(float) * (size_t)c->dv);
}

void qkv__cache_write(const qkv__cache *c, const qkv__sequence *s, int layer, int64_t at, int64_t n, const float *k,
                      const float *v)
{
    for (int64_t end = at + n, some; at < end; at += some) {
        some = qkv__min(end - at, PAGE - at % PAGE);
        write_to_page(c, s->pages[at / PAGE] + qkv__cache_at(c, layer), at % PAGE, some, k, v);
        k += some * c->kv_heads * c->dk;
        v += some * c->kv_heads * c->dv;
    }
}

qkv_status qkv__cache_share(qkv__sequence *to, const qkv__sequence *from)
{
    int64_t pages = qkv__ceil_div(from->length, PAGE);
    if (list_room(to, pages)) return QKV_MEMORY;
    for (int64_t i = 0; i < pages; i++) page_of(to->pages[i] = from->pages[i])->users++;
    to->n_pages = pages;
    to->length = from->length;
    return QKV_OK;
}

void qkv__cache_cut(qkv__cache *c, qkv__sequence *s, int64_t length)
{
    s->length = length;
    while (s->n_pages > qkv__ceil_div(length, PAGE)) leave_page(c, s->pages[--s->n_pages]);
}

void qkv__cache_drop(qkv__cache *c, qkv__sequence *s)
{
    qkv__cache_cut(c, s, 0);
    qkv__release(s->pages, sizeof *s->pages * (size_t)s->room);
    *s = (qkv__sequence){ 0 };
}
