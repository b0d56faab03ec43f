/* shared_lines.h: lines that the ranks of mpirun share. */
#ifndef QKV_CLI_SHARED_LINES_H
#define QKV_CLI_SHARED_LINES_H

#include "lines.h"

/* Rank 0 reads groups of lines until there is no more; every rank handles its share of each, as if there were no other, and what they
 * print comes out in the order of the lines. g is rank 0's, and of the others nothing but its name is used. handle
 * gets at most `most` lines at a time. */
typedef qkv_status group_reader(void *reader, line_group *g, bool *more);
qkv_status each_shared_group(line_group *g, int64_t most, group_reader *read, void *reader, group_handler handle, void *data);

#endif
