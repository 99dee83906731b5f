/* rdzv_wire.c - see rdzv_wire.h. */
#include "rendezvous/shared/rdzv_wire.h"

#include <string.h>

#include "base/bytes.h"

/* The length in front of a message. */
#define LENGTH_SIZE 4

/** A field: where it is in struct rdzv_wire, and its length there and on the wire, bytes. */
struct field {
    char letter;
    uint8_t size;
    size_t off;
};

#define FIELD(letter, name)                                                                        \
    {                                                                                              \
        letter, sizeof(((struct rdzv_wire *)NULL)->name), offsetof(struct rdzv_wire, name)         \
    }

/* Numbers are copied as they are: bytes.h asserts that this machine is little-endian. */
static const struct field fields[] = {
    FIELD('j', job),
    FIELD('r', run),
    FIELD('k', kind),
    FIELD('h', hash),
    FIELD('p', piece),
    FIELD('n', n_pieces),
    FIELD('m', has_more),
    FIELD('P', port),
    FIELD('E', etcd_port),
    FIELD('q', seq),
    FIELD('e', error),
    FIELD('a', address),
    FIELD('A', address6),
    FIELD('c', n_connections),
    FIELD('M', n_members),
    FIELD('t', quiet_ms),
    FIELD('K', n_keys),
    FIELD('B', n_bytes),
    FIELD('R', n_refused),
    FIELD('1', n_store_requests),
    FIELD('2', n_etcd_requests),
    FIELD('3', n_hung_up),
    FIELD('4', n_accepts_deferred),
};

/* The fields of each type of message, in order; 'd' is the data, up to the end of the message. */
static const char *const layouts[RDZV_WIRE_N] = {
    [RDZV_WIRE_NONE] = "",
    [RDZV_WIRE_NETWORK] = "aAd",
    [RDZV_WIRE_JOB] = "jrPEd",
    [RDZV_WIRE_MEMBER] = "a",
    [RDZV_WIRE_NO_MEMBER] = "a",
    [RDZV_WIRE_LOAD] = "jrkhmd",
    [RDZV_WIRE_LISTENER] = "j",
    [RDZV_WIRE_CLEAR] = "jr",
    [RDZV_WIRE_FORGET] = "j",
    [RDZV_WIRE_SAVED] = "qe",
    [RDZV_WIRE_END] = "",
    [RDZV_WIRE_PUT] = "jrkhpnd",
    [RDZV_WIRE_DROP] = "jrkh",
    [RDZV_WIRE_SYNC] = "q",
    [RDZV_WIRE_FACTS] = "jrcMatKBRd",
    [RDZV_WIRE_COUNTS] = "c1234",
    [RDZV_WIRE_DAMAGED] = "jrkhd",
};

static const struct field *find_field(char letter)
{
    const struct field *f = fields;

    while (f->letter != letter)
        f++;
    return f;
}

void rdzv_wire_encode(struct str *out, const struct rdzv_wire *m)
{
    size_t start = out->len;
    struct le32 len = le32_make(0);
    uint8_t type = (uint8_t)m->type;

    str_add_bytes(out, (const char *)&len, sizeof(len));
    str_add_bytes(out, (const char *)&type, 1);
    for (const char *letter = layouts[m->type]; *letter; letter++) {
        const struct field *f;

        if (*letter == 'd') {
            str_add_bytes(out, (const char *)m->data, m->len);
            break;
        }
        f = find_field(*letter);
        str_add_bytes(out, (const char *)m + f->off, f->size);
    }
    if (out->failed)
        return;
    len = le32_make((uint32_t)(out->len - start - LENGTH_SIZE));
    memcpy(out->text + start, &len, sizeof(len));
}

/* Do all fields of the message hold what they may? */
static bool is_sound(const struct rdzv_wire *m)
{
    const char *layout = layouts[m->type];

    if (strchr(layout, 'k') && m->kind != RDZV_KEY_ENTRY && m->kind != RDZV_KEY_NODE)
        return false;
    if (strchr(layout, 'n') &&
        (m->n_pieces < 1 || m->n_pieces > RDZV_CHUNKS_MAX || m->piece >= m->n_pieces))
        return false;
    if (strchr(layout, 'm') && m->has_more > 1)
        return false;
    return !strchr(layout, 'd') || m->len <= RDZV_CHUNK;
}

int rdzv_wire_decode(struct rdzv_wire *ret, const void *p, size_t len, size_t *ret_used)
{
    struct rdzv_wire m = {.type = RDZV_WIRE_NONE};
    struct reader r = reader_make(p, len);
    struct le32 length;
    size_t size;
    uint8_t type;

    reader_copy(&r, &length, sizeof(length));
    size = le32_get(length);
    if (r.failed)
        return RDZV_WIRE_E_SHORT;
    if (size < 1 || size > RDZV_WIRE_MAX)
        return RDZV_WIRE_E_BAD;
    if (size > reader_left(&r))
        return RDZV_WIRE_E_SHORT;
    r = reader_make(r.p, size);
    type = reader_u8(&r);
    if (type == RDZV_WIRE_NONE || type >= RDZV_WIRE_N)
        return RDZV_WIRE_E_BAD;
    m.type = type;
    for (const char *letter = layouts[type]; *letter; letter++) {
        if (*letter == 'd') {
            m.len = reader_left(&r);
            m.data = reader_take(&r, m.len);
        } else {
            const struct field *f = find_field(*letter);

            reader_copy(&r, (char *)&m + f->off, f->size);
        }
    }
    if (r.failed || reader_left(&r) > 0 || !is_sound(&m))
        return RDZV_WIRE_E_BAD;
    *ret = m;
    *ret_used = LENGTH_SIZE + size;
    return 0;
}
