/* parse.c: tokens to the tree of a template. */
#include "node.h"

#include "../base/status.h"

#include <string.h>

enum { MOST_NESTING = 100 };

typedef struct parser {
    jinja_memory *memory;
    jinja_token *at;
    int depth;
    qkv_status status; /* the first error stays: what is parsed behind it is not looked at */
} parser;

static jinja_node *parse_expression(parser *p);
static jinja_node *parse_unary(parser *p);
static jinja_node *parse_body(parser *p, const char *const *ends);

/* ---- tokens ---- */

static bool is_sign(const parser *p, const char *sign)
{
    return p->at->kind == JINJA_TOKEN_SIGN && qkv__jinja_is_word(p->at->text, sign);
}

static bool is_name(const parser *p, const char *name)
{
    return p->at->kind == JINJA_TOKEN_NAME && qkv__jinja_is_word(p->at->text, name);
}

/* The end is never passed. */
static void step(parser *p) { p->at += p->at->kind != JINJA_TOKEN_END; }

static bool take_sign(parser *p, const char *sign) { return is_sign(p, sign) && (step(p), true); }
static bool take_name(parser *p, const char *name) { return is_name(p, name) && (step(p), true); }

static void refuse(parser *p, const char *wanted)
{
    jinja_string text = p->at->text;
    if (p->status) return;
    if (p->at->kind == JINJA_TOKEN_END)
        p->status = qkv__jinja_fail(QKV_FORMAT, p->at->place, "%s is expected, and the template ends", wanted);
    else if (p->at->kind == JINJA_TOKEN_LITERAL)
        p->status = qkv__jinja_fail(QKV_FORMAT, p->at->place, "%s is expected", wanted);
    else
        p->status = qkv__jinja_fail(QKV_FORMAT, p->at->place, "%s is expected, not \"%.*s\"", wanted,
                                    (int)(text.length < 32 ? text.length : 32), text.data);
}

static void expect_sign(parser *p, const char *sign)
{
    if (!take_sign(p, sign)) refuse(p, sign);
}

static void expect_close(parser *p)
{
    if (p->at->kind == JINJA_TOKEN_CLOSE_STATEMENT) step(p);
    else refuse(p, "%}");
}

static jinja_string expect_name(parser *p, const char *wanted)
{
    jinja_string name = p->at->text;
    if (p->at->kind != JINJA_TOKEN_NAME) refuse(p, wanted);
    step(p);
    return name;
}

/* ---- nodes ---- */

/* Never NULL: when memory is out, the error is set, and the node is one that nobody runs. */
static jinja_node *make_node(parser *p, jinja_node_kind kind, jinja_place place)
{
    static jinja_node none;
    jinja_node *n = p->status ? NULL : qkv__jinja_take(p->memory, sizeof *n);
    if (!n) {
        if (!p->status) p->status = qkv_error_status();
        return &none;
    }
    n->kind = kind;
    n->place = place;
    return n;
}

static jinja_node *make_pair(parser *p, jinja_node_kind kind, const jinja_token *sign, jinja_node *a, jinja_node *b)
{
    jinja_node *n = make_node(p, kind, sign->place);
    if (p->status) return n;
    n->text = sign->text;
    n->a = a;
    n->b = b;
    return n;
}

/* Nested too deep is an error, so that nothing that walks the tree runs out of stack. */
static bool enter(parser *p)
{
    if (!p->status && p->depth >= MOST_NESTING)
        p->status = qkv__jinja_fail(QKV_LIMIT, p->at->place, "nested more than %d levels deep", MOST_NESTING);
    return !p->status && ++p->depth;
}

/* ---- lists of things ---- */

static jinja_node *parse_argument(parser *p)
{
    const jinja_token *first = p->at;
    if (take_sign(p, "**")) return make_pair(p, JINJA_NODE_SPREAD_NAMED, first, parse_expression(p), NULL);
    if (take_sign(p, "*")) return make_pair(p, JINJA_NODE_SPREAD, first, parse_expression(p), NULL);
    if (first->kind != JINJA_TOKEN_NAME || first[1].kind != JINJA_TOKEN_SIGN || !qkv__jinja_is_word(first[1].text, "="))
        return parse_expression(p);
    step(p), step(p);
    return make_pair(p, JINJA_NODE_KEYWORD, first, parse_expression(p), NULL);
}

