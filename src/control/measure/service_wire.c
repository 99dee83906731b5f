/* service_wire.c - see service_wire.h. */
#include "measure/service_wire.h"

#include <string.h>

#include "base/bytes.h"
#include "base/str.h"

/* ---- writing -------------------------------------------------------------------------------- */

static void add_u8(struct str *out, uint8_t v)
{
    str_add_bytes(out, (const char *)&v, 1);
}

static void add_u32(struct str *out, uint32_t v)
{
    struct le32 wire = le32_make(v);

    str_add_bytes(out, (const char *)wire.b, sizeof(wire.b));
}

static void add_address(struct str *out, const struct ip_addr *a)
{
    str_add_bytes(out, (const char *)a->b, sizeof(a->b));
}

/* No text is longer than 255 bytes, which is the most that a length of one byte can express. */
static void add_text(struct str *out, const char *text)
{
    add_u8(out, (uint8_t)strlen(text));
    str_add(out, text);
}

void service_wire_encode(struct str *out, const struct service_wire *m)
{
    size_t start = out->len;
    struct le32 len;

    add_u32(out, 0);
    add_u8(out, (uint8_t)m->type);
    switch (m->type) {
    case SERVICE_WIRE_CONFIG:
        add_text(out, m->interface);
        add_text(out, m->socket_path);
        add_u8(out, (uint8_t)m->port);
        add_u8(out, (uint8_t)(m->port >> 8));
        break;
    case SERVICE_WIRE_LIST:
        add_address(out, &m->own);
        add_u32(out, m->n);
        break;
    case SERVICE_WIRE_MEMBER:
        add_address(out, &m->member.address);
        add_address(out, &m->member.underlay);
        add_text(out, m->member.path);
        add_text(out, m->member.name);
        add_text(out, m->member.hostname);
        add_u8(out, m->member.is_hub);
        add_u8(out, m->member.has_key);
        if (m->member.has_key)
            str_add_bytes(out, (const char *)m->member.key.b, sizeof(m->member.key.b));
        break;
    case SERVICE_WIRE_LOOK:
    case SERVICE_WIRE_NONE:
    case SERVICE_WIRE_N:
        break;
    }
    if (out->failed)
        return;
    len = le32_make((uint32_t)(out->len - start - SERVICE_WIRE_HEAD));
    memcpy(out->text + start, len.b, sizeof(len.b));
}

/* ---- reading -------------------------------------------------------------------------------- */

static uint32_t read_u32(struct reader *r)
{
    struct le32 v;

    reader_copy(r, &v, sizeof(v));
    return le32_get(v);
}

static struct ip_addr read_address(struct reader *r)
{
    struct ip_addr a;

    reader_copy(r, a.b, sizeof(a.b));
    return a;
}

/* @ret has to be filled with zeroes before, so that the text is terminated. */
static void read_text(struct reader *r, char *ret, size_t cap)
{
    size_t len = reader_u8(r);

    if (len >= cap)
        r->failed = true;
    else
        reader_copy(r, ret, len);
    if (!r->failed && strlen(ret) != len)
        r->failed = true;
}

static void read_flag(struct reader *r, bool *ret)
{
    uint8_t flag = reader_u8(r);

    r->failed |= flag > 1;
    *ret = flag == 1;
}

static void read_config(struct reader *r, struct service_wire *m)
{
    read_text(r, m->interface, sizeof(m->interface));
    read_text(r, m->socket_path, sizeof(m->socket_path));
    m->port = reader_u8(r);
    m->port = (uint16_t)(m->port | reader_u8(r) << 8);
    /* The name of the interface becomes part of file names. */
    if (strchr(m->interface, '/') || m->interface[0] == '.' || m->port == 0)
        r->failed = true;
}

static void read_fields(struct reader *r, struct service_wire *m)
{
    switch (m->type) {
    case SERVICE_WIRE_CONFIG:
        read_config(r, m);
        break;
    case SERVICE_WIRE_LIST:
        m->own = read_address(r);
        m->n = read_u32(r);
        r->failed |= m->n > SERVICE_WIRE_MEMBERS_MAX;
        break;
    case SERVICE_WIRE_MEMBER:
        m->member.address = read_address(r);
        m->member.underlay = read_address(r);
        read_text(r, m->member.path, sizeof(m->member.path));
        read_text(r, m->member.name, sizeof(m->member.name));
        read_text(r, m->member.hostname, sizeof(m->member.hostname));
        read_flag(r, &m->member.is_hub);
        read_flag(r, &m->member.has_key);
        if (m->member.has_key)
            reader_copy(r, m->member.key.b, sizeof(m->member.key.b));
        break;
    case SERVICE_WIRE_LOOK:
        break;
    case SERVICE_WIRE_NONE:
    case SERVICE_WIRE_N:
        r->failed = true;
        break;
    }
}

int service_wire_decode(struct service_wire *ret, const void *p, size_t len, size_t *ret_used)
{
    struct service_wire m = {.type = SERVICE_WIRE_NONE};
    struct reader r = reader_make(p, len);
    size_t size = read_u32(&r);
    uint8_t type;

    if (r.failed)
        return SERVICE_WIRE_E_SHORT;
    if (size < 1 || size > SERVICE_WIRE_MAX)
        return SERVICE_WIRE_E_BAD;
    if (size > reader_left(&r))
        return SERVICE_WIRE_E_SHORT;
    r = reader_make(r.p, size);
    type = reader_u8(&r);
    if (type >= SERVICE_WIRE_N)
        return SERVICE_WIRE_E_BAD;
    m.type = type;
    read_fields(&r, &m);
    if (r.failed || reader_left(&r) > 0)
        return SERVICE_WIRE_E_BAD;
    *ret = m;
    *ret_used = SERVICE_WIRE_HEAD + size;
    return 0;
}
