/* pickle.c: a stack machine for the pickles of PyTorch's state_dicts. An opcode has a function here, or is refused. */
#include "pickle.h"

#include "../base/number.h"

#include <stdbool.h>

typedef enum value_kind { NOTHING, MARK, INTEGER, TEXT, TUPLE, LIST, DICTIONARY, NAME, STORAGE, TENSOR } value_kind;

/* What the stack holds. What is in a list, and what None, a boolean or a float is, nobody asks. */
typedef struct value {
    value_kind kind;
    uint32_t n; /* bytes of a text; items of a tuple */
    int64_t
        at; /* the integer; or where: a text in the pickle, the others in the lists below, a storage or a tensor as the tuple
                   that it is made of, which was found sound */
} value;

typedef struct pair {
    value key, value;
    int64_t next; /* of the same dictionary; -1: none */
} pair;

typedef struct dictionary {
    int64_t first, last;
} dictionary;

/* Memory that grows; n of the elements are in use. */
typedef struct list {
    void *at;
    size_t n, bytes;
} list;

typedef struct machine {
    const char *path;
    size_t place;
    const unsigned char *bytes;
    size_t size, at, opcode; /* opcode: where the one that runs is */
    list stack, memo, items; /* of values */
    list pairs, dictionaries;
    qkv_status status; /* the first error stays */
    bool is_done;
} machine;

/* ---- errors, memory, bytes ---- */

static void refuse(machine *m, qkv_status status, const char *what)
{
    if (!m->status) m->status = qkv__fail(status, "%s: byte %zu: %s", m->path, m->place + m->opcode, what);
}

static void pickle_broken(machine *m, const char *what) { refuse(m, QKV_FORMAT, what); }

/* A new element at the end of a list, NULL with the error set. */
static void *list_add(machine *m, list *l, size_t element)
{
    if (!m->status) m->status = qkv__grow(&l->at, &l->bytes, (l->n + 1) * element);
    return m->status ? NULL : (char *)l->at + l->n++ * element;
}

static value *values_of(const list *l) { return l->at; }
static pair *pairs_of(const machine *m) { return m->pairs.at; }
static dictionary *dictionaries_of(const machine *m) { return m->dictionaries.at; }

/* The next n bytes, NULL with the error set. */
static const unsigned char *take(machine *m, uint64_t n)
{
    if (n > m->size - m->at) pickle_broken(m, "the pickle is cut");
    if (m->status) return NULL;
    m->at += (size_t)n;
    return m->bytes + m->at - n;
}

static uint64_t take_number(machine *m, int bytes)
{
    const unsigned char *at = take(m, (uint64_t)bytes);
    return at ? qkv__load(at, bytes, false) : 0;
}

/* ---- the stack ---- */

static void push_value(machine *m, value v)
{
    value *top = list_add(m, &m->stack, sizeof *top);
    if (top) *top = v;
}

static void push_kind(machine *m, value_kind kind) { push_value(m, (value){ .kind = kind }); }

/* The value on top, which stays there; NULL with the error set. */
static value *top_value(machine *m)
{
    value *top = m->stack.n ? &values_of(&m->stack)[m->stack.n - 1] : NULL;
    if (!top || top->kind == MARK) pickle_broken(m, "a value is missing");
    return m->status ? NULL : top;
}

static value pop_value(machine *m)
{
    const value *top = top_value(m);
    if (!top) return (value){ 0 };
    m->stack.n--;
    return *top;
}

static value pop_kind(machine *m, value_kind kind, const char *what)
{
    value v = pop_value(m);
    if (v.kind != kind) pickle_broken(m, what);
    return v;
}

/* The values after the last mark, which are taken off with it. They stay where they are until something is pushed. */
static const value *pop_to_mark(machine *m, size_t *n)
{
    const value *stack = values_of(&m->stack);
    size_t at = m->stack.n;
    while (at && stack[at - 1].kind != MARK) at--;
    if (!at) pickle_broken(m, "a mark is missing");
    *n = m->status ? 0 : m->stack.n - at;
    if (!m->status) m->stack.n = at - 1;
    return stack ? stack + at : NULL;
}

