/* sentiment.c: a small grammar of sentences about films, each praise or blame.
 *
 * No word decides: a good word may be denied ("was not funny at all"), may be what was hoped for ("I expected a funny film
 * but"), may stand in the lesser half of a contrast, or be the opinion of somebody who is wrong. There is no punctuation, so
 * that words between spaces are all there is to know. */
#include "sentiment.h"

#include "grammar.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define PICK(table) ((table)[random_below(r, COUNT(table))])

/* ---- words ---- */

enum { ADJECTIVES = 14 };
static const char *const adjectives[2][ADJECTIVES] = {
    { "bad", "dull", "boring", "awful", "weak", "stupid", "tedious", "clumsy", "stale", "ugly", "terrible", "lifeless", "silly",
      "annoying" },
    { "good", "great", "funny", "wonderful", "strong", "clever", "gripping", "elegant", "fresh", "beautiful", "superb",
      "moving", "honest", "charming" },
};
static const char *const genres[] = { "film",    "movie",   "comedy", "thriller", "drama",  "western",
                                      "musical", "romance", "sequel", "remake",   "cartoon" };
static const char *const parts[] = { "plot",   "story",  "acting", "music",    "ending",  "cast",
                                     "script", "humour", "pace",   "dialogue", "opening", "camera work" };
static const char *const many_parts[] = { "actors", "characters", "jokes", "costumes", "songs", "effects", "fight scenes" };
static const char *const degrees[] = { "", "very", "really", "quite", "so", "simply" };
static const char *const denials[] = { "never", "by no means", "far from", "anything but" };
static const char *const others[] = { "my brother", "my sister", "my neighbour", "a friend", "every critic" };

/* ---- writing ---- */

static bool one_in(uint64_t *r, int n) { return !random_below(r, n); }

static void add(char *line, const char *word)
{
    size_t n = strlen(line);
    if (*word) snprintf(line + n, REVIEW_ROOM - n, "%s%s", n ? " " : "", word);
}

/* Gives whether it is more than one thing. */
static bool add_subject(uint64_t *r, char *line)
{
    bool is_whole = one_in(r, 3), is_many = !is_whole && one_in(r, 3);
    add(line, is_whole && one_in(r, 2) ? "this" : "the");
    add(line, is_whole ? PICK(genres) : is_many ? PICK(many_parts) : PICK(parts));
    if (!is_whole && one_in(r, 2)) {
        add(line, "of this");
        add(line, PICK(genres));
    }
    return is_many;
}

static void add_adjective(uint64_t *r, char *line, bool praise) { add(line, PICK(adjectives[praise])); }

/* ---- clauses ---- */

static void judge(uint64_t *r, char *line, bool praise)
{
    add(line, add_subject(r, line) ? "were" : "was");
    add(line, PICK(degrees));
    add_adjective(r, line, praise);
}

static void deny(uint64_t *r, char *line, bool praise)
{
    bool is_plain = one_in(r, 2);
    add(line, add_subject(r, line) ? "were" : "was");
    add(line, is_plain ? "not" : PICK(denials));
    add_adjective(r, line, !praise);
    if (is_plain) add(line, "at all");
}

static void find(uint64_t *r, char *line, bool praise)
{
    add(line, "I found");
    add_subject(r, line);
    add(line, PICK(degrees));
    add_adjective(r, line, praise);
}

static void not_find(uint64_t *r, char *line, bool praise)
{
    add(line, one_in(r, 2) ? "I did not find" : "nobody can call");
    add_subject(r, line);
    add_adjective(r, line, !praise);
}

static void add_clause(uint64_t *r, char *line, bool praise)
{
    bool is_denied = one_in(r, 3), is_found = one_in(r, 4);
    if (is_denied) (is_found ? not_find : deny)(r, line, praise);
    else (is_found ? find : judge)(r, line, praise);
}

/* ---- sentences ---- */

static void hope(uint64_t *r, char *line, bool praise)
{
    const char *adjective = PICK(adjectives[!praise]);
    bool is_honest = !strcmp(adjective, "honest"); /* its h is silent */
    add(line, one_in(r, 2) ? "I expected" : "everybody promised me");
    add(line, strchr("aeiou", *adjective) || is_honest ? "an" : "a");
    add(line, adjective);
    add(line, PICK(genres));
    add(line, "but");
    add_clause(r, line, praise);
}

static void two_clauses(uint64_t *r, char *line, bool first, const char *between, bool second)
{
    add_clause(r, line, first);
    add(line, between);
    add_clause(r, line, second);
}

static void hearsay(uint64_t *r, char *line, bool praise)
{
    bool is_right = one_in(r, 2);
    add(line, PICK(others));
    add(line, "says that");
    add_clause(r, line, praise == is_right);
    add(line, is_right ? "and I think so too" : "but I do not think so");
}

bool draw_review(uint64_t *r, char review[REVIEW_ROOM])
{
    bool praise = one_in(r, 2);
    int what = random_below(r, 10);
    *review = '\0';
    if (what < 5) add_clause(r, review, praise);
    else if (what == 5) hope(r, review, praise);
    else if (what == 6) two_clauses(r, review, !praise, "but in the end", praise);
    else if (what == 7) two_clauses(r, review, praise, "even if", !praise);
    else if (what == 8) two_clauses(r, review, praise, "and", praise);
    else hearsay(r, review, praise);
    if (*review >= 'a') *review = (char)(*review - 'a' + 'A');
    return praise;
}
