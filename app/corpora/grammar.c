/* grammar.c: a small grammar of everyday sentences, each in English and in Chinese.
 *
 * English:  subject  helper verb object  place or company  time            "He bought a book in the shop yesterday"
 * Chinese:  subject  time  not, will ..  company or place  verb 了 object   他昨天在商店买了一本书
 *
 * An English sentence must decide its Chinese one. So verbs whose past looks like their present ("read") are left out, and so
 * are quantities after a "not", where Chinese has no "a". */
#include "grammar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
#define PICK(table) (&(table)[random_below(r, COUNT(table))])

const char *const named_sentences[][2] = {
    { "I love you", "我爱你" },
    { "The cat sat on the mat", "猫坐在垫子上" },
    { "Xiao Ming went to the shop to buy apples, then he went home", "小明去商店买了苹果，然后他回家了" },
    { NULL, NULL },
};

/* ---- words ---- */

enum { I, YOU, HE, SHE, WE, THEY, IT };

typedef struct person {
    const char *subject, *object, *owner, *chinese;
    int pronoun;
} person;
static const person people[] = {
    { "I", "me", "my", "我", I },
    { "you", "you", "your", "你", YOU },
    { "he", "him", "his", "他", HE },
    { "she", "her", "her", "她", SHE },
    { "we", "us", "our", "我们", WE },
    { "they", "them", "their", "他们", THEY },
    { "Xiao Ming", "Xiao Ming", "Xiao Ming's", "小明", HE },
    { "Xiao Hong", "Xiao Hong", "Xiao Hong's", "小红", SHE },
    { "Wang Wei", "Wang Wei", "Wang Wei's", "王伟", HE },
    { "Li Na", "Li Na", "Li Na's", "李娜", SHE },
    { "my mother", "my mother", "my mother's", "我妈妈", SHE },
    { "my father", "my father", "my father's", "我爸爸", HE },
    { "the teacher", "the teacher", "the teacher's", "老师", SHE },
    { "the doctor", "the doctor", "the doctor's", "医生", HE },
    { "the children", "the children", "the children's", "孩子们", THEY },
};

/* What a noun is: which verbs take it. */
enum { GOODS = 1, FOOD = 2, DRINK = 4, ANIMAL = 8, LENT = 16, WASHED = 32, WRITTEN = 64, WATCHED = 128, DRAWN = 256 };
/* What it can be like. */
enum { SIZE = 1, AGE = 2, COLOR = 4, PRICE = 8, BEAUTY = 16, INTEREST = 32, FRESH = 64, CUTE = 128, SWEET = 256, DYED = 512 };

typedef struct noun {
    const char *one, *many; /* one is NULL for what is not counted */
    const char *chinese, *measure;
    int kind, like;
} noun;
static const noun nouns[] = {
    { "book", "books", "书", "本", GOODS | LENT | WRITTEN, AGE | PRICE | INTEREST },
    { "cup", "cups", "杯子", "个", GOODS | WASHED, SIZE | AGE | COLOR | DYED | PRICE | BEAUTY },
    { "hat", "hats", "帽子", "顶", GOODS | WASHED, SIZE | AGE | COLOR | DYED | PRICE | BEAUTY },
    { "umbrella", "umbrellas", "雨伞", "把", GOODS | LENT, SIZE | AGE | COLOR | DYED | PRICE | BEAUTY },
    { "bike", "bikes", "自行车", "辆", GOODS | LENT | WASHED, AGE | COLOR | DYED | PRICE },
    { "phone", "phones", "手机", "部", GOODS | LENT, AGE | COLOR | DYED | PRICE },
    { "flower", "flowers", "花", "朵", GOODS | DRAWN, SIZE | COLOR | DYED | BEAUTY },
    { "letter", "letters", "信", "封", WRITTEN, INTEREST },
    { "story", "stories", "故事", "个", WRITTEN, INTEREST },
    { "film", "films", "电影", "部", WATCHED, INTEREST },
    { "apple", "apples", "苹果", "个", FOOD | WASHED | DRAWN, SIZE | PRICE | FRESH | SWEET },
    { "orange", "oranges", "橙子", "个", FOOD | WASHED, SIZE | PRICE | FRESH | SWEET },
    { "egg", "eggs", "鸡蛋", "个", FOOD, SIZE | PRICE | FRESH },
    { "cake", "cakes", "蛋糕", "个", FOOD, SIZE | PRICE | BEAUTY | SWEET },
    { NULL, "bread", "面包", "", FOOD, PRICE | FRESH },
    { NULL, "rice", "米饭", "", FOOD, 0 },
    { NULL, "noodles", "面条", "", FOOD, 0 },
    { NULL, "tea", "茶", "", DRINK, 0 },
    { NULL, "coffee", "咖啡", "", DRINK, 0 },
    { NULL, "milk", "牛奶", "", DRINK, PRICE | FRESH },
    { "cat", "cats", "猫", "只", ANIMAL | DRAWN, SIZE | COLOR | CUTE },
    { "dog", "dogs", "狗", "只", ANIMAL | WASHED | DRAWN, SIZE | COLOR | CUTE },
    { "bird", "birds", "鸟", "只", ANIMAL | DRAWN, SIZE | COLOR | BEAUTY },
    { "horse", "horses", "马", "匹", ANIMAL | WASHED | DRAWN, SIZE | COLOR | BEAUTY },
};

