/* documents.c: documents of plain text: lines, paragraphs, or the whole file. */
#include "lines.h"

#include <qkv/data.h>

typedef struct reader {
    qkv__lines lines;
    int strict;
    qkv_document_each each;
    void *data;
    qkv_buffer paragraph;
    qkv_read_stats read;
} reader;

static qkv_status give(reader *r, const qkv_buffer *text)
{
    if (qkv__is_blank(text->data, text->length)) {
        if (!r->read.empty++) r->read.first_empty = r->lines.number;
        return QKV_OK;
    }
    qkv_status status = r->each(r->data, (qkv_str){ text->data, text->length });
    r->read.pairs += !status;
    return status;
}

static qkv_status read_lines(reader *r)
{
    bool more = true;
    qkv_status status = QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->strict, &more)) && more) status = give(r, &r->lines.line);
    return status;
}

static qkv_status end_paragraph(reader *r)
{
    qkv_status status = r->paragraph.length ? give(r, &r->paragraph) : QKV_OK;
    qkv__buffer_clear(&r->paragraph);
    return status;
}

static qkv_status add_line(reader *r, const qkv_buffer *line)
{
    if (r->paragraph.length && qkv__buffer_put(&r->paragraph, "\n", 1)) return QKV_MEMORY;
    return qkv__buffer_put(&r->paragraph, line->data, line->length);
}

static qkv_status read_paragraphs(reader *r)
{
    const qkv_buffer *line = &r->lines.line;
    bool more = true;
    qkv_status status = QKV_OK;
    while (!status && !(status = qkv__lines_next_text(&r->lines, r->strict, &more)) && more)
        status = qkv__is_blank(line->data, line->length) ? end_paragraph(r) : add_line(r, line);
    return status ? status : end_paragraph(r);
}

static qkv_status read_whole_file(reader *r)
{
    qkv_status status = qkv__lines_whole_utf8(&r->lines, r->strict, SIZE_MAX);
    return status ? status : give(r, &r->lines.line);
}

qkv_status qkv_read_documents(const char *path, qkv_document_kind kind, int strict, qkv_document_each each, void *data,
                              qkv_read_stats *read)
{
    static qkv_status (*const kinds[])(reader *) = { read_lines, read_paragraphs, read_whole_file };
    reader r = { .strict = strict, .each = each, .data = data };
    if (qkv__read_stats_write(read, &r.read)) return QKV_USAGE;
    if (!path || !each) return qkv__fail(QKV_USAGE, "documents: a path and a function are needed");
    if ((size_t)kind >= sizeof kinds / sizeof *kinds)
        return qkv__fail(QKV_USAGE, "documents: %d is no kind of document", (int)kind);
    qkv_status status = qkv__lines_open(&r.lines, path);
    if (!status) status = kinds[kind](&r);
    r.read.lines = r.lines.number;
    r.read.repaired = r.lines.repaired;
    r.read.first_repaired = r.lines.first_repaired;
    qkv__lines_close(&r.lines);
    qkv_buffer_free(&r.paragraph);
    qkv__read_stats_write(read, &r.read);
    return status;
}