/* ---- plain values ---- */

static void run_protocol(machine *m)
{
    if (take_number(m, 1) > 5) refuse(m, QKV_UNSUPPORTED, "a pickle of a protocol above 5");
}

static void run_frame(machine *m) { take(m, 8); }
static void run_stop(machine *m) { m->is_done = true; }
static void run_mark(machine *m) { push_kind(m, MARK); }
static void run_nothing(machine *m) { push_kind(m, NOTHING); }
static void run_list(machine *m) { push_kind(m, LIST); }

static void run_float(machine *m)
{
    take(m, 8);
    push_kind(m, NOTHING);
}

static void push_integer(machine *m, int64_t n) { push_value(m, (value){ .kind = INTEGER, .at = n }); }
static void run_int1(machine *m) { push_integer(m, (int64_t)take_number(m, 1)); }
static void run_int2(machine *m) { push_integer(m, (int64_t)take_number(m, 2)); }
static void run_int4(machine *m) { push_integer(m, (int32_t)(uint32_t)take_number(m, 4)); }

/* Two's complement of as many bytes as it says. */
static void run_long(machine *m)
{
    int bytes = (int)take_number(m, 1);
    if (bytes > 8) return pickle_broken(m, "a whole number of more than 8 bytes");
    uint64_t n = take_number(m, bytes);
    if (bytes && bytes < 8 && n >> (8 * bytes - 1)) n |= ~(uint64_t)0 << 8 * bytes;
    push_integer(m, (int64_t)n);
}

static void push_text(machine *m, uint64_t length)
{
    const unsigned char *at = take(m, length);
    if (at && length > UINT32_MAX) pickle_broken(m, "a text of more than 4 GB");
    if (at) push_value(m, (value){ TEXT, (uint32_t)length, at - m->bytes });
}

static void run_text1(machine *m) { push_text(m, take_number(m, 1)); }
static void run_text4(machine *m) { push_text(m, take_number(m, 4)); }
static void run_text8(machine *m) { push_text(m, take_number(m, 8)); }

static bool is_text(const machine *m, value v, const char *text)
{
    return v.kind == TEXT && v.n == strlen(text) && !memcmp(m->bytes + v.at, text, v.n);
}

/* ---- tuples, lists and dictionaries ---- */

static void push_tuple(machine *m, const value *items, size_t n)
{
    int64_t first = (int64_t)m->items.n;
    for (size_t i = 0; i < n; i++) {
        value *item = list_add(m, &m->items, sizeof *item);
        if (item) *item = items[i];
    }
    push_value(m, (value){ TUPLE, (uint32_t)n, first });
}

static void run_tuple(machine *m)
{
    size_t n;
    const value *items = pop_to_mark(m, &n);
    push_tuple(m, items, n);
}

static void run_tuple_of(machine *m, int n)
{
    value items[3] = { { 0 } };
    for (int i = n - 1; i >= 0; i--) items[i] = pop_value(m);
    push_tuple(m, items, (size_t)n);
}

static void run_tuple0(machine *m) { run_tuple_of(m, 0); }
static void run_tuple1(machine *m) { run_tuple_of(m, 1); }
static void run_tuple2(machine *m) { run_tuple_of(m, 2); }
static void run_tuple3(machine *m) { run_tuple_of(m, 3); }

static void check_top(machine *m, value_kind kind, const char *what)
{
    const value *top = top_value(m);
    if (top && top->kind != kind) pickle_broken(m, what);
}

static void run_append(machine *m)
{
    pop_value(m);
    check_top(m, LIST, "what is appended to is no list");
}

static void run_appends(machine *m)
{
    size_t n;
    pop_to_mark(m, &n);
    check_top(m, LIST, "what is appended to is no list");
}

static void run_dictionary(machine *m)
{
    dictionary *d = list_add(m, &m->dictionaries, sizeof *d);
    if (d) *d = (dictionary){ -1, -1 };
    push_value(m, (value){ .kind = DICTIONARY, .at = (int64_t)m->dictionaries.n - 1 });
}

