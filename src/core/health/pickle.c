/* pickle.c - see pickle.h. */
#include "health/pickle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/containers.h"

#define PROTOCOL 2

/* The instructions that are carried out, by their names in pickletools.py. */
enum instruction {
    OP_MARK = '(',
    OP_EMPTY_TUPLE = ')',
    OP_STOP = '.',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
};

/** Numbers of values, on the stack or in the memo. */
struct numbers {
    uint32_t *items; /* owns */
    size_t n, cap;
};

struct machine {
    struct reader r;
    struct pickle p; /* owns, until it is given */
    struct numbers stack;
    struct numbers memo;
    size_t marks[PICKLE_DEPTH_MAX]; /* how high the stack was at each */
    unsigned n_marks;
    bool is_done;
    int failed;
    struct err *e;
};

/* ---- failing, and growing ------------------------------------------------------------------- */

static void fail(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct machine *m, const char *fmt, ...)
{
    char text[160];
    va_list args;

    if (m->failed != 0)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    m->failed = err_set(m->e, -EINVAL, "the pickle %s", text);
}

static void fail_memory(struct machine *m)
{
    if (m->failed == 0)
        m->failed = err_set(m->e, -ENOMEM, "no memory for the values of a pickle");
}

static void add_number(struct machine *m, struct numbers *list, uint32_t number)
{
    uint32_t *items = sorted_open(list->items, list->n, sizeof(*items), list->n, &list->cap);

    if (!items) {
        fail_memory(m);
        return;
    }
    list->items = items;
    items[list->n++] = number;
}

/* Makes a value, and puts it onto the stack. */
static void push(struct machine *m, struct pickle_value value)
{
    struct pickle *p = &m->p;
    struct pickle_value *values;

    if (p->n_values == PICKLE_VALUES_MAX) {
        fail(m, "has more than %u values", PICKLE_VALUES_MAX);
        return;
    }
    values = sorted_open(p->values, p->n_values, sizeof(*values), p->n_values, &p->cap_values);
    if (!values) {
        fail_memory(m);
        return;
    }
    p->values = values;
    values[p->n_values] = value;
    add_number(m, &m->stack, (uint32_t)p->n_values++);
}

static void add_item(struct machine *m, uint32_t container, uint32_t item)
{
    struct pickle *p = &m->p;
    struct pickle_value *to = &p->values[container];
    struct pickle_cell *cells;

    if (p->n_cells == PICKLE_CELLS_MAX) {
        fail(m, "has more than %u items", PICKLE_CELLS_MAX);
        return;
    }
    cells = sorted_open(p->cells, p->n_cells, sizeof(*cells), p->n_cells, &p->cap_cells);
    if (!cells) {
        fail_memory(m);
        return;
    }
    p->cells = cells;
    cells[p->n_cells++] = (struct pickle_cell){.value = item};
    if (to->first == 0)
        to->first = (uint32_t)p->n_cells;
    else
        cells[to->last - 1].next = (uint32_t)p->n_cells;
    to->last = (uint32_t)p->n_cells;
}

/* ---- containers ----------------------------------------------------------------------------- */