typedef struct adjective {
    const char *english, *before, *after, *degree; /* in Chinese before a noun, and after one, where it wants a degree */
    int like;
} adjective;
static const adjective adjectives[] = {
    { "big", "大", "大", "很", SIZE },
    { "small", "小", "小", "很", SIZE },
    { "new", "新", "新", "很", AGE },
    { "old", "旧", "旧", "很", AGE },
    { "red", "红色的", "是红色的", "", DYED },
    { "white", "白色的", "是白色的", "", COLOR },
    { "black", "黑色的", "是黑色的", "", COLOR },
    { "cheap", "便宜的", "便宜", "很", PRICE },
    { "expensive", "很贵的", "贵", "很", PRICE },
    { "beautiful", "漂亮的", "漂亮", "很", BEAUTY },
    { "interesting", "有趣的", "有趣", "很", INTEREST },
    { "fresh", "新鲜的", "新鲜", "很", FRESH },
    { "cute", "可爱的", "可爱", "很", CUTE },
    { "sweet", "甜", "甜", "很", SWEET },
};

/* A word or phrase that is the same wherever it stands. */
typedef struct phrase {
    const char *english, *chinese;
} phrase;
static const phrase moods[] = {
    { "tired", "累" }, { "busy", "忙" }, { "hungry", "饿" }, { "happy", "高兴" }, { "sad", "难过" }
};
static const phrase numbers[] = { { "two", "两" }, { "three", "三" }, { "four", "四" }, { "five", "五" }, { "ten", "十" } };
static const phrase pointing[] = { { "this", "这" }, { "that", "那" } };
static const phrase travels[] = { { "by bus", "坐公共汽车" }, { "by train", "坐火车" }, { "by bike", "骑自行车" } };
static const phrase past_times[] = {
    { "yesterday", "昨天" }, { "last week", "上周" }, { "this morning", "今天早上" }, { "last night", "昨晚" }
};
static const phrase future_times[] = { { "tomorrow", "明天" }, { "next week", "下周" }, { "tonight", "今晚" } };
static const phrase habit_times[] = { { "every day", "每天" }, { "every morning", "每天早上" } };

enum { SHOP = 1, EATING = 2, READING = 4, PLAY = 8, CARE = 16, ANYWHERE = EATING | READING | PLAY };

typedef struct place {
    const char *in, *to, *chinese; /* to: NULL for home, which one goes to in a way of its own */
    int fits;
} place;
static const place places[] = {
    { "in the shop", "to the shop", "商店", SHOP },
    { "in the market", "to the market", "市场", SHOP },
    { "in the park", "to the park", "公园", EATING | PLAY },
    { "in the garden", "to the garden", "花园", EATING | PLAY },
    { "in the restaurant", "to the restaurant", "餐馆", EATING },
    { "in the kitchen", "to the kitchen", "厨房", EATING },
    { "in the library", "to the library", "图书馆", READING },
    { "at school", "to school", "学校", EATING | READING | PLAY },
    { "in the hospital", "to the hospital", "医院", CARE },
    { "in Beijing", "to Beijing", "北京", SHOP | READING | CARE },
    { "at home", NULL, "家", ANYWHERE },
};

