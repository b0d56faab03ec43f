/* evaluate.c: runs the tree of a template. */
#include "run.h"

#include "../base/status.h"

#include <string.h>

enum { MOST_DEPTH = 600 };

/* ---- bounds ---- */

qkv_status qkv__jinja_charge(jinja_run *r, size_t steps)
{
    r->memory.steps -= (int64_t)(steps < (size_t)INT32_MAX ? steps : (size_t)INT32_MAX);
    return r->memory.steps >= 0 ? QKV_OK : qkv__jinja_fail(QKV_LIMIT, r->place, "it takes too many steps");
}

static qkv_status enter(jinja_run *r, const jinja_node *n)
{
    r->place = n->place;
    if (++r->depth > MOST_DEPTH) return qkv__jinja_fail(QKV_LIMIT, n->place, "calls are more than %d levels deep", MOST_DEPTH);
    return qkv__jinja_charge(r, 1);
}

/* What the last statement took and printed. */
static qkv_status check_bounds(jinja_run *r)
{
    if (r->out->length <= JINJA_MOST_TEXT) return qkv__jinja_charge(r, 0);
    return qkv__jinja_fail(QKV_LIMIT, r->place, "it prints more than %d bytes", JINJA_MOST_TEXT);
}

/* ---- variables ---- */

qkv_status qkv__jinja_set(jinja_run *r, jinja_scope *s, jinja_string name, jinja_value v)
{
    for (jinja_variable *old = s->first; old; old = old->next)
        if (qkv__jinja_same(old->name, name)) return old->value = v, QKV_OK;
    jinja_variable *made = qkv__jinja_take(&r->memory, sizeof *made);
    if (!made) return qkv_error_status();
    *made = (jinja_variable){ name, v, s->first };
    s->first = made;
    return QKV_OK;
}

static jinja_value look_up(const jinja_run *r, const jinja_scope *s, jinja_string name)
{
    for (; s; s = s->parent)
        for (const jinja_variable *v = s->first; v; v = v->next)
            if (qkv__jinja_same(v->name, name)) return v->value;
    const jinja_value *given = qkv__jinja_find(r->variables, name);
    if (given) return *given;
    const jinja_function *f = qkv__jinja_named(qkv__jinja_functions, name);
    return f ? (jinja_value){ .kind = JINJA_FUNCTION, .function = f } : jinja_undefined();
}

static qkv_status unpack(jinja_run *r, const jinja_node *targets, jinja_value v, jinja_scope *s);

/* To a name, to the attribute of a namespace, or element by element to several. */
static qkv_status assign(jinja_run *r, const jinja_node *target, jinja_value v, jinja_scope *s)
{
    jinja_value of;
    if (target->kind == JINJA_NODE_NAME) return qkv__jinja_set(r, s, target->text, v);
    if (target->kind == JINJA_NODE_LIST) return unpack(r, target, v, s);
    if (target->kind != JINJA_NODE_ATTRIBUTE) return JINJA_REFUSE(r, "only names and attributes of namespaces can be set");
    qkv_status status = qkv__jinja_evaluate(r, target->a, s, &of);
    if (status) return status;
    if (of.kind != JINJA_NAMESPACE) return JINJA_REFUSE(r, "%s has no attributes that can be set", qkv__jinja_kind_name(of));
    return qkv__jinja_put(&r->memory, of.dict, target->text, v);
}

static qkv_status unpack(jinja_run *r, const jinja_node *targets, jinja_value v, jinja_scope *s)
{
    int64_t i = 0;
    qkv_status status = QKV_OK;
    if (v.kind != JINJA_LIST) return JINJA_REFUSE(r, "%s cannot be shared out to several names", qkv__jinja_kind_name(v));
    for (const jinja_node *t = targets->a; t && !status; t = t->next, i++)
        status = i < v.list->n ? assign(r, t, v.list->items[i], s) : JINJA_REFUSE(r, "there are fewer values than names");
    return status || i == v.list->n ? status : JINJA_REFUSE(r, "there are more values than names");
}

