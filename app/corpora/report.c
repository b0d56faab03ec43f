/* report.c: a small grammar of reports about matches, each with its summary.
 *
 * What a summary needs stands in sentences of their own, in any order among others that it leaves out, which may name another team:
 * a model must find, choose and say it anew. */
#include "report.h"

#include "grammar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define PICK(table) ((table)[random_below(r, COUNT(table))])

static const char *const teams[] = { "Lions",  "Foxes",  "Eagles", "Bears",  "Wolves", "Sharks",
                                     "Ravens", "Tigers", "Bulls",  "Comets", "Giants", "Rovers" };
static const char *const cities[] = { "Paris", "Lima", "Oslo", "Cairo", "Delhi", "Rome", "Kyoto", "Quito", "Dublin", "Lagos" };
static const char *const goals[] = { "none", "one", "two", "three", "four", "five", "six" };
static const char *const colours[] = { "red", "blue", "green", "white", "yellow" };
static const char *const others[] = { "It rained from the start to the end.",
                                      "The sun was shining and there was no wind.",
                                      "Many people had come with flags and songs.",
                                      "The referee had a quiet evening.",
                                      "Nobody was hurt.",
                                      "The grass was wet and the ball was fast.",
                                      "The first half was slow.",
                                      "Both sides had rested for a week.",
                                      "The last train was full of happy people.",
                                      "The next match is on Sunday." };

typedef struct match {
    const char *winner, *loser, *city, *more, *fewer;
} match;

static void say_place(uint64_t *r, const match *m, char *out, size_t room)
{
    static const char *const forms[] = { "The teams met in %s.", "The match was played in %s.", "They played in %s." };
    snprintf(out, room, PICK(forms), m->city);
}

static void say_result(uint64_t *r, const match *m, char *out, size_t room)
{
    if (random_below(r, 2)) snprintf(out, room, "The %s won by %s goals to %s.", m->winner, m->more, m->fewer);
    else snprintf(out, room, "With %s goals to %s the %s won.", m->more, m->fewer, m->winner);
}

static void say_other(uint64_t *r, const match *m, char *out, size_t room)
{
    if (random_below(r, 3)) snprintf(out, room, "%s", PICK(others));
    else snprintf(out, room, "The %s played in %s.", random_below(r, 2) ? m->winner : m->loser, PICK(colours));
}

/* Sentences in the order that `what` has them, a space between two. */
static void write_report(uint64_t *r, const match *m, const char *what, char *text)
{
    for (size_t used = 0; *what; what++, used = strlen(text)) {
        if (used && used + 1 < REPORT_ROOM) text[used++] = ' ';
        (*what == 'p' ? say_place : *what == 'r' ? say_result : say_other)(r, m, text + used, REPORT_ROOM - used);
    }
}

void draw_report(uint64_t *r, report *out)
{
    static const char *const orders[] = { "por", "rop", "opr", "orp", "pro", "rpo", "opor", "orop", "proo", "rpoo" };
    match m = { .winner = PICK(teams) };
    do m.loser = PICK(teams);
    while (m.loser == m.winner);
    m.city = PICK(cities);
    int more = 2 + random_below(r, COUNT(goals) - 2);
    m.more = goals[more];
    m.fewer = goals[random_below(r, more)];
    *out->text = '\0';
    write_report(r, &m, PICK(orders), out->text);
    snprintf(out->summary, sizeof out->summary, "The %s won %s to %s in %s.", m.winner, m.more, m.fewer, m.city);
}