/* Forms of a verb. */
enum { BASE, THIRD, PAST_FORM, ING };

typedef struct verb {
    const char *forms[4];
    const char *chinese;
    int kind, places;
} verb;
static const verb thing_verbs[] = {
    { { "buy", "buys", "bought", "buying" }, "买", GOODS | FOOD | DRINK | ANIMAL, SHOP },
    { { "sell", "sells", "sold", "selling" }, "卖", GOODS | FOOD | DRINK, SHOP },
    { { "eat", "eats", "ate", "eating" }, "吃", FOOD, EATING },
    { { "drink", "drinks", "drank", "drinking" }, "喝", DRINK, EATING },
    { { "borrow", "borrows", "borrowed", "borrowing" }, "借", LENT, READING },
    { { "wash", "washes", "washed", "washing" }, "洗", WASHED, EATING },
    { { "draw", "draws", "drew", "drawing" }, "画", DRAWN, PLAY },
    { { "write", "writes", "wrote", "writing" }, "写", WRITTEN, READING },
    { { "watch", "watches", "watched", "watching" }, "看", WATCHED, READING },
    { { "look for", "looks for", "looked for", "looking for" }, "找", GOODS | ANIMAL, ANYWHERE | SHOP },
};
static const verb person_verbs[] = {
    { { "visit", "visits", "visited", "visiting" }, "看望", 0, CARE },
    { { "help", "helps", "helped", "helping" }, "帮助", 0, ANYWHERE },
    { { "wait for", "waits for", "waited for", "waiting for" }, "等", 0, ANYWHERE | SHOP },
    { { "thank", "thanks", "thanked", "thanking" }, "感谢", 0, READING },
};
static const verb feelings[] = {
    { { "love", "loves" }, "爱", GOODS | FOOD | DRINK | ANIMAL | WATCHED, 0 },
    { { "like", "likes" }, "喜欢", GOODS | FOOD | DRINK | ANIMAL | WATCHED, 0 },
    { { "know", "knows" }, "认识", 0, 0 },
    { { "miss", "misses" }, "想念", 0, 0 },
    { { "trust", "trusts" }, "相信", 0, 0 },
};
static const verb postures[] = {
    { { "sit", "sits", "sat", "sitting" }, "坐", 0, 0 },        { { "sleep", "sleeps", "slept", "sleeping" }, "睡", 0, 0 },
    { { "stand", "stands", "stood", "standing" }, "站", 0, 0 }, { { "lie", "lies", "lay", "lying" }, "躺", 0, 0 },
    { { "hide", "hides", "hid", "hiding" }, "躲", 0, 0 },
};

/* A whole activity: Chinese has a verb and its own object, and puts 了 after both. */
typedef struct activity {
    verb verb;
    const char *english, *chinese; /* what follows the verb */
} activity;
static const activity activities[] = {
    { { { "play", "plays", "played", "playing" }, "踢", 0, PLAY }, "football", "足球" },
    { { { "play", "plays", "played", "playing" }, "打", 0, PLAY }, "basketball", "篮球" },
    { { { "play", "plays", "played", "playing" }, "弹", 0, PLAY }, "the piano", "钢琴" },
    { { { "sing", "sings", "sang", "singing" }, "唱", 0, PLAY }, "", "歌" },
    { { { "dance", "dances", "danced", "dancing" }, "跳", 0, PLAY }, "", "舞" },
    { { { "study", "studies", "studied", "studying" }, "学", 0, READING }, "Chinese", "中文" },
    { { { "work", "works", "worked", "working" }, "工作", 0, READING | CARE }, "", "" },
};
static const activity movements[] = {
    { { { "go", "goes", "went", NULL }, "回", 0, 0 }, "home", "家" },
    { { { "come", "comes", "came", NULL }, "回", 0, 0 }, "back", "来" },
    { { { "rest", "rests", "rested", "resting" }, "休息", 0, ANYWHERE }, "", "" },
    { { { "leave", "leaves", "left", NULL }, "离开", 0, 0 }, "", "" },
};