/* ---- expressions ---- */

static qkv_status evaluate_list(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_list *l = qkv__jinja_list(&r->memory);
    qkv_status status = l ? QKV_OK : qkv_error_status();
    for (const jinja_node *e = n->a; e && !status; e = e->next) {
        jinja_value v;
        status = qkv__jinja_evaluate(r, e, s, &v);
        if (!status) status = qkv__jinja_append(&r->memory, l, v);
    }
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    return status;
}

static qkv_status evaluate_dict(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_dict *d = qkv__jinja_dict(&r->memory);
    qkv_status status = d ? QKV_OK : qkv_error_status();
    for (const jinja_node *e = n->a; e && !status; e = e->next) {
        jinja_value key, v;
        jinja_string name = { 0 };
        status = qkv__jinja_evaluate(r, e->a, s, &key);
        if (!status) status = qkv__jinja_need_text(r, &key, "a key", &name);
        if (!status) status = qkv__jinja_evaluate(r, e->b, s, &v);
        if (!status) status = qkv__jinja_put(&r->memory, d, name, v);
    }
    *out = (jinja_value){ .kind = JINJA_DICT, .dict = d };
    return status;
}

static qkv_status spread(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_arguments *a)
{
    jinja_value v;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &v);
    if (status) return status;
    const bool named = n->kind == JINJA_NODE_SPREAD_NAMED;
    if (v.kind != (named ? JINJA_DICT : JINJA_LIST)) return JINJA_REFUSE(r, "%s cannot be arguments", qkv__jinja_kind_name(v));
    for (int64_t i = 0; !named && i < v.list->n && !status; i++)
        status = qkv__jinja_append(&r->memory, &a->places, v.list->items[i]);
    for (int64_t i = 0; named && i < v.dict->n && !status; i++)
        status = qkv__jinja_put(&r->memory, &a->names, v.dict->entries[i].key, v.dict->entries[i].value);
    return status;
}

static qkv_status evaluate_arguments(jinja_run *r, const jinja_node *first, jinja_scope *s, jinja_arguments *a)
{
    qkv_status status = QKV_OK;
    *a = (jinja_arguments){ 0 };
    for (const jinja_node *n = first; n && !status; n = n->next) {
        jinja_value v;
        const bool named = n->kind == JINJA_NODE_KEYWORD;
        if (n->kind == JINJA_NODE_SPREAD || n->kind == JINJA_NODE_SPREAD_NAMED) {
            status = spread(r, n, s, a);
            continue;
        }
        status = qkv__jinja_evaluate(r, named ? n->a : n, s, &v);
        if (!status)
            status = named ? qkv__jinja_put(&r->memory, &a->names, n->text, v) : qkv__jinja_append(&r->memory, &a->places, v);
    }
    return status;
}

static qkv_status evaluate_call(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_arguments a;
    jinja_value f, of;
    qkv_status status;
    if (n->a->kind == JINJA_NODE_ATTRIBUTE) {
        status = qkv__jinja_evaluate(r, n->a->a, s, &of);
        r->place = n->a->place;
        if (!status) status = qkv__jinja_attribute(r, of, n->a->text, true, &f);
    } else status = qkv__jinja_evaluate(r, n->a, s, &f);
    if (!status) status = evaluate_arguments(r, n->b, s, &a);
    r->place = n->a->place;
    return status ? status : qkv__jinja_call_value(r, f, &a, out);
}

/* What a filter or a test has to look at: it may look at all of it without another step. */
static size_t size_of(jinja_value v)
{
    if (v.kind == JINJA_STRING) return v.text.length;
    if (v.kind == JINJA_LIST) return (size_t)v.list->n * 8;
    return v.kind == JINJA_DICT ? (size_t)v.dict->n * 8 : 0;
}

