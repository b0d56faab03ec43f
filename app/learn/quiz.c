/* quiz.c: asks the questions of quiz.def. */
#include "quiz.h"

#include <qkv/unstable/util.h>

#include "lesson.h"
#include "../term/errors.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* clang-format off */
static const quiz_question questions[] = {
#define CHOICE(topic, question, a, b, c, d, right, answer, numbers, command, shows) \
    { topic, question, { a, b, c, d }, right - 'a', answer, numbers, command, shows },
#define FREE(topic, question, answer, numbers, command, shows) \
    { topic, question, { NULL }, -1, answer, numbers, command, shows },
#include "quiz.def"
};
/* clang-format on */
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* ---- one question ---- */

static void print_question(int i)
{
    const quiz_question *q = &questions[i];
    say("%d. [%s] %s", i + 1, _(q->topic), _(q->question));
    for (int j = 0; j < QUIZ_CHOICES && q->choices[j]; j++) printf("  %c) %s\n", 'a' + j, _(q->choices[j]));
    if (*q->choices) putchar('\n');
}

/* The text with its numbers in place of {which:decimals}. */
static void fill_in(const char *text, const double n[QUIZ_NUMBERS], char *out, size_t room)
{
    for (size_t used = 0; *text && used + 1 < room;) {
        int which, decimals, length = 0;
        if (sscanf(text, "{%1d:%1d}%n", &which, &decimals, &length) == 2 && length && which >= 1 && which <= QUIZ_NUMBERS) {
            used += (size_t)snprintf(out + used, room - used, "%.*f", decimals, n[which - 1]);
            text += length;
        } else {
            out[used++] = *text++;
            out[used] = '\0';
        }
    }
}

static qkv_status print_answer(int i)
{
    const quiz_question *q = &questions[i];
    double n[QUIZ_NUMBERS] = { 0 };
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_status status = !t ? library_failed() : q->numbers ? q->numbers(t, n) : QKV_OK;
    qkv_tape_free(t);
    if (status) return status;
    if (*q->choices) say(_("Right: %c) %s"), 'a' + q->right, _(q->choices[q->right]));
    char answer[2048] = "";
    fill_in(_(q->answer), n, answer, sizeof answer);
    say(_("Model answer: %s"), answer);
    printf(_("To see it: qkv %s   (look for: %s)"), q->command, _(q->shows));
    puts("\n");
    return QKV_OK;
}

/* ---- what is typed ---- */

typedef struct score {
    int right, choices; /* of multiple choice */
    bool is_over;       /* nothing more is typed */
} score;

/* The next line without white space around it and without control characters; NULL after the last. */
static char *read_answer(char **line, size_t *room)
{
    if (isatty(STDIN_FILENO)) fputs("> ", stdout), fflush(stdout);
    ssize_t length = getline(line, room, stdin);
    if (length < 0) return NULL;
    for (char *c = *line; *c; c++)
        if (iscntrl((unsigned char)*c)) *c = ' ';
    while (length && (*line)[length - 1] == ' ') (*line)[--length] = '\0';
    return *line + strspn(*line, " ");
}

/* The index of a choice given as its letter, with or without a parenthesis, or as its text; -1 for anything else.
 * Chinese input methods type full-width letters and parentheses: U+FF01 to U+FF5E are ASCII's 0x21 to 0x7E. */
static int read_choice(const quiz_question *q, const char *typed)
{
    char ascii[3] = "";
    size_t n = 0, left = strlen(typed), bytes;
    for (const char *at = typed; left && n < sizeof ascii - 1; at += bytes, left -= bytes) {
        int32_t c = qkv_utf8_next(at, left, &bytes);
        if (c > 0xFF00 && c < 0xFF5F) c -= 0xFEE0;
        ascii[n++] = c > 0 && c < 0x80 ? (char)tolower(c) : '?';
    }
    bool is_letter = !left && (n == 1 || (n == 2 && ascii[1] == ')'));
    for (int j = 0; j < QUIZ_CHOICES && q->choices[j]; j++)
        if ((is_letter && ascii[0] == 'a' + j) || !strcasecmp(typed, q->choices[j]) || !strcmp(typed, _(q->choices[j])))
            return j;
    return -1;
}

static void tell_choice(const quiz_question *q, const char *typed, score *s)
{
    bool is_right = read_choice(q, typed) == q->right;
    s->choices++;
    s->right += is_right;
    say("%s", is_right ? _("That is right.") : _("That is not it."));
}

static qkv_status ask(int i, score *s)
{
    char *line = NULL;
    size_t room = 0;
    print_question(i);
    const char *typed = read_answer(&line, &room);
    s->is_over = !typed;
    if (typed && *questions[i].choices) tell_choice(&questions[i], typed, s);
    else if (typed) say(_("Your answer: %s"), typed);
    free(line);
    return s->is_over ? QKV_OK : print_answer(i);
}

/* ---- all of them ---- */

/* A topic can be named in English and in the reader's language. */
static bool is_topic(int i, const char *name)
{
    return !strcmp(questions[i].topic, name) || !strcmp(_(questions[i].topic), name);
}

static qkv_status check_topic(const char *topic)
{
    char topics[256] = "";
    for (int i = 0; i < QUESTIONS; i++) {
        if (is_topic(i, topic)) return QKV_OK;
        size_t used = strlen(topics);
        if (!i || strcmp(questions[i].topic, questions[i - 1].topic))
            snprintf(topics + used, sizeof topics - used, "%s%s", i ? ", " : "", questions[i].topic);
    }
    return fail(QKV_USAGE, "there is no topic \"%s\", but these: %s", topic, topics);
}

static bool is_asked(const quiz_opts *o, int i)
{
    if (o->number) return i + 1 == o->number;
    return !o->topic || is_topic(i, o->topic);
}

static void list_question(int i)
{
    printf("%3d  ", i + 1);
    print_name(_(questions[i].topic), 12, false);
    printf("  %s\n", _(questions[i].question));
}

static qkv_status put(const quiz_opts *o, int i, score *s)
{
    if (o->is_list) return list_question(i), QKV_OK;
    if (!o->with_answers) return ask(i, s);
    print_question(i);
    return print_answer(i);
}

qkv_status run_quiz(const quiz_opts *o)
{
    score s = { 0 };
    if (o->number > QUESTIONS)
        return fail(QKV_USAGE, "there is no question %d: the last is %d; \"qkv quiz --list\" has them", o->number, QUESTIONS);
    qkv_status status = o->topic ? check_topic(o->topic) : QKV_OK;
    for (int i = 0; i < QUESTIONS && !status && !s.is_over; i++)
        if (is_asked(o, i)) status = put(o, i, &s);
    if (!status && s.choices) say(_("Multiple choice: %d of %d right."), s.right, s.choices);
    return status;
}