static jinja_node *parse_entry(parser *p)
{
    const jinja_token *first = p->at;
    jinja_node *key = parse_expression(p);
    expect_sign(p, ":");
    /* a node of its own, as a key may be any expression */
    return make_pair(p, JINJA_NODE_KEYWORD, first, key, parse_expression(p));
}

/* With commas between them, up to the closing sign, which is taken. */
static jinja_node *parse_list(parser *p, const char *close, jinja_node *(*parse_one)(parser *))
{
    jinja_node *first = NULL, **last = &first;
    while (!p->status && !take_sign(p, close)) {
        jinja_node *n = parse_one(p);
        if (p->status) break;
        *last = n;
        last = &n->next;
        if (!take_sign(p, ",") && !is_sign(p, close)) refuse(p, close);
    }
    return first;
}

/* One expression, or a tuple of several with commas between them. */
static jinja_node *parse_tuple(parser *p, jinja_node *(*parse_one)(parser *))
{
    const jinja_token *begin = p->at;
    jinja_node *first = parse_one(p), *last = first;
    if (!is_sign(p, ",")) return first;
    while (!p->status && take_sign(p, ",")) {
        bool is_over = p->at->kind == JINJA_TOKEN_CLOSE_STATEMENT || is_sign(p, ")") || is_sign(p, "=") || is_name(p, "in");
        if (is_over) break;
        last->next = parse_one(p);
        if (!p->status) last = last->next;
    }
    jinja_node *n = make_pair(p, JINJA_NODE_LIST, begin, first, NULL);
    if (!p->status) n->is_tuple = true;
    return n;
}

/* ---- expressions, those that bind tightest first ---- */

static jinja_node *parse_literal(parser *p)
{
    jinja_node *n = make_node(p, JINJA_NODE_LITERAL, p->at->place);
    if (p->status) return n;
    n->value = p->at->value;
    step(p);
    while (jinja_is(n->value, JINJA_STRING) && p->at->kind == JINJA_TOKEN_LITERAL && jinja_is(p->at->value, JINJA_STRING)) {
        jinja_string a = n->value.text, b = p->at->value.text; /* strings side by side are one */
        char *both = qkv__jinja_take(p->memory, a.length + b.length + 1);
        if (!both) return p->status = qkv_error_status(), n;
        memcpy(both, a.data, a.length);
        memcpy(both + a.length, b.data, b.length);
        n->value = jinja_text(both, a.length + b.length);
        step(p);
    }
    return n;
}

static jinja_node *parse_name(parser *p)
{
    static const struct {
        const char *name;
        jinja_value value;
    } constants[] = { { "true", { JINJA_BOOLEAN, { .truth = true } } },
                      { "True", { JINJA_BOOLEAN, { .truth = true } } },
                      { "false", { JINJA_BOOLEAN, { .truth = false } } },
                      { "False", { JINJA_BOOLEAN, { .truth = false } } },
                      { "none", { JINJA_NONE, { 0 } } },
                      { "None", { JINJA_NONE, { 0 } } } };
    jinja_node *n = make_pair(p, JINJA_NODE_NAME, p->at, NULL, NULL);
    for (size_t i = 0; i < sizeof constants / sizeof *constants && !p->status; i++)
        if (qkv__jinja_is_word(n->text, constants[i].name)) n->kind = JINJA_NODE_LITERAL, n->value = constants[i].value;
    step(p);
    return n;
}

static jinja_node *parse_primary(parser *p)
{
    const jinja_token *first = p->at;
    if (first->kind == JINJA_TOKEN_LITERAL) return parse_literal(p);
    if (first->kind == JINJA_TOKEN_NAME) return parse_name(p);
    if (take_sign(p, "[")) return make_pair(p, JINJA_NODE_LIST, first, parse_list(p, "]", parse_expression), NULL);
    if (take_sign(p, "{")) return make_pair(p, JINJA_NODE_DICT, first, parse_list(p, "}", parse_entry), NULL);
    if (!take_sign(p, "(")) return refuse(p, "an expression"), make_node(p, JINJA_NODE_NOTHING, first->place);
    if (take_sign(p, ")")) return make_pair(p, JINJA_NODE_LIST, first, NULL, NULL);
    jinja_node *n = parse_tuple(p, parse_expression);
    expect_sign(p, ")");
    return n;
}