/* Adds a pair to the dictionary on top. */
static void set_item(machine *m, value key, value v)
{
    check_top(m, DICTIONARY, "what gets an item is no dictionary");
    pair *p = list_add(m, &m->pairs, sizeof *p);
    if (!p) return;
    int64_t at = (int64_t)m->pairs.n - 1;
    dictionary *d = &dictionaries_of(m)[top_value(m)->at];
    *p = (pair){ key, v, -1 };
    if (d->first < 0) d->first = at;
    else pairs_of(m)[d->last].next = at;
    d->last = at;
}

static void run_set_item(machine *m)
{
    value v = pop_value(m), key = pop_value(m);
    set_item(m, key, v);
}

static void run_set_items(machine *m)
{
    size_t n;
    const value *items = pop_to_mark(m, &n);
    if (n % 2) pickle_broken(m, "a key without a value");
    for (size_t i = 0; i < n && !m->status; i += 2) set_item(m, items[i], items[i + 1]);
}

/* The attributes of a dictionary: the versions of a state_dict's modules. */
static void run_build(machine *m)
{
    pop_value(m);
    check_top(m, DICTIONARY, "what gets attributes is no dictionary");
}

/* ---- the memo ---- */

static void put_memo(machine *m, uint64_t place)
{
    const value *top = top_value(m);
    if (place > m->memo.n) return pickle_broken(m, "a place of the memo is left out");
    value *to = place < m->memo.n ? &values_of(&m->memo)[place] : list_add(m, &m->memo, sizeof *to);
    if (top && to) *to = *top;
}

static void get_memo(machine *m, uint64_t place)
{
    if (place >= m->memo.n) return pickle_broken(m, "a place of the memo that was never filled");
    push_value(m, values_of(&m->memo)[place]);
}

static void run_put1(machine *m) { put_memo(m, take_number(m, 1)); }
static void run_put4(machine *m) { put_memo(m, take_number(m, 4)); }
static void run_memoize(machine *m) { put_memo(m, m->memo.n); }
static void run_get1(machine *m) { get_memo(m, take_number(m, 1)); }
static void run_get4(machine *m) { get_memo(m, take_number(m, 4)); }

/* ---- names ---- */

static void make_dictionary(machine *m, value arguments);
static void make_tensor(machine *m, value arguments);
static void make_parameter(machine *m, value arguments);

/* All names that a pickle may have: a function that is known here, or the type of a storage. */
static const struct known {
    const char *module, *name;
    void (*make)(machine *m, value arguments);
    const char *dtype;
    int item;
} names[] = {
    { "collections", "OrderedDict", make_dictionary, NULL, 0 },
    { "torch._utils", "_rebuild_tensor_v2", make_tensor, NULL, 0 },
    { "torch._utils", "_rebuild_parameter", make_parameter, NULL, 0 },
    { "torch", "FloatStorage", NULL, "F32", 4 },
    { "torch", "HalfStorage", NULL, "F16", 2 },
    { "torch", "BFloat16Storage", NULL, "BF16", 2 },
    { "torch", "DoubleStorage", NULL, "F64", 8 },
    { "torch", "LongStorage", NULL, "I64", 8 },
    { "torch", "IntStorage", NULL, "I32", 4 },
    { "torch", "ShortStorage", NULL, "I16", 2 },
    { "torch", "CharStorage", NULL, "I8", 1 },
    { "torch", "ByteStorage", NULL, "U8", 1 },
    { "torch", "BoolStorage", NULL, "BOOL", 1 },
};

static void push_name(machine *m, value module, value name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_text(m, module, names[i].module) && is_text(m, name, names[i].name))
            return push_value(m, (value){ .kind = NAME, .at = (int64_t)i });
    if (m->status) return;
    m->status = qkv__fail(QKV_UNSUPPORTED, "%s: byte %zu: it names %s.%s, which rebuilds no tensor: nothing of it was run",
                          m->path, m->place + m->opcode, QKV__SHOWN(m->bytes + module.at, module.n),
                          QKV__SHOWN(m->bytes + name.at, name.n));
}