enum { ON = 1, UNDER = 2, IN = 4, BESIDE = 8, BEHIND = 16, BEFORE = 32 };
typedef struct side {
    const char *english, *chinese;
    int side;
} side;
static const side sides[] = {
    { "on", "上", ON },           { "under", "下面", UNDER },        { "in", "里", IN }, { "next to", "旁边", BESIDE },
    { "behind", "后面", BEHIND }, { "in front of", "前面", BEFORE },
};
static const side spots[] = {
    { "the mat", "垫子", ON | BESIDE },
    { "the chair", "椅子", ON | UNDER | BESIDE | BEHIND },
    { "the sofa", "沙发", ON | BESIDE | BEHIND },
    { "the bed", "床", ON | UNDER | BESIDE },
    { "the table", "桌子", ON | UNDER | BESIDE },
    { "the box", "箱子", IN | ON | BEHIND | BESIDE },
    { "the tree", "树", UNDER | BESIDE | BEHIND | BEFORE },
    { "the house", "房子", IN | BESIDE | BEHIND | BEFORE },
    { "the car", "汽车", IN | UNDER | BESIDE | BEHIND | BEFORE },
    { "the window", "窗户", BESIDE | BEFORE },
};

/* ---- drawing and writing ---- */

uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

int random_below(uint64_t *state, int n) { return (int)((next_random(state) >> 33) * (uint64_t)n >> 31); }

static bool one_in(uint64_t *r, int n) { return !random_below(r, n); }

static void add(char *line, const char *piece)
{
    size_t n = strlen(line);
    snprintf(line + n, SENTENCE_ROOM - n, "%s", piece);
}

static void add_word(char *line, const char *word)
{
    if (*line && *word) add(line, " ");
    add(line, word);
}

/* ---- things ---- */

static const noun *draw_noun(uint64_t *r, int kind)
{
    const noun *n;
    do n = PICK(nouns);
    while (!(n->kind & kind));
    return n;
}

static const adjective *draw_adjective(uint64_t *r, const noun *n)
{
    const adjective *a;
    do a = PICK(adjectives);
    while (!(a->like & n->like));
    return a;
}

typedef struct wording {
    char english[SENTENCE_ROOM], chinese[SENTENCE_ROOM];
} wording;

static void add_both(wording *w, const char *english, const char *chinese)
{
    add_word(w->english, english);
    add(w->chinese, chinese);
}

/* "a", "an" or "three", and the measure word that Chinese counts with. */
static bool add_quantity(uint64_t *r, wording *w, const noun *n, const char *next)
{
    bool is_one = one_in(r, 2);
    if (is_one) add_both(w, strchr("aeiou", *next) ? "an" : "a", "一");
    else {
        const phrase *number = PICK(numbers);
        add_both(w, number->english, number->chinese);
    }
    add(w->chinese, n->measure);
    return is_one;
}

static void add_pointing(uint64_t *r, wording *w, const noun *n)
{
    const phrase *p = PICK(pointing);
    add_both(w, p->english, p->chinese);
    add(w->chinese, n->measure);
}

static void add_owner(uint64_t *r, wording *w)
{
    const person *p = PICK(people);
    add_both(w, p->owner, p->chinese);
    add(w->chinese, "的");
}

/* What a thing is not to have where it stands. */
enum { NO_QUANTITY = 1, NO_OWNER = 2 };

/* "an old book", "two cats", "this cup", "Xiao Ming's hat", "apples". */
static void draw_thing(uint64_t *r, wording *w, int kind, int without)
{
    const noun *n = draw_noun(r, kind);
    const adjective *a = n->like && one_in(r, 3) ? draw_adjective(r, n) : NULL;
    bool is_one = n->one != NULL;
    int form = is_one ? random_below(r, 6) : 5;
    if (form < 3 && !(without & NO_QUANTITY)) is_one = add_quantity(r, w, n, a ? a->english : n->one);
    else if (form == 3) add_pointing(r, w, n);
    else if (form == 4 && !a && !(without & NO_OWNER)) add_owner(r, w); /* one 的 is enough */
    else is_one = false;
    if (a) add_both(w, a->english, a->before);
    add_both(w, is_one ? n->one : n->many, n->chinese);
}