/* Behind "[": an index, or up to three parts of a slice. */
static jinja_node *parse_subscript(parser *p, const jinja_token *open, jinja_node *of)
{
    jinja_node *parts[3] = { NULL };
    int n = 0;
    bool is_slice = false;
    for (; n < 3 && !p->status; n++) {
        if (!is_sign(p, ":") && !is_sign(p, "]")) parts[n] = parse_expression(p);
        if (!take_sign(p, ":")) break;
        is_slice = true;
    }
    if (!is_slice && !parts[0]) refuse(p, "an index");
    expect_sign(p, "]");
    jinja_node *made = make_pair(p, is_slice ? JINJA_NODE_SLICE : JINJA_NODE_ITEM, open, of, parts[0]);
    if (p->status) return made;
    made->c = parts[1];
    made->d = parts[2];
    return made;
}

static jinja_node *parse_attribute(parser *p, const jinja_token *point, jinja_node *of)
{
    if (p->at->kind == JINJA_TOKEN_LITERAL && jinja_is(p->at->value, JINJA_INTEGER))
        return make_pair(p, JINJA_NODE_ITEM, point, of, parse_literal(p));
    jinja_node *n = make_pair(p, JINJA_NODE_ATTRIBUTE, point, of, NULL);
    jinja_string name = expect_name(p, "the name of an attribute");
    if (!p->status) n->text = name;
    return n;
}

static jinja_node *parse_postfix(parser *p)
{
    jinja_node *n = parse_primary(p);
    while (!p->status) {
        const jinja_token *sign = p->at;
        if (take_sign(p, ".")) n = parse_attribute(p, sign, n);
        else if (take_sign(p, "[")) n = parse_subscript(p, sign, n);
        else if (take_sign(p, "(")) n = make_pair(p, JINJA_NODE_CALL, sign, n, parse_list(p, ")", parse_argument));
        else break;
    }
    return n;
}

/* Behind "|" or "filter". */
static jinja_node *parse_filter(parser *p, jinja_node *of)
{
    const jinja_token *name = p->at;
    expect_name(p, "the name of a filter");
    jinja_node *arguments = take_sign(p, "(") ? parse_list(p, ")", parse_argument) : NULL;
    return make_pair(p, JINJA_NODE_FILTER, name, of, arguments);
}

static jinja_node *parse_filters(parser *p, jinja_node *of)
{
    jinja_node *n = parse_filter(p, of);
    while (!p->status && take_sign(p, "|")) n = parse_filter(p, n);
    return n;
}

