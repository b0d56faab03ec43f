/* typed_line.h: lines typed at a terminal, with editing and history if the command was built with libedit. */
#ifndef QKV_CLI_TYPED_LINE_H
#define QKV_CLI_TYPED_LINE_H

#include <stddef.h>

typedef enum typed_line { TYPED_LINE, TYPED_END, TYPED_INTERRUPT } typed_line;

/* Shows the prompt and reads a line to *line, which is realloc'ed to *room and ends with a NUL. TYPED_END at the end of the input;
 * TYPED_INTERRUPT, and the line is dropped, when the descriptor `interrupt` becomes readable. */
typed_line read_typed_line(const char *prompt, int interrupt, char **line, size_t *room);

/* Gives the terminal and the history back. */
void end_typed_lines(void);

#endif