/* `given` is what a block has printed, for a filter without an operand. */
static qkv_status evaluate_filter(jinja_run *r, const jinja_node *n, const jinja_value *given, jinja_scope *s, jinja_value *out)
{
    jinja_arguments a;
    jinja_value v = given ? *given : jinja_undefined();
    qkv_status status = QKV_OK;
    const jinja_function *f = qkv__jinja_named(qkv__jinja_filters, n->text);
    if (n->a && given) {
        status = enter(r, n->a); /* a chain may be as long as the template */
        if (!status) status = evaluate_filter(r, n->a, given, s, &v);
        r->depth--;
    } else if (n->a) status = qkv__jinja_evaluate(r, n->a, s, &v);
    if (!status) status = evaluate_arguments(r, n->b, s, &a);
    r->place = n->place;
    if (status) return status;
    if (!f)
        return qkv__jinja_fail(QKV_UNSUPPORTED, n->place, "the filter \"%.*s\" is not known here",
                               (int)(n->text.length < 32 ? n->text.length : 32), n->text.data);
    status = qkv__jinja_charge(r, size_of(v) / 16);
    return status ? status : f->call(r, v, &a, out);
}

static qkv_status evaluate_test(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_arguments a;
    jinja_value v;
    bool holds = false;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &v);
    if (!status) status = evaluate_arguments(r, n->b, s, &a);
    r->place = n->place;
    if (!status) status = qkv__jinja_charge(r, size_of(v) / 16);
    if (!status) status = qkv__jinja_test(r, n->text, v, &a, &holds);
    *out = jinja_boolean(holds);
    return status;
}

static qkv_status evaluate_binary(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    const bool is_and = qkv__jinja_is_word(n->text, "and"), is_or = qkv__jinja_is_word(n->text, "or");
    jinja_value a, b;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &a);
    if (status) return status;
    if ((is_and || is_or) && qkv__jinja_truth(a) == is_or) return *out = a, QKV_OK;
    if (is_and || is_or) return qkv__jinja_evaluate(r, n->b, s, out);
    if ((status = qkv__jinja_evaluate(r, n->b, s, &b))) return status;
    r->place = n->place;
    status = qkv__jinja_charge(r, (size_of(a) + size_of(b)) / 16);
    return status ? status : qkv__jinja_operate(r, n->text, a, b, out);
}

static qkv_status evaluate_unary(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_value a;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &a);
    r->place = n->place;
    if (status) return status;
    if (qkv__jinja_is_word(n->text, "not")) return *out = jinja_boolean(!qkv__jinja_truth(a)), QKV_OK;
    return qkv__jinja_negate(r, n->text, a, out);
}

static qkv_status evaluate_choice(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_value test;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &test);
    if (status) return status;
    const jinja_node *chosen = qkv__jinja_truth(test) ? n->b : n->c;
    *out = jinja_undefined();
    return chosen ? qkv__jinja_evaluate(r, chosen, s, out) : QKV_OK;
}

static qkv_status evaluate_member(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_value of, parts[3] = { 0 };
    const jinja_node *const nodes[3] = { n->b, n->c, n->d };
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &of);
    for (int i = 0; i < 3 && !status; i++)
        if (nodes[i]) status = qkv__jinja_evaluate(r, nodes[i], s, &parts[i]);
    r->place = n->place;
    if (status) return status;
    if (n->kind == JINJA_NODE_ATTRIBUTE) return qkv__jinja_attribute(r, of, n->text, false, out);
    if (n->kind == JINJA_NODE_ITEM) return qkv__jinja_item(r, of, parts[0], out);
    return qkv__jinja_slice(r, of, parts[0], parts[1], parts[2], out);
}

