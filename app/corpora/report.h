/* report.h: a small grammar of reports about matches, each with its summary. */
#ifndef QKV_EXAMPLES_REPORT_H
#define QKV_EXAMPLES_REPORT_H

#include <stdint.h>

enum { REPORT_ROOM = 384, SUMMARY_ROOM = 112 };

typedef struct report {
    char text[REPORT_ROOM], summary[SUMMARY_ROOM];
} report;

/* Draws a report of three or four sentences, and the one that tells who won, where and how. */
void draw_report(uint64_t *state, report *out);

#endif