/* ---- who ---- */

typedef struct subject {
    wording name;
    int pronoun;
} subject;

static subject draw_person(uint64_t *r)
{
    const person *p = PICK(people);
    subject s = { .pronoun = p->pronoun };
    add_both(&s.name, p->subject, p->chinese);
    return s;
}

/* "the cat", "that dog", "my bird". */
static subject draw_known(uint64_t *r, const noun *n)
{
    subject s = { .pronoun = IT };
    int form = random_below(r, 4);
    if (form < 2) add_word(s.name.english, "the");
    else if (form == 2) add_pointing(r, &s.name, n);
    else add_owner(r, &s.name);
    add_both(&s.name, n->one, n->chinese);
    return s;
}

/* Someone else than the subject. "We" and "I" overlap. */
static const person *draw_other(uint64_t *r, const subject *s)
{
    const person *p;
    bool is_same;
    do {
        p = PICK(people);
        is_same = !strcmp(p->chinese, s->name.chinese) || (p->pronoun == s->pronoun && p->pronoun <= YOU) ||
                  ((p->pronoun == I || p->pronoun == WE) && (s->pronoun == I || s->pronoun == WE));
    } while (is_same);
    return p;
}

static bool is_third(const subject *s) { return s->pronoun == HE || s->pronoun == SHE || s->pronoun == IT; }

static const char *is_or_are(const subject *s) { return s->pronoun == I ? "am" : is_third(s) ? "is" : "are"; }

static const char *was_or_were(const subject *s) { return s->pronoun == I || is_third(s) ? "was" : "were"; }

static const char *do_or_does(const subject *s) { return is_third(s) ? "does" : "do"; }

/* ---- what they do ---- */

/* Where the 了 of the past goes. */
enum { AFTER_VERB, LAST, NOWHERE };

typedef struct deed {
    const verb *verb;
    wording after;              /* what follows the verb */
    char before[SENTENCE_ROOM]; /* what Chinese puts before it */
    int le, places;
} deed;

static deed deed_of(const verb *v) { return (deed){ .verb = v, .places = v->places }; }

static deed do_thing(uint64_t *r, const verb *v, bool denied)
{
    deed d = deed_of(v);
    draw_thing(r, &d.after, v->kind, denied ? NO_QUANTITY : 0);
    return d;
}

static deed do_to_person(uint64_t *r, const subject *s)
{
    deed d = deed_of(PICK(person_verbs));
    const person *p = draw_other(r, s);
    add_both(&d.after, p->object, p->chinese);
    return d;
}

/* "call me" is 给我打电话. */
static deed call(uint64_t *r, const subject *s)
{
    static const verb calling = { { "call", "calls", "called", "calling" }, "打", 0, ANYWHERE };
    deed d = deed_of(&calling);
    const person *p = draw_other(r, s);
    add_both(&d.after, p->object, "电话");
    add(d.before, "给");
    add(d.before, p->chinese);
    return d;
}

/* "buy her a book" is 给她买一本书, "give her a book" 给她一本书. */
static deed give(uint64_t *r, const subject *s, bool denied)
{
    static const verb giving = { { "give", "gives", "gave", "giving" }, "给", GOODS | ANIMAL, PLAY | READING };
    const person *p = draw_other(r, s);
    bool bought = one_in(r, 2);
    deed d = deed_of(bought ? &thing_verbs[0] : &giving);
    add_both(&d.after, p->object, bought ? "" : p->chinese);
    if (bought) add(d.before, "给");
    if (bought) add(d.before, p->chinese);
    draw_thing(r, &d.after, giving.kind, denied ? NO_QUANTITY | NO_OWNER : NO_OWNER);
    return d;
}

