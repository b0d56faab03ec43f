/* arrays.h: the masks that a command reads from .npy files. Each reports its error. */
#ifndef QKV_CLI_ARRAYS_H
#define QKV_CLI_ARRAYS_H

#include <qkv/qkv.h>

#include <stdbool.h>

/* A mask and the memory it points to. Zero hides nothing. */
typedef struct mask_files {
    qkv_mask mask;
    int32_t *lengths;
    uint8_t *keep;
    qkv_array bias;
} mask_files;

/* one_head: the scores have no dimension for heads, so a mask of 3 dimensions is (B, Tq, Tk), not (H, Tq, Tk). */
qkv_status load_keep(mask_files *m, const char *path, bool one_head);
qkv_status load_bias(mask_files *m, const char *path, bool one_head);

/* "3,5": one length for each of `batch` sequences. */
qkv_status read_lengths(mask_files *m, const char *text, int64_t batch);
void free_mask(mask_files *m);

#endif