/* Tests that compare take what follows without brackets too. */
static bool takes_operand(jinja_string test)
{
    static const char *const names[] = { "in", "eq", "equalto", "ne", "gt", "lt", "ge", "le", "divisibleby", "sameas" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (qkv__jinja_is_word(test, names[i])) return true;
    return false;
}

/* Behind "is". */
static jinja_node *parse_test(parser *p, jinja_node *of)
{
    const jinja_token *is = p->at - 1;
    const bool negated = take_name(p, "not");
    const jinja_token *name = p->at;
    expect_name(p, "the name of a test");
    jinja_node *arguments = take_sign(p, "(")           ? parse_list(p, ")", parse_argument)
                            : takes_operand(name->text) ? parse_postfix(p)
                                                        : NULL;
    jinja_node *n = make_pair(p, JINJA_NODE_TEST, name, of, arguments);
    if (!negated) return n;
    n = make_pair(p, JINJA_NODE_UNARY, is, n, NULL);
    if (!p->status) n->text = (jinja_string){ "not", 3 };
    return n;
}

static jinja_node *parse_filtered(parser *p)
{
    jinja_node *n = parse_unary(p);
    while (!p->status) {
        if (take_sign(p, "|")) n = parse_filter(p, n);
        else if (take_name(p, "is")) n = parse_test(p, n);
        else break;
    }
    return n;
}

static jinja_node *parse_unary(parser *p)
{
    const jinja_token *sign = p->at;
    if (!take_sign(p, "-") && !take_sign(p, "+")) return parse_postfix(p);
    if (!enter(p)) return make_node(p, JINJA_NODE_NOTHING, sign->place);
    jinja_node *n = make_pair(p, JINJA_NODE_UNARY, sign, parse_unary(p), NULL);
    p->depth--;
    return n;
}

/* Operators that bind alike, from the left: those of a level take operands of the level above it. */
static const char *const levels[][5] = { { "+", "-" }, { "~" }, { "*", "//", "/", "%" }, { "**" } };
enum { LEVELS = sizeof levels / sizeof *levels };

static jinja_node *parse_level(parser *p, int level)
{
    if (level == LEVELS) return parse_filtered(p);
    jinja_node *n = parse_level(p, level + 1);
    for (int i = 0; levels[level][i] && !p->status; i++) {
        const jinja_token *sign = p->at;
        if (!take_sign(p, levels[level][i])) continue;
        n = make_pair(p, JINJA_NODE_BINARY, sign, n, parse_level(p, level + 1));
        i = -1;
    }
    return n;
}

static bool take_comparison(parser *p, jinja_string *sign)
{
    static const char *const signs[] = { "==", "!=", "<=", ">=", "<", ">" };
    *sign = p->at->text;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (take_sign(p, signs[i])) return true;
    if (take_name(p, "in")) return true;
    if (!is_name(p, "not") || p->at[1].kind != JINJA_TOKEN_NAME || !qkv__jinja_is_word(p->at[1].text, "in")) return false;
    step(p), step(p);
    *sign = (jinja_string){ "not in", 6 };
    return true;
}

static jinja_node *parse_comparison(parser *p)
{
    jinja_node *n = parse_level(p, 0);
    jinja_string sign;
    for (const jinja_token *at = p->at; !p->status && take_comparison(p, &sign); at = p->at) {
        n = make_pair(p, JINJA_NODE_BINARY, at, n, parse_level(p, 0));
        if (!p->status) n->text = sign;
    }
    return n;
}

static jinja_node *parse_not(parser *p)
{
    const jinja_token *first = p->at;
    if (!take_name(p, "not")) return parse_comparison(p);
    if (!enter(p)) return make_node(p, JINJA_NODE_NOTHING, first->place);
    jinja_node *n = make_pair(p, JINJA_NODE_UNARY, first, parse_not(p), NULL);
    p->depth--;
    return n;
}

static jinja_node *parse_and(parser *p)
{
    jinja_node *n = parse_not(p);
    for (const jinja_token *at = p->at; !p->status && take_name(p, "and"); at = p->at)
        n = make_pair(p, JINJA_NODE_BINARY, at, n, parse_not(p));
    return n;
}

static jinja_node *parse_or(parser *p)
{
    jinja_node *n = parse_and(p);
    for (const jinja_token *at = p->at; !p->status && take_name(p, "or"); at = p->at)
        n = make_pair(p, JINJA_NODE_BINARY, at, n, parse_and(p));
    return n;
}

/* a, or a if b, or a if b else c */
static jinja_node *parse_expression(parser *p)
{
    const jinja_token *first = p->at;
    if (!enter(p)) return make_node(p, JINJA_NODE_NOTHING, first->place);
    jinja_node *n = parse_or(p);
    if (!p->status && take_name(p, "if")) {
        jinja_node *choice = make_pair(p, JINJA_NODE_CHOICE, first, parse_or(p), n);
        n = choice;
        if (!p->status && take_name(p, "else")) n->c = parse_expression(p);
    }
    p->depth--;
    return n;
}

/* ---- statements ---- */

/* Whether {% name stands here. */
static bool is_statement(const parser *p, const char *name)
{
    return p->at->kind == JINJA_TOKEN_OPEN_STATEMENT && p->at[1].kind == JINJA_TOKEN_NAME &&
           qkv__jinja_is_word(p->at[1].text, name);
}

static bool take_statement(parser *p, const char *name)
{
    if (p->status || !is_statement(p, name)) return false;
    step(p), step(p);
    return true;
}

static void expect_end(parser *p, const char *name)
{
    if (!take_statement(p, name)) refuse(p, name);
    expect_close(p);
}

static jinja_node *parse_block(parser *p, const char *end)
{
    expect_close(p);
    jinja_node *body = parse_body(p, (const char *const[]){ end, NULL });
    expect_end(p, end);
    return body;
}

static jinja_node *parse_if(parser *p, jinja_place place)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    jinja_node *n = make_node(p, JINJA_NODE_IF, place), *test = parse_expression(p);
    expect_close(p);
    jinja_node *body = parse_body(p, ends), *other = NULL;
    if (!enter(p)) return n;
    if (take_statement(p, "elif")) other = parse_if(p, p->at->place);
    else if (take_statement(p, "else")) other = parse_block(p, "endif");
    else expect_end(p, "endif");
    p->depth--;
    if (p->status) return n;
    n->a = test;
    n->b = body;
    n->c = other;
    return n;
}

