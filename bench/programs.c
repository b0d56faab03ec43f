/* programs.c: other programs, which environment variables name: see docs/bench.md. */
#include "bench/bench.h"
#include "bench.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line of an answer. */
static void tell_answer(const char *line, const question *q, const qkv_bench_row *ours)
{
    char kept[4096 + 256];
    qkv__json_doc answer;
    qkv__json_parse(&(qkv__json_source){ .name = q->variable, .text = line, .length = strlen(line) }, &answer);
    const qkv__json_value *rate = qkv__json_get(answer.top, "tokens_per_second");
    if (!rate) rate = qkv__json_get(answer.top, "sentences_per_second");
    const char *name = qkv__json_text(qkv__json_get(answer.top, "name"));
    if (qkv__json_is_number(rate) && qkv__json_number(rate) > 0) {
        double best = ours->amount / ours->best / qkv__json_number(rate),
               median = ours->amount / ours->median / qkv__json_number(rate);
        printf("    %s %.1f %s a second: qkv is %.2f / %.2f times as fast\n", name ? name : q->variable, qkv__json_number(rate),
               ours->unit, best, median);
        snprintf(kept, sizeof kept, "{\"peer\": %s, \"against\": \"%s\"}", line, ours->name);
        keep_json(ours->threads, kept);
    } else fprintf(stderr, "bench: %s: no \"tokens_per_second\" in: %s\n", q->variable, line);
    qkv__json_free(&answer);
}

const char *weights_name(qkv_dtype weights)
{
    static const char *const names[] = {
        [QKV_DTYPE_STORED] = "float32", [QKV_DTYPE_INT8] = "int8", [QKV_DTYPE_INT4] = "int4", [QKV_DTYPE_BF16] = "bfloat16"
    };
    return names[weights];
}

void ask_program(const question *q, const qkv_bench_row *ours)
{
    const char *program = getenv(q->variable);
    char command[4096], line[4096];
    if (!program || !*program) return;
    snprintf(command, sizeof command, "%s %s --weights %s --threads %d --batch %lld --beam %d --length %lld --new %lld",
             program, q->kind, weights_name(q->o.weights), ours->threads, (long long)q->o.batch, q->o.beam ? q->o.beam : 1,
             (long long)q->o.length, (long long)q->o.new_tokens);
    fflush(stdout);
    qkv_shutdown(); /* nobody waits beside it */
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (*line) tell_answer(line, q, ours);
    }
    if (!f || pclose(f)) fprintf(stderr, "bench: %s failed: %s\n", q->variable, command);
}