/* Where the values begin that an instruction may take: those below the last mark are others'. */
static size_t bottom(const struct machine *m)
{
    return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

static void mark(struct machine *m)
{
    if (m->n_marks == PICKLE_DEPTH_MAX)
        fail(m, "has more than %d containers in each other", PICKLE_DEPTH_MAX);
    else
        m->marks[m->n_marks++] = m->stack.n;
}

/* How many values are above the last mark, which is taken away. */
static size_t take_mark(struct machine *m)
{
    if (m->n_marks == 0) {
        fail(m, "ends a container that was not begun");
        return 0;
    }
    return m->stack.n - m->marks[--m->n_marks];
}

/* Moves the topmost @n values into the container below them. */
static void fill(struct machine *m, enum pickle_kind kind, size_t n)
{
    uint32_t container;
    size_t at;

    if (m->failed == 0 && m->stack.n - bottom(m) <= n) {
        fail(m, "adds to a container that is not there");
        return;
    }
    if (m->failed != 0)
        return;
    at = m->stack.n - n;
    container = m->stack.items[at - 1];
    if (m->p.values[container].kind != kind || (kind == PICKLE_DICT && n % 2 != 0)) {
        fail(m, "adds to what is no container of that kind");
        return;
    }
    for (size_t i = 0; i < n && m->failed == 0; i++)
        add_item(m, container, m->stack.items[at + i]);
    m->stack.n = at;
}

/* Replaces the topmost @n values by a tuple of them. */
static void make_tuple(struct machine *m, size_t n)
{
    uint32_t items = 0;
    size_t at;

    if (m->failed == 0 && m->stack.n - bottom(m) < n)
        fail(m, "makes a tuple of more than there is");
    if (m->failed != 0)
        return;
    at = m->stack.n - n;
    push(m, (struct pickle_value){.kind = PICKLE_LIST});
    if (m->failed != 0)
        return;
    items = m->stack.items[m->stack.n - 1];
    for (size_t i = 0; i < n && m->failed == 0; i++)
        add_item(m, items, m->stack.items[at + i]);
    m->stack.items[at] = items;
    m->stack.n = at + 1;
}

/* ---- values --------------------------------------------------------------------------------- */

static uint32_t read_le32(struct reader *r)
{
    struct le32 v;

    reader_copy(r, &v, sizeof(v));
    return le32_get(v);
}

static void push_int(struct machine *m, int64_t value)
{
    push(m, (struct pickle_value){.kind = PICKLE_INT, .integer = value});
}

static void push_int2(struct machine *m)
{
    unsigned low = reader_u8(&m->r);

    push_int(m, low | (unsigned)reader_u8(&m->r) << 8);
}

/* In two's complement, the lowest byte first. */
static void push_long(struct machine *m)
{
    uint8_t len = reader_u8(&m->r);
    const uint8_t *bytes = reader_take(&m->r, len);
    uint64_t value = bytes && len > 0 && bytes[len - 1] >= 0x80 ? UINT64_MAX : 0;

    if (len > sizeof(value)) {
        fail(m, "has an integer of %u bytes, and 8 are read", len);
        return;
    }
    for (unsigned i = len; bytes && i > 0; i--)
        value = value << 8 | bytes[i - 1];
    push_int(m, (int64_t)value);
}

static void push_float(struct machine *m)
{
    uint64_t bits = reader_be64(&m->r);
    struct pickle_value value = {.kind = PICKLE_FLOAT};

    memcpy(&value.number, &bits, sizeof(bits));
    push(m, value);
}

static void push_text(struct machine *m)
{
    uint32_t len = read_le32(&m->r);
    const uint8_t *text = reader_take(&m->r, len);

    if (text)
        push(m, (struct pickle_value){.kind = PICKLE_TEXT, .len = len, .text = (const char *)text});
}

/* Both Python and PyTorch count the memo up. */
static void put(struct machine *m, uint32_t slot)
{
    if (m->stack.n == bottom(m)) {
        fail(m, "remembers a value that is not there");
        return;
    }
    if (slot == m->memo.n)
        add_number(m, &m->memo, m->stack.items[m->stack.n - 1]);
    else if (slot < m->memo.n)
        m->memo.items[slot] = m->stack.items[m->stack.n - 1];
    else
        fail(m, "remembers value %u after value %zu", slot, m->memo.n);
}

static void get(struct machine *m, uint32_t slot)
{
    if (slot < m->memo.n)
        add_number(m, &m->stack, m->memo.items[slot]);
    else
        fail(m, "takes value %u, and has remembered %zu", slot, m->memo.n);
}

static void check_protocol(struct machine *m)
{
    uint8_t protocol = reader_u8(&m->r);

    if (!m->r.failed && protocol != PROTOCOL)
        fail(m, "is of protocol %u, and %d is read", protocol, PROTOCOL);
}

static void stop(struct machine *m)
{
    if (m->stack.n != 1 || m->n_marks > 0)
        fail(m, "ends with %zu values, and %u containers that are not ended", m->stack.n,
            m->n_marks);
    else if (reader_left(&m->r) > 0)
        fail(m, "has %zu bytes after its end", reader_left(&m->r));
    m->is_done = true;
}

static void carry_out(struct machine *m, uint8_t instruction)
{
    switch (instruction) {
    case OP_PROTO:
        check_protocol(m);
        break;
    case OP_NONE:
        push(m, (struct pickle_value){.kind = PICKLE_NONE});
        break;
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        push(m, (struct pickle_value){.kind = PICKLE_BOOL, .integer = instruction == OP_NEWTRUE});
        break;
    case OP_BININT:
        push_int(m, (int32_t)read_le32(&m->r));
        break;
    case OP_BININT1:
        push_int(m, reader_u8(&m->r));
        break;
    case OP_BININT2:
        push_int2(m);
        break;
    case OP_LONG1:
        push_long(m);
        break;
    case OP_BINFLOAT:
        push_float(m);
        break;
    case OP_BINUNICODE:
        push_text(m);
        break;
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE:
        push(m, (struct pickle_value){.kind = PICKLE_LIST});
        break;
    case OP_EMPTY_DICT:
        push(m, (struct pickle_value){.kind = PICKLE_DICT});
        break;
    case OP_MARK:
        mark(m);
        break;
    case OP_APPEND:
        fill(m, PICKLE_LIST, 1);
        break;
    case OP_APPENDS:
        fill(m, PICKLE_LIST, take_mark(m));
        break;
    case OP_SETITEM:
        fill(m, PICKLE_DICT, 2);
        break;
    case OP_SETITEMS:
        fill(m, PICKLE_DICT, take_mark(m));
        break;
    case OP_TUPLE:
        make_tuple(m, take_mark(m));
        break;
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        make_tuple(m, (size_t)(instruction - OP_TUPLE1) + 1);
        break;
    case OP_BINPUT:
        put(m, reader_u8(&m->r));
        break;
    case OP_LONG_BINPUT:
        put(m, read_le32(&m->r));
        break;
    case OP_BINGET:
        get(m, reader_u8(&m->r));
        break;
    case OP_LONG_BINGET:
        get(m, read_le32(&m->r));
        break;
    case OP_STOP:
        stop(m);
        break;
    default:
        fail(m, "has the instruction 0x%02x, which makes no plain value", instruction);
        break;
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

int pickle_read(struct pickle *ret, const void *bytes, size_t len, struct err *e)
{
    struct machine m = {.r = reader_make(bytes, len), .e = e};

    if (len > PICKLE_BYTES_MAX)
        fail(&m, "is of more than %u bytes", PICKLE_BYTES_MAX);
    while (m.failed == 0 && !m.is_done) {
        uint8_t instruction = reader_u8(&m.r);

        if (!m.r.failed)
            carry_out(&m, instruction);
        if (m.r.failed)
            fail(&m, "is cut off");
    }
    if (m.failed == 0) {
        m.p.root = m.stack.items[0];
        *ret = m.p;
    } else {
        pickle_deinit(&m.p);
    }
    free(m.stack.items);
    free(m.memo.items);
    return m.failed;
}

void pickle_deinit(struct pickle *p)
{
    free(p->values);
    free(p->cells);
    *p = (struct pickle){.n_values = 0};
}

const struct pickle_value *pickle_root(const struct pickle *p)
{
    return &p->values[p->root];
}

uint32_t pickle_begin(const struct pickle_value *list)
{
    return list && (list->kind == PICKLE_LIST || list->kind == PICKLE_DICT) ? list->first : 0;
}

const struct pickle_value *pickle_next(const struct pickle *p, uint32_t *at)
{
    const struct pickle_cell *cell = *at > 0 ? &p->cells[*at - 1] : NULL;

    *at = cell ? cell->next : 0;
    return cell ? &p->values[cell->value] : NULL;
}

const struct pickle_value *pickle_find(
    const struct pickle *p, const struct pickle_value *dict, const char *name)
{
    uint32_t at = dict && dict->kind == PICKLE_DICT ? dict->first : 0;

    for (unsigned i = 0; i < PICKLE_KEYS_MAX && at != 0; i++) {
        const struct pickle_value *word = pickle_next(p, &at);
        const struct pickle_value *value = pickle_next(p, &at);

        if (value && word->kind == PICKLE_TEXT && word->len == strlen(name) &&
            memcmp(name, word->text, word->len) == 0)
            return value;
    }
    return NULL;
}