static qkv_status evaluate_node(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    switch (n->kind) {
    case JINJA_NODE_LITERAL: *out = n->value; return QKV_OK;
    case JINJA_NODE_NAME: *out = look_up(r, s, n->text); return QKV_OK;
    case JINJA_NODE_LIST: return evaluate_list(r, n, s, out);
    case JINJA_NODE_DICT: return evaluate_dict(r, n, s, out);
    case JINJA_NODE_ATTRIBUTE:
    case JINJA_NODE_ITEM:
    case JINJA_NODE_SLICE: return evaluate_member(r, n, s, out);
    case JINJA_NODE_CALL: return evaluate_call(r, n, s, out);
    case JINJA_NODE_FILTER: return evaluate_filter(r, n, NULL, s, out);
    case JINJA_NODE_TEST: return evaluate_test(r, n, s, out);
    case JINJA_NODE_UNARY: return evaluate_unary(r, n, s, out);
    case JINJA_NODE_BINARY: return evaluate_binary(r, n, s, out);
    case JINJA_NODE_CHOICE: return evaluate_choice(r, n, s, out);
    default: return JINJA_REFUSE(r, "this stands where no expression has it");
    }
}

qkv_status qkv__jinja_evaluate(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    *out = jinja_undefined();
    qkv_status status = enter(r, n);
    if (!status) status = evaluate_node(r, n, s, out);
    r->depth--;
    return status;
}

/* ---- statements ---- */

static qkv_status print_output(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value v;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &v);
    r->place = n->place;
    return status ? status : qkv__jinja_write(v, r->out);
}

static qkv_status print_if(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value test;
    qkv_status status = qkv__jinja_evaluate(r, n->a, s, &test);
    return status ? status : qkv__jinja_print(r, qkv__jinja_truth(test) ? n->b : n->c, s);
}

/* The elements for which the loop's own condition holds. */
static qkv_status choose_elements(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_list **items)
{
    jinja_scope inner = { .parent = s };
    jinja_list *all = *items, *some = qkv__jinja_list(&r->memory);
    qkv_status status = some ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; i < all->n && !status; i++) {
        jinja_value holds;
        status = assign(r, n->a, all->items[i], &inner);
        if (!status) status = qkv__jinja_evaluate(r, n->d, &inner, &holds);
        if (!status && qkv__jinja_truth(holds)) status = qkv__jinja_append(&r->memory, some, all->items[i]);
    }
    *items = some;
    return status;
}

/* What is set in a loop is forgotten at the end of a round. The scope is taken from memory: a macro may keep it. */
static qkv_status print_rounds(jinja_run *r, const jinja_node *n, const jinja_list *items, jinja_scope *s)
{
    static const jinja_string name = { "loop", 4 };
    jinja_loop *loop = qkv__jinja_take(&r->memory, sizeof *loop);
    qkv_status status = loop ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; i < items->n && !status && r->jump != JINJA_BREAK; i++) {
        jinja_scope *round = qkv__jinja_take(&r->memory, sizeof *round);
        if (!round) return qkv_error_status();
        round->parent = s;
        *loop = (jinja_loop){ items, i };
        status = qkv__jinja_set(r, round, name, (jinja_value){ .kind = JINJA_LOOP, .loop = loop });
        if (!status) status = assign(r, n->a, items->items[i], round);
        if (!status) status = qkv__jinja_print(r, n->c, round);
        if (r->jump == JINJA_CONTINUE) r->jump = JINJA_GO_ON;
    }
    r->jump = JINJA_GO_ON;
    return status;
}

static qkv_status print_for(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value of;
    jinja_list *items = NULL;
    qkv_status status = qkv__jinja_evaluate(r, n->b, s, &of);
    r->place = n->place;
    if (!status) status = qkv__jinja_elements(r, of, &items);
    if (!status && n->d) status = choose_elements(r, n, s, &items);
    if (status) return status;
    return items->n ? print_rounds(r, n, items, s) : qkv__jinja_print(r, n->e, s);
}