/* Up to the end of the line. */
static value take_line(machine *m)
{
    const unsigned char *start = m->bytes + m->at, *end = memchr(start, '\n', m->size - m->at);
    if (!end) pickle_broken(m, "the pickle is cut");
    if (m->status) return (value){ 0 };
    value line = { TEXT, (uint32_t)(end - start), (int64_t)m->at };
    m->at += (size_t)(end - start) + 1;
    return line;
}

static void run_name(machine *m)
{
    value module = take_line(m), name = take_line(m);
    if (!m->status) push_name(m, module, name);
}

static void run_stack_name(machine *m)
{
    value name = pop_kind(m, TEXT, "a name is no text"), module = pop_kind(m, TEXT, "a module is no text");
    if (!m->status) push_name(m, module, name);
}

static void run_call(machine *m)
{
    value arguments = pop_kind(m, TUPLE, "the arguments of a call are no tuple"),
          callee = pop_kind(m, NAME, "what is called has no name");
    if (m->status) return;
    if (names[callee.at].make) names[callee.at].make(m, arguments);
    else refuse(m, QKV_UNSUPPORTED, "the type of a storage is called");
}

/* ---- what calls make ---- */

static value argument(const machine *m, value arguments, uint32_t i)
{
    return i < arguments.n ? values_of(&m->items)[arguments.at + i] : (value){ 0 };
}

static void make_dictionary(machine *m, value arguments)
{
    if (arguments.n) pickle_broken(m, "an OrderedDict made of something");
    else run_dictionary(m);
}

/* ("storage", its type, its key, the device it was on, how many numbers it has) */
static void run_storage(machine *m)
{
    value id = pop_kind(m, TUPLE, "the name of a storage is no tuple");
    if (m->status) return;
    value type = argument(m, id, 1), key = argument(m, id, 2), numbers = argument(m, id, 4);
    if (id.n != 5 || !is_text(m, argument(m, id, 0), "storage") || type.kind != NAME || !names[type.at].dtype ||
        key.kind != TEXT || numbers.kind != INTEGER || numbers.at < 0)
        return pickle_broken(m, "a storage needs a type, a key and a count");
    push_value(m, (value){ STORAGE, id.n, id.at });
}

/* A tuple of counts. */
static bool get_counts(const machine *m, value v, int64_t *out)
{
    for (uint32_t i = 0; i < v.n; i++) {
        value item = argument(m, v, i);
        if (item.kind != INTEGER || item.at < 0) return false;
        out[i] = item.at;
    }
    return true;
}

/* (storage, offset, shape, strides, ...): what follows is about gradients. */
static qkv__pickled_tensor tensor_of(machine *m, value arguments)
{
    value storage = argument(m, arguments, 0), offset = argument(m, arguments, 1), shape = argument(m, arguments, 2),
          stride = argument(m, arguments, 3);
    qkv__pickled_tensor t = { .ndim = (int)shape.n, .offset = offset.at };
    if (storage.kind != STORAGE || offset.kind != INTEGER || offset.at < 0 || shape.kind != TUPLE || stride.kind != TUPLE ||
        shape.n != stride.n)
        return pickle_broken(m, "a tensor needs a storage, an offset, a shape and as many strides"), t;
    if (shape.n > QKV_MAX_DIMS) return refuse(m, QKV_LIMIT, "a tensor has more dimensions than are supported"), t;
    if (!get_counts(m, shape, t.shape) || !get_counts(m, stride, t.stride))
        pickle_broken(m, "a dimension or a stride is no count");
    const struct known *type = &names[argument(m, storage, 1).at];
    value key = argument(m, storage, 2);
    t.storage = (const char *)m->bytes + key.at;
    t.storage_length = key.n;
    t.dtype = type->dtype;
    t.item = type->item;
    t.numbers = argument(m, storage, 4).at;
    return t;
}

