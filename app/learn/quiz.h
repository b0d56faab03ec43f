/* quiz.h: interview questions about attention and the Transformer, with model answers. quiz.def lists them. */
#ifndef QKV_LEARN_QUIZ_H
#define QKV_LEARN_QUIZ_H

#include <qkv/qkv.h>

#include <stdbool.h>

enum { QUIZ_CHOICES = 4, QUIZ_NUMBERS = 4 };

/* Computes the numbers that an answer has in it. Reports its error. */
typedef qkv_status (*quiz_numbers)(qkv_tape *t, double n[QUIZ_NUMBERS]);

typedef struct quiz_question {
    const char *topic;
    const char *question;              /* N_() */
    const char *choices[QUIZ_CHOICES]; /* N_() where they are words; NULL: the answer is typed freely */
    int right;                         /* of the choices */
    const char *answer;                /* N_(); {2:4} in it is the second number with 4 decimals */
    quiz_numbers numbers;              /* NULL: it has none */
    const char *command, *shows;       /* what shows it, without "qkv", and what to look for there, in English */
} quiz_question;

/* What is asked: one question, from 1, or with 0 all of a topic, or with NULL all there are. */
typedef struct quiz_opts {
    int number;
    const char *topic;
    bool is_list;      /* the questions alone */
    bool with_answers; /* nothing is read: questions with model answers and commands */
} quiz_opts;

/* Asks on standard output and reads answers from standard input, until both or one of them end. USAGE for a number or a topic
 * that there is not; NUMERIC and so on of the computing; reported. */
qkv_status run_quiz(const quiz_opts *o);

/* The numbers of quiz.def. */
qkv_status numbers_of_shares(qkv_tape *t, double n[QUIZ_NUMBERS]);    /* weights of q = [1,0] on [1,0], [0,1], [1,0] */
qkv_status numbers_of_softmax(qkv_tape *t, double n[QUIZ_NUMBERS]);   /* of [2, 1, 0.1] */
qkv_status numbers_of_layernorm(qkv_tape *t, double n[QUIZ_NUMBERS]); /* of [140 .. 180]: the first, of RMSNorm too */
qkv_status numbers_of_smoothing(qkv_tape *t, double n[QUIZ_NUMBERS]); /* cross-entropy without and with; KL */
qkv_status numbers_of_rate(qkv_tape *t, double n[QUIZ_NUMBERS]);      /* the paper's peak, at d_model 512 and 256 */
qkv_status numbers_of_position(qkv_tape *t, double n[QUIZ_NUMBERS]);  /* PE(4) at d = 4 */
qkv_status numbers_of_layer(qkv_tape *t, double n[QUIZ_NUMBERS]);     /* weights of attention and feed-forward at base */
qkv_status numbers_of_models(qkv_tape *t, double n[QUIZ_NUMBERS]);    /* millions of base, of big, of the table of 37000 */
qkv_status numbers_of_bleu(qkv_tape *t, double n[QUIZ_NUMBERS]);      /* of lesson 17's sentence: score, BP */
qkv_status numbers_of_rotary(qkv_tape *t, double n[QUIZ_NUMBERS]);    /* [1, 0] turned by place 1 */
qkv_status numbers_of_line(qkv_tape *t, double n[QUIZ_NUMBERS]);      /* first loss, w and b after one step at 0.01 */

#endif
