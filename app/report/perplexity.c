/* perplexity.c: how surprising files are to a language model, and what that is called. */
#include "results.h"
#include "../../src/dist/deal.h"
#include "../../src/task/measure.h"

#include "../../src/base/options.h"
#include "notes.h"
#include "out.h"
#include "../term/translator.h"

#include <math.h>

static const char call[] = "perplexity";

typedef struct measuring {
    const qkv_model *model;
    qkv_likelihood_opts opts;
    qkv_measured *out;
    qkv__deal deal; /* of windows to the ranks */
} measuring;

static qkv_status take_window(void *data, int64_t tokens, bool *is_own)
{
    return qkv__deal_piece(&((measuring *)data)->deal, tokens, is_own);
}

static void put_window(void *data, double nats)
{
    qkv__deal *deal = &((measuring *)data)->deal;
    deal->pieces[deal->n - 1].number = nats;
}

static qkv_status measure_document(void *data, qkv_str text)
{
    measuring *x = data;
    x->out->bytes += (int64_t)text.length;
    x->out->documents++;
    const qkv__window_share share = { take_window, put_window, x };
    return qkv__log_likelihood(x->model, text, &x->opts, &share, &x->out->sum);
}

qkv_status qkv_measure_files(const qkv_model *m, const char *const *paths, int n, const qkv_measure_opts *opts,
                             qkv_measured *out)
{
    qkv_measure_opts o;
    qkv_measured found = { 0 };
    qkv_read_stats read = { 0 };
    qkv_status status = QKV__READ_OPTIONS(&o, note_data, opts, call);
    if (status) return status;
    if (!m || !paths || n < 1 || !out)
        return qkv__fail(QKV_USAGE, "%s: a model, files and a place for the result are needed", call);
    measuring x = { .model = m, .opts = { .context = o.context, .stride = o.stride }, .out = &found };
    const qkv__notes notes = { o.note, o.note_data };
    status = qkv__documents_read(paths, n, o.documents, o.strict, measure_document, &x, notes, &read);
    if (!status) status = qkv__deal_join(&x.deal);
    for (int64_t i = 0; i < x.deal.n && !status; i++) found.sum.nats += x.deal.pieces[i].number; /* as one rank would */
    if (!status) *out = found;
    qkv__deal_free(&x.deal);
    return status;
}

static void put_row(qkv__out *out, const char *name, int decimals, double value)
{
    qkv__out_name(out, qkv__translated(name), 13, false);
    qkv__out_printf(out, "%.*f\n", decimals, value);
}

qkv_status qkv_measured_text(const qkv_measured *x, int json, qkv_buffer *out)
{
    if (!x || !out) return qkv__fail(QKV_USAGE, "%s: what was measured and a place for the text are needed", call);
    double nats = x->sum.nats / (double)x->sum.tokens, bits = x->sum.nats / log(2) / (double)x->bytes;
    qkv__out text = qkv__out_begin(out);
    if (json) {
        qkv__out_printf(&text,
                        "{\"documents\": %lld, \"tokens\": %lld, \"bytes\": %lld, \"nats_per_token\": %.17g, "
                        "\"perplexity\": %.17g, \"bits_per_token\": %.17g, \"bits_per_byte\": %.17g}\n",
                        (long long)x->documents, (long long)x->sum.tokens, (long long)x->bytes, nats, exp(nats), nats / log(2),
                        bits);
        return qkv__out_end(&text);
    }
    put_row(&text, QKV__N("documents"), 0, (double)x->documents);
    put_row(&text, QKV__N("tokens"), 0, (double)x->sum.tokens);
    put_row(&text, QKV__N("bytes"), 0, (double)x->bytes);
    put_row(&text, QKV__N("nats/token"), 4, nats);
    put_row(&text, QKV__N("perplexity"), 4, exp(nats));
    put_row(&text, QKV__N("bits/token"), 4, nats / log(2));
    put_row(&text, QKV__N("bits/byte"), 4, bits);
    return qkv__out_end(&text);
}