static void make_tensor(machine *m, value arguments)
{
    tensor_of(m, arguments);
    push_value(m, (value){ TENSOR, arguments.n, arguments.at });
}

/* (tensor, whether it has gradients, hooks): the tensor. */
static void make_parameter(machine *m, value arguments)
{
    value tensor = argument(m, arguments, 0);
    if (tensor.kind != TENSOR) pickle_broken(m, "a parameter needs a tensor");
    else push_value(m, tensor);
}

/* ---- the program ---- */

static void (*const opcodes[256])(machine *m) = {
    [0x80] = run_protocol, [0x95] = run_frame,   ['.'] = run_stop,    ['('] = run_mark,        ['N'] = run_nothing,
    [0x88] = run_nothing,  [0x89] = run_nothing, ['G'] = run_float,   ['K'] = run_int1,        ['M'] = run_int2,
    ['J'] = run_int4,      [0x8A] = run_long,    [0x8C] = run_text1,  ['X'] = run_text4,       [0x8D] = run_text8,
    [')'] = run_tuple0,    [0x85] = run_tuple1,  [0x86] = run_tuple2, [0x87] = run_tuple3,     ['t'] = run_tuple,
    [']'] = run_list,      ['a'] = run_append,   ['e'] = run_appends, ['}'] = run_dictionary,  ['s'] = run_set_item,
    ['u'] = run_set_items, ['b'] = run_build,    ['q'] = run_put1,    ['r'] = run_put4,        [0x94] = run_memoize,
    ['h'] = run_get1,      ['j'] = run_get4,     ['c'] = run_name,    [0x93] = run_stack_name, ['R'] = run_call,
    ['Q'] = run_storage,
};

static void run_program(machine *m)
{
    while (!m->status && !m->is_done) {
        m->opcode = m->at;
        const unsigned char *code = take(m, 1);
        if (!code) return;
        if (opcodes[*code]) opcodes[*code](m);
        else
            m->status = qkv__fail(QKV_UNSUPPORTED, "%s: byte %zu: opcode 0x%02X rebuilds no tensor: nothing of it was run",
                                  m->path, m->place + m->opcode, *code);
    }
}

/* The tensors of the dictionary that the program ends with, under their names. */
static void list_tensors(machine *m, qkv__pickled *out)
{
    value result = pop_value(m);
    if (result.kind != DICTIONARY) pickle_broken(m, "the pickle does not end in a dictionary of tensors");
    if (m->status) return;
    for (int64_t i = dictionaries_of(m)[result.at].first; i >= 0 && !m->status; i = pairs_of(m)[i].next) {
        const pair *p = &pairs_of(m)[i];
        list all = { out->tensors, out->n, out->bytes };
        if (p->key.kind != TEXT || p->value.kind != TENSOR)
            return pickle_broken(m, "the dictionary that the pickle ends in has more than names and tensors");
        qkv__pickled_tensor *t = list_add(m, &all, sizeof *t);
        *out = (qkv__pickled){ all.n, all.at, all.bytes };
        if (!t) return;
        *t = tensor_of(m, p->value);
        t->name = (const char *)m->bytes + p->key.at;
        t->name_length = p->key.n;
    }
}

static void free_machine(machine *m)
{
    list *const all[] = { &m->stack, &m->memo, &m->items, &m->pairs, &m->dictionaries };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) qkv__release(all[i]->at, all[i]->bytes);
}

qkv_status qkv__pickle_read(const char *path, size_t place, const unsigned char *bytes, size_t size, qkv__pickled *out)
{
    machine m = { .path = path, .place = place, .bytes = bytes, .size = size };
    *out = (qkv__pickled){ 0 };
    run_program(&m);
    if (!m.status) list_tensors(&m, out);
    free_machine(&m);
    if (m.status) qkv__pickled_free(out);
    return m.status;
}

void qkv__pickled_free(qkv__pickled *p)
{
    qkv__release(p->tensors, p->bytes);
    *p = (qkv__pickled){ 0 };
}