static deed do_activity(const activity *a)
{
    deed d = deed_of(&a->verb);
    d.le = LAST;
    add_both(&d.after, a->english, a->chinese);
    return d;
}

static const place *draw_place(uint64_t *r, int fits, bool to)
{
    const place *p;
    do p = PICK(places);
    while (!(p->fits & fits) || (to && !p->to));
    return p;
}

static const verb going = { { "go", "goes", "went", NULL }, "去", 0, 0 };

static deed go(uint64_t *r)
{
    deed d = deed_of(&going);
    const place *p = draw_place(r, ~0, true);
    add_both(&d.after, p->to, p->chinese);
    if (one_in(r, 2)) return d;
    const phrase *travel = PICK(travels);
    add_word(d.after.english, travel->english);
    add(d.before, travel->chinese);
    return d;
}

/* "go to the shop to buy apples" is 去商店买苹果: the second verb is Chinese's main one. */
static deed go_and_do(uint64_t *r, const subject *s, bool denied, verb *both)
{
    deed then = one_in(r, 4)   ? do_to_person(r, s)
                : one_in(r, 4) ? do_activity(PICK(activities))
                               : do_thing(r, PICK(thing_verbs), denied);
    const place *p = draw_place(r, then.places, true);
    *both = going;
    both->chinese = then.verb->chinese;
    deed d = { .verb = both, .le = then.le };
    add_both(&d.after, p->to, "");
    add_both(&d.after, "to", "");
    add_both(&d.after, then.verb->forms[BASE], "");
    add_both(&d.after, then.after.english, then.after.chinese);
    add(d.before, "去");
    add(d.before, p->chinese);
    return d;
}

/* "sit on the mat" is 坐在垫子上, without 了. */
static deed stay(uint64_t *r)
{
    deed d = deed_of(PICK(postures));
    const side *spot = PICK(spots), *at;
    do at = PICK(sides);
    while (!(at->side & spot->side));
    d.le = NOWHERE;
    add_both(&d.after, at->english, "在");
    add_both(&d.after, spot->english, spot->chinese);
    add(d.after.chinese, at->chinese);
    return d;
}

static deed draw_deed(uint64_t *r, const subject *s, bool denied, verb *both)
{
    int what = random_below(r, 16);
    if (s->pronoun == IT || what < 2) return stay(r);
    if (what < 7) return do_thing(r, PICK(thing_verbs), denied);
    if (what < 9) return do_to_person(r, s);
    if (what < 10) return call(r, s);
    if (what < 11) return give(r, s, denied);
    if (what < 12) return do_activity(PICK(activities));
    if (what < 13) return do_activity(PICK(movements));
    if (what < 14) return go(r);
    return go_and_do(r, s, denied, both);
}

/* ---- clauses ---- */

typedef enum tense { PAST, FUTURE, HABIT, ONGOING, WISH } tense;
typedef enum manner { SAYS, DENIES, ASKS } manner;

typedef struct wish {
    const char *base, *third, *chinese; /* third: NULL for "can" */
} wish;
static const wish wishes[] = { { "want to", "wants to", "想" }, { "need to", "needs to", "需要" }, { "can", NULL, "能" } };

/* What stands around the verb. */
typedef struct around {
    wording where; /* a place or company: last in English, before the verb in Chinese */
    bool is_place;
    const phrase *time; /* NULL: none */
    const wish *wish;
} around;

static const char *helper_of(tense t, const subject *s, const wish *w)
{
    switch (t) {
    case PAST: return "did";
    case FUTURE: return "will";
    case ONGOING: return is_or_are(s);
    case WISH: return w->third ? do_or_does(s) : "can";
    default: return do_or_does(s);
    }
}

/* The helper and the verb where both follow the subject. */
static void add_said_verb(char *line, tense t, const subject *s, const deed *d, const wish *w)
{
    const char *const *forms = d->verb->forms;
    if (t == FUTURE || t == ONGOING) add_word(line, helper_of(t, s, w));
    if (t == WISH) add_word(line, w->third && is_third(s) ? w->third : w->base);
    add_word(line, forms[t == PAST ? PAST_FORM : t == ONGOING ? ING : t == HABIT && is_third(s) ? THIRD : BASE]);
}

