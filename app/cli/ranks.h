/* ranks.h: a command that several ranks run as one, where mpirun or srun started it. */
#ifndef QKV_CLI_RANKS_H
#define QKV_CLI_RANKS_H

#include "options.h"

/* Finds the other ranks, and tells of them on rank 0's standard error. Does nothing without a launcher. Reported. */
qkv_status join_ranks(int threads);

/* Rank 0 prints and writes, and tells what is wrong with all of them. */
bool speaks_for_ranks(void);

/* The end of all ranks, with the first status that is not OK; one that meets an error alone ends the others. */
qkv_status leave_ranks(qkv_status status);

#endif
