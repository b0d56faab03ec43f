/* passages.h: texts as lines and sentences, and their translations joined again. */
#ifndef QKV_SRC_TASK_PASSAGES_H
#define QKV_SRC_TASK_PASSAGES_H

#include <qkv/task.h>
#include <qkv/unstable/buffer.h>

#include <stdbool.h>

#include "../model/model.h"

/* The parts of texts that are translated one by one. The texts must outlive them. Starts as zero. */
typedef struct qkv__passages {
    qkv_str *passages; /* n of them, side by side for a text */
    int64_t n, *first; /* text i has the passages first[i] .. first[i + 1] - 1 */
    size_t bytes[2];   /* of the two arrays */
} qkv__passages;

/* Cuts texts as o->split says. This is the one rule of the command and the server.
 *   NONE       a text is one passage.
 *   SENTENCES  a sentence is one passage.
 *   PARTS      as many sentences as m reads at once, see max_source.
 *   AUTO       a line is one passage. It is cut into sentences if it has more of them than the lines that m was trained on
 *              (qkv__model_info.sentences), or more tokens than m reads at once. With o->target_prefix no line is cut.
 * USAGE for more than `most` passages, and for options that m does not have; MEMORY. Free *p in any case. */
qkv_status qkv__passages_cut(qkv__passages *p, const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *o,
                             int64_t most);
void qkv__passages_free(qkv__passages *p);

/* The k-th translations of the passages of text i, joined; a passage with fewer gives its last. Line breaks between passages
 * stay, unless in_line is set. Within a line, translations in Chinese, Japanese and Thai are joined without a space, others
 * with the white space of the text, or a space where it has none. White space around the text is not kept. MEMORY. */
qkv_status qkv__passages_join(const qkv__passages *p, int64_t i, const qkv_translations *t, int k, bool in_line,
                              qkv_buffer *out);

/* A text without the white space around it. */
qkv_span qkv__trim(const char *text, size_t length);

/* Whether any passage of text i has a k-th translation. */
bool qkv__passages_have(const qkv__passages *p, int64_t i, const qkv_translations *t, int k);

#endif