static void say_english(char *line, tense t, manner m, const subject *s, const deed *d, const around *a)
{
    if (m == ASKS) add_word(line, helper_of(t, s, a->wish));
    add_word(line, s->name.english);
    if (m == SAYS) add_said_verb(line, t, s, d, a->wish);
    else {
        bool joins = t == WISH && !a->wish->third; /* "cannot" */
        if (m == DENIES) add_word(line, helper_of(t, s, a->wish)), (joins ? add : add_word)(line, "not");
        if (t == WISH && a->wish->third) add_word(line, a->wish->base);
        add_word(line, d->verb->forms[t == ONGOING ? ING : BASE]);
    }
    add_word(line, d->after.english);
    add_word(line, a->where.english);
    if (a->time) add_word(line, a->time->english);
    if (m == ASKS) add(line, "?");
}

/* What Chinese puts between the time and the rest: 没, 不, 会, 想, 正在. */
static void add_chinese_helper(char *line, tense t, manner m, const deed *d, const around *a)
{
    if (m == DENIES) add(line, t == PAST ? "没" : "不");
    if (t == FUTURE) add(line, "会");
    if (t == WISH) add(line, a->wish->chinese);
    if (t == ONGOING) add(line, a->is_place || d->le == NOWHERE ? "正" : "正在"); /* the place brings its own 在 */
}

static void say_chinese(char *line, tense t, manner m, const subject *s, const deed *d, const around *a)
{
    bool le = t == PAST && m != DENIES;
    add(line, s->name.chinese);
    if (a->time) add(line, a->time->chinese);
    add_chinese_helper(line, t, m, d, a);
    add(line, a->where.chinese);
    add(line, d->before);
    add(line, d->verb->chinese);
    if (le && d->le == AFTER_VERB) add(line, "了");
    add(line, d->after.chinese);
    if (le && d->le == LAST) add(line, "了");
    if (m == ASKS) add(line, "吗？");
}

static void say(wording *w, tense t, manner m, const subject *s, const deed *d, const around *a)
{
    say_english(w->english, t, m, s, d, a);
    say_chinese(w->chinese, t, m, s, d, a);
}

static const phrase *draw_time(uint64_t *r, tense t, manner m)
{
    if (t == PAST && one_in(r, 2)) return PICK(past_times);
    if (t == FUTURE && one_in(r, 2)) return PICK(future_times);
    if (t == HABIT && m != DENIES) return PICK(habit_times); /* 不 and 每天 would have an order of their own */
    return NULL;
}

static around draw_around(uint64_t *r, tense t, manner m, const subject *s, const deed *d)
{
    around a = { .time = draw_time(r, t, m), .wish = PICK(wishes) };
    a.is_place = d->places && one_in(r, 3);
    if (a.is_place) {
        const place *p = draw_place(r, d->places, false);
        add_both(&a.where, p->in, "在");
        add(a.where.chinese, p->chinese);
    } else if ((d->le == LAST || d->verb == &going) && one_in(r, 3)) {
        const person *p = draw_other(r, s);
        add_both(&a.where, "with", "和");
        add_both(&a.where, p->object, p->chinese);
    }
    return a;
}

/* ---- sentences ---- */

static subject draw_animal(uint64_t *r) { return draw_known(r, draw_noun(r, ANIMAL)); }

static void simple_sentence(uint64_t *r, wording *w)
{
    verb both;
    subject s = one_in(r, 8) ? draw_animal(r) : draw_person(r);
    manner m = (manner)(one_in(r, 2) ? SAYS : random_below(r, 3));
    deed d = draw_deed(r, &s, m == DENIES, &both);
    tense t;
    do t = one_in(r, 3) ? PAST : (tense)random_below(r, 5);
    while (t == ONGOING && (!d.verb->forms[ING] || m == DENIES));
    around a = draw_around(r, t, m, &s, &d);
    say(w, t, m, &s, &d, &a);
}

