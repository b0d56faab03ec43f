/* programs.c: other programs, which environment variables name: see docs/bench.md. */
#include "bench/bench.h"
#include "bench.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line of an answer. */
static void tell_answer(const char *line, const question *q, const qkv_bench_row *ours)
{
    char kept[4096 + 256];
    json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const json_t *rate = json_object_get(answer, "tokens_per_second");
    if (!rate) rate = json_object_get(answer, "sentences_per_second");
    const char *name = json_string_value(json_object_get(answer, "name"));
    if (json_is_number(rate) && json_number_value(rate) > 0) {
        double best = ours->amount / ours->best / json_number_value(rate),
               median = ours->amount / ours->median / json_number_value(rate);
        printf("    %s %.1f %s a second: qkv is %.2f / %.2f times as fast\n", name ? name : q->variable,
               json_number_value(rate), ours->unit, best, median);
        snprintf(kept, sizeof kept, "{\"peer\": %s, \"against\": \"%s\"}", line, ours->name);
        keep_json(ours->threads, kept);
    } else fprintf(stderr, "bench: %s: no \"tokens_per_second\" in: %s\n", q->variable, line);
    json_decref(answer);
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