static jinja_node *parse_for(parser *p, jinja_place place)
{
    static const char *const ends[] = { "else", "endfor", NULL };
    jinja_node *n = make_node(p, JINJA_NODE_FOR, place), *target = parse_tuple(p, parse_primary);
    if (!take_name(p, "in")) refuse(p, "in");
    jinja_node *of = parse_or(p), *test = take_name(p, "if") ? parse_expression(p) : NULL;
    if (is_name(p, "recursive"))
        p->status = qkv__jinja_fail(QKV_UNSUPPORTED, p->at->place, "recursive loops are not known here");
    expect_close(p);
    jinja_node *body = parse_body(p, ends), *other = NULL;
    if (take_statement(p, "else")) other = parse_block(p, "endfor");
    else expect_end(p, "endfor");
    if (p->status) return n;
    *n = (jinja_node){ .kind = n->kind, .place = place, .a = target, .b = of, .c = body, .d = test, .e = other };
    return n;
}

static jinja_node *parse_set(parser *p, jinja_place place)
{
    jinja_node *n = make_node(p, JINJA_NODE_SET, place), *target = parse_tuple(p, parse_postfix), *body = NULL;
    jinja_node *filters = take_sign(p, "|") ? parse_filters(p, NULL) : NULL, *value = filters;
    const bool is_block = filters || !take_sign(p, "=");
    if (!is_block) value = parse_tuple(p, parse_expression), expect_close(p);
    else body = parse_block(p, "endset");
    if (p->status) return n;
    n->kind = is_block ? JINJA_NODE_SET_BLOCK : JINJA_NODE_SET;
    n->a = target;
    n->b = value;
    n->c = body;
    return n;
}

/* Parameters of a macro: names, some with defaults. */
static jinja_node *parse_parameters(parser *p)
{
    jinja_node *first = parse_list(p, ")", parse_argument);
    for (const jinja_node *n = first; n && !p->status; n = n->next)
        if (n->kind != JINJA_NODE_NAME && n->kind != JINJA_NODE_KEYWORD)
            p->status = qkv__jinja_fail(QKV_FORMAT, n->place, "a parameter must be a name");
    return first;
}

static jinja_node *parse_macro(parser *p, jinja_place place)
{
    jinja_node *n = make_node(p, JINJA_NODE_MACRO, place);
    jinja_string name = expect_name(p, "the name of a macro");
    expect_sign(p, "(");
    jinja_node *parameters = parse_parameters(p), *body = parse_block(p, "endmacro");
    if (p->status) return n;
    n->text = name;
    n->a = parameters;
    n->c = body;
    return n;
}

static jinja_node *parse_call_block(parser *p, jinja_place place)
{
    jinja_node *n = make_node(p, JINJA_NODE_CALL_BLOCK, place);
    jinja_node *parameters = take_sign(p, "(") ? parse_parameters(p) : NULL, *call = parse_postfix(p);
    if (!p->status && call->kind != JINJA_NODE_CALL)
        p->status = qkv__jinja_fail(QKV_FORMAT, place, "call needs the call of a macro");
    jinja_node *body = parse_block(p, "endcall");
    if (p->status) return n;
    n->a = parameters;
    n->b = call;
    n->c = body;
    return n;
}

