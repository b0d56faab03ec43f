/* names.h: the names along the rows and the columns of a map. */
#ifndef QKV_SRC_NAMES_H
#define QKV_SRC_NAMES_H

#include "picture.h"

enum {
    QKV__NAME_GAP = 6,   /* between a name and its cell */
    QKV__NAMED_CELL = 10 /* the smallest cell that a name can stand beside */
};

typedef enum qkv__direction { QKV__ACROSS, QKV__SLANTED, QKV__UPRIGHT } qkv__direction;

typedef struct qkv__side {
    const char *const *names; /* NULL: numbers from 0 */
    int64_t n;
    double cell;    /* how large a cell is along this side */
    double largest; /* letters, in points; 0: as large as names are anywhere */
    /* chosen: */
    double size;   /* of the letters */
    int64_t step;  /* every so many cells have a name; 0: none has */
    double room;   /* that the names take, away from the map */
    double beyond; /* how far slanted names reach past the map */
    qkv__direction how;
} qkv__side;

/* Chooses how the names are written; scale enlarges those that cannot stand at every cell. */
void qkv__choose_row_names(qkv__picture *p, qkv__side *s, double scale, bool is_grid);
void qkv__choose_column_names(qkv__picture *p, qkv__side *s, double scale, bool is_grid);

/* Draws them beside and over a map whose upper left corner is at (x, y). */
void qkv__draw_row_names(qkv__picture *p, const qkv__side *s, double x, double y);
void qkv__draw_column_names(qkv__picture *p, const qkv__side *s, double x, double y);

#endif