/* "I love you", "Does he like tea?". */
static void feeling_sentence(uint64_t *r, wording *w)
{
    subject s = draw_person(r);
    manner m = (manner)random_below(r, 3);
    const verb *v = PICK(feelings);
    deed d = deed_of(v);
    if (v->kind && one_in(r, 2)) draw_thing(r, &d.after, v->kind, NO_QUANTITY); /* one loves cats, not a cat */
    else {
        const person *p = draw_other(r, &s);
        add_both(&d.after, p->object, p->chinese);
    }
    say(w, HABIT, m, &s, &d, &(around){ 0 });
}

static void add_judgement(wording *w, manner m, const subject *s, const char *english, const adjective *a)
{
    if (m == ASKS) add_word(w->english, is_or_are(s));
    add_both(w, s->name.english, s->name.chinese);
    if (m != ASKS) add_word(w->english, is_or_are(s));
    if (m == DENIES) add_both(w, "not", "不");
    if (m == SAYS) add(w->chinese, a->degree);
    add_both(w, english, a->after);
    if (m == ASKS) add(w->english, "?"), add(w->chinese, "吗？");
}

/* "This book is not expensive", "Are you hungry?". */
static void judging_sentence(uint64_t *r, wording *w)
{
    manner m = (manner)random_below(r, 3);
    if (one_in(r, 2)) {
        subject s = draw_person(r);
        const phrase *mood = PICK(moods);
        add_judgement(w, m, &s, mood->english, &(adjective){ .after = mood->chinese, .degree = "很" });
        return;
    }
    const noun *n;
    do n = PICK(nouns);
    while (!n->one);
    subject s = draw_known(r, n);
    const adjective *a = draw_adjective(r, n);
    add_judgement(w, m, &s, a->english, a);
}

static subject pronoun_of(const subject *s)
{
    subject p = { .pronoun = s->pronoun };
    add_both(&p.name, people[s->pronoun].subject, people[s->pronoun].chinese);
    return p;
}

/* "She drank tea, then she went home". */
static void joined_sentence(uint64_t *r, wording *w)
{
    verb both, both_2;
    const around nothing = { 0 };
    subject s = draw_person(r), again = pronoun_of(&s);
    deed d = one_in(r, 2) ? go_and_do(r, &s, false, &both) : draw_deed(r, &s, false, &both);
    deed d_2 = one_in(r, 2) ? do_activity(PICK(movements)) : draw_deed(r, &s, false, &both_2);
    say(w, PAST, SAYS, &s, &d, &nothing);
    add(w->english, ", then");
    add(w->chinese, "，然后");
    say(w, PAST, SAYS, &again, &d_2, &nothing);
}

/* "Li Na did not go to school because she was tired" is 因为李娜很累，所以她没去学校: Chinese has the reason first, and the name
 * with it. */
static void reason_sentence(uint64_t *r, wording *w)
{
    verb both;
    subject s = draw_person(r), again = pronoun_of(&s);
    manner m = one_in(r, 2) ? SAYS : DENIES;
    deed d = draw_deed(r, &s, m == DENIES, &both);
    const phrase *mood = PICK(moods);
    say_english(w->english, PAST, m, &s, &d, &(around){ 0 });
    add_both(w, "because", "因为");
    add_both(w, again.name.english, s.name.chinese);
    add_word(w->english, was_or_were(&s));
    add_both(w, mood->english, "很");
    add(w->chinese, mood->chinese);
    add(w->chinese, "，所以");
    say_chinese(w->chinese, PAST, m, &again, &d, &(around){ 0 });
}

void draw_sentence(uint64_t *r, sentence_pair *out)
{
    wording w = { 0 };
    int what = random_below(r, 16);
    if (what < 8) simple_sentence(r, &w);
    else if (what < 10) feeling_sentence(r, &w);
    else if (what < 12) judging_sentence(r, &w);
    else if (what < 15) joined_sentence(r, &w);
    else reason_sentence(r, &w);
    if (*w.english >= 'a') w.english[0] = (char)(w.english[0] - 'a' + 'A');
    memcpy(out->english, w.english, sizeof w.english);
    memcpy(out->chinese, w.chinese, sizeof w.chinese);
}