qkv_status qkv__jinja_capture(jinja_run *r, const jinja_node *body, jinja_scope *s, jinja_value *out)
{
    const size_t from = r->out->length;
    qkv_status status = qkv__jinja_print(r, body, s);
    if (!status) status = qkv__jinja_string(&r->memory, r->out->data ? r->out->data + from : "", r->out->length - from, out);
    r->out->length = from;
    return status;
}

static qkv_status capture_filtered(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_value printed;
    qkv_status status = qkv__jinja_capture(r, n->c, s, &printed);
    if (status || !n->b) return *out = printed, status;
    return evaluate_filter(r, n->b, &printed, s, out);
}

static qkv_status run_set(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value v;
    qkv_status status = n->kind == JINJA_NODE_SET ? qkv__jinja_evaluate(r, n->b, s, &v) : capture_filtered(r, n, s, &v);
    r->place = n->place;
    return status ? status : assign(r, n->a, v, s);
}

static qkv_status print_filtered(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value v;
    qkv_status status = capture_filtered(r, n, s, &v);
    return status ? status : qkv__jinja_write(v, r->out);
}

static qkv_status make_macro(jinja_run *r, const jinja_node *n, jinja_scope *s, jinja_value *out)
{
    jinja_macro *m = qkv__jinja_take(&r->memory, sizeof *m);
    if (!m) return qkv_error_status();
    *m = (jinja_macro){ .node = n, .scope = s };
    *out = (jinja_value){ .kind = JINJA_MACRO, .macro = m };
    return QKV_OK;
}

/* The macro that is called finds the block's body as caller(). */
static qkv_status print_call_block(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value f, caller, printed;
    jinja_arguments a;
    qkv_status status = qkv__jinja_evaluate(r, n->b->a, s, &f);
    if (!status) status = evaluate_arguments(r, n->b->b, s, &a);
    if (!status && f.kind != JINJA_MACRO) status = JINJA_REFUSE(r, "%s is no macro to call", qkv__jinja_kind_name(f));
    if (!status) status = make_macro(r, n, s, &caller);
    if (status) return status;
    jinja_macro with = *f.macro;
    with.has_caller = true;
    with.caller = caller;
    status = qkv__jinja_call_value(r, (jinja_value){ .kind = JINJA_MACRO, .macro = &with }, &a, &printed);
    return status ? status : qkv__jinja_write(printed, r->out);
}

static qkv_status print_statement(jinja_run *r, const jinja_node *n, jinja_scope *s)
{
    jinja_value macro;
    qkv_status status;
    switch (n->kind) {
    case JINJA_NODE_TEXT: return qkv__buffer_put(r->out, n->text.data, n->text.length);
    case JINJA_NODE_OUTPUT: return print_output(r, n, s);
    case JINJA_NODE_IF: return print_if(r, n, s);
    case JINJA_NODE_FOR: return print_for(r, n, s);
    case JINJA_NODE_SET:
    case JINJA_NODE_SET_BLOCK: return run_set(r, n, s);
    case JINJA_NODE_FILTER_BLOCK: return print_filtered(r, n, s);
    case JINJA_NODE_CALL_BLOCK: return print_call_block(r, n, s);
    case JINJA_NODE_MACRO: status = make_macro(r, n, s, &macro); return status ? status : qkv__jinja_set(r, s, n->text, macro);
    case JINJA_NODE_BREAK: r->jump = JINJA_BREAK; return QKV_OK;
    case JINJA_NODE_CONTINUE: r->jump = JINJA_CONTINUE; return QKV_OK;
    default: return QKV_OK;
    }
}

qkv_status qkv__jinja_print(jinja_run *r, const jinja_node *body, jinja_scope *s)
{
    qkv_status status = QKV_OK;
    for (const jinja_node *n = body; n && !status && r->jump == JINJA_GO_ON; n = n->next) {
        status = enter(r, n);
        if (!status) status = print_statement(r, n, s);
        if (!status) status = check_bounds(r);
        r->depth--;
    }
    return status;
}