static jinja_node *parse_filter_block(parser *p, jinja_place place)
{
    jinja_node *n = make_node(p, JINJA_NODE_FILTER_BLOCK, place), *filters = parse_filters(p, NULL);
    jinja_node *body = parse_block(p, "endfilter");
    if (p->status) return n;
    n->b = filters;
    n->c = body;
    return n;
}

/* Statements that are one tag. Those around what a model says, for training, change nothing. */
static jinja_node *parse_single(parser *p, jinja_place place, jinja_string name)
{
    static const struct {
        const char *name;
        jinja_node_kind kind;
    } single[] = { { "break", JINJA_NODE_BREAK },
                   { "continue", JINJA_NODE_CONTINUE },
                   { "generation", JINJA_NODE_NOTHING },
                   { "endgeneration", JINJA_NODE_NOTHING } };
    static const char *const of_files[] = { "include", "import", "from", "extends" };
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (qkv__jinja_is_word(name, single[i].name)) return expect_close(p), make_node(p, single[i].kind, place);
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files && !p->status; i++)
        if (qkv__jinja_is_word(name, of_files[i]))
            p->status = qkv__jinja_fail(QKV_UNSUPPORTED, place, "\"%s\" asks for a file: a chat template reads none",
                                        of_files[i]);
    if (!p->status)
        p->status = qkv__jinja_fail(QKV_UNSUPPORTED, place, "the statement \"%.*s\" is not known here",
                                    (int)(name.length < 32 ? name.length : 32), name.data);
    return make_node(p, JINJA_NODE_NOTHING, place);
}

static jinja_node *parse_statement(parser *p)
{
    static const struct {
        const char *name;
        jinja_node *(*parse)(parser *, jinja_place);
    } statements[] = { { "if", parse_if },       { "for", parse_for },         { "set", parse_set },
                       { "macro", parse_macro }, { "call", parse_call_block }, { "filter", parse_filter_block } };
    step(p);
    jinja_place place = p->at->place;
    jinja_string name = expect_name(p, "a statement");
    if (p->status || !enter(p)) return make_node(p, JINJA_NODE_NOTHING, place);
    jinja_node *n = NULL;
    for (size_t i = 0; i < sizeof statements / sizeof *statements && !n; i++)
        if (qkv__jinja_is_word(name, statements[i].name)) n = statements[i].parse(p, place);
    p->depth--;
    return n ? n : parse_single(p, place, name);
}

static jinja_node *parse_output(parser *p)
{
    jinja_node *n = make_node(p, JINJA_NODE_OUTPUT, p->at->place);
    step(p);
    jinja_node *shown = parse_tuple(p, parse_expression);
    if (p->at->kind == JINJA_TOKEN_CLOSE_OUTPUT) step(p);
    else refuse(p, "}}");
    if (!p->status) n->a = shown;
    return n;
}

static jinja_node *parse_one(parser *p)
{
    if (p->at->kind == JINJA_TOKEN_OPEN_STATEMENT) return parse_statement(p);
    if (p->at->kind == JINJA_TOKEN_OPEN_OUTPUT) return parse_output(p);
    jinja_node *n = make_pair(p, JINJA_NODE_TEXT, p->at, NULL, NULL);
    step(p);
    return n;
}

/* Up to a statement of one of these names, or to the end of the template. */
static jinja_node *parse_body(parser *p, const char *const *ends)
{
    jinja_node *first = NULL, **last = &first;
    while (!p->status && p->at->kind != JINJA_TOKEN_END) {
        for (int i = 0; ends[i]; i++)
            if (is_statement(p, ends[i])) return first;
        jinja_node *n = parse_one(p);
        if (p->status) break;
        *last = n;
        last = &n->next;
    }
    return first;
}

qkv_status qkv__jinja_parse(jinja_memory *m, jinja_string source, jinja_node **out)
{
    jinja_tokens tokens;
    *out = NULL;
    qkv_status status = qkv__jinja_lex(m, source, &tokens);
    if (status) return status;
    parser p = { .memory = m, .at = tokens.at };
    *out = parse_body(&p, (const char *const[]){ NULL });
    return p.status;
}
