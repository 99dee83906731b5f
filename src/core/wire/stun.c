/* stun.c - see stun.h. */
#include "stun.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

#define MAGIC_COOKIE       0x2112a442u /* RFC 8489 section 5 */
#define TYPE_REQUEST       0x0001      /* Binding request */
#define TYPE_SUCCESS       0x0101      /* Binding success response */
#define TYPE_ERROR         0x0111      /* Binding error response */
#define FINGERPRINT_MASK   0x5354554eu /* section 14.7 */
#define FINGERPRINT_SIZE   8           /* attribute header and value */
#define FAMILY_V4          1           /* section 14.1 */
#define FAMILY_V6          2
#define OPTIONAL_ATTRIBUTE 0x8000 /* set: may be ignored (section 14) */

/* The attributes that we act upon, or need not understand to be right (section 18.3.1). */
enum {
    ATTR_MAPPED_ADDRESS = 0x0001,
    ATTR_USERNAME = 0x0006,
    ATTR_MESSAGE_INTEGRITY = 0x0008,
    ATTR_ERROR_CODE = 0x0009,
    ATTR_UNKNOWN_ATTRIBUTES = 0x000a,
    ATTR_REALM = 0x0014,
    ATTR_NONCE = 0x0015,
    ATTR_MESSAGE_INTEGRITY_SHA256 = 0x001c,
    ATTR_PASSWORD_ALGORITHM = 0x001d,
    ATTR_USERHASH = 0x001e,
    ATTR_XOR_MAPPED_ADDRESS = 0x0020,
    ATTR_RESPONSE_PORT = 0x0027, /* RFC 5780 section 7.5 */
    ATTR_SOFTWARE = 0x8022,
    ATTR_FINGERPRINT = 0x8028,
};

/* CRC-32 of ISO 3309, as in Ethernet, four bits a step. */
static uint32_t crc32_iso(const uint8_t *p, size_t len)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190,
        0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* Reads the header; leaves @r at the first attribute. The length must be that of the datagram. */
static int decode_header(
    struct reader *r, uint16_t want_type, struct stun_transaction *ret_id, size_t len)
{
    uint16_t type = reader_be16(r);
    uint16_t attrs_len = reader_be16(r);
    uint32_t cookie = reader_be32(r);

    reader_copy(r, ret_id->b, sizeof(ret_id->b));
    if (r->failed || type != want_type || cookie != MAGIC_COOKIE)
        return STUN_E_OTHER;
    if (attrs_len % 4 != 0 || attrs_len != len - STUN_HEADER_SIZE)
        return STUN_E_MALFORMED;
    return 0;
}

/* The next attribute; false where it is cut off, or is a fingerprint of something else. The value
 * is padded to a multiple of four with bytes of no meaning. */
static bool take_attribute(
    struct reader *r, const uint8_t *msg, size_t len, uint16_t *ret_type, struct reader *ret_value)
{
    uint16_t type = reader_be16(r);
    uint16_t value_len = reader_be16(r);
    const uint8_t *p = reader_take(r, ((size_t)value_len + 3) & ~(size_t)3);
    struct reader value;

    if (!p)
        return false;
    value = reader_make(p, value_len);
    *ret_type = type;
    *ret_value = value;
    if (type != ATTR_FINGERPRINT)
        return true;
    /* Section 14.7: it is the last attribute, and covers all before itself. */
    return reader_left(r) == 0 && value_len == sizeof(uint32_t) &&
           reader_be32(&value) == (crc32_iso(msg, len - FINGERPRINT_SIZE) ^ FINGERPRINT_MASK);
}

static bool is_understood(uint16_t type)
{
    switch (type) {
    case ATTR_MAPPED_ADDRESS:
    case ATTR_USERNAME:
    case ATTR_MESSAGE_INTEGRITY:
    case ATTR_ERROR_CODE:
    case ATTR_UNKNOWN_ATTRIBUTES:
    case ATTR_REALM:
    case ATTR_NONCE:
    case ATTR_MESSAGE_INTEGRITY_SHA256:
    case ATTR_PASSWORD_ALGORITHM:
    case ATTR_USERHASH:
    case ATTR_XOR_MAPPED_ADDRESS:
    case ATTR_RESPONSE_PORT:
        return true;
    }
    return (type & OPTIONAL_ATTRIBUTE) != 0;
}

bool stun_is_request(const uint8_t *msg, size_t len)
{
    struct reader r = reader_make(msg, len);
    uint16_t type = reader_be16(&r);

    (void)reader_be16(&r);
    return reader_be32(&r) == MAGIC_COOKIE && type == TYPE_REQUEST && len >= STUN_HEADER_SIZE;
}

bool stun_is_answer(const uint8_t *msg, size_t len)
{
    struct reader r = reader_make(msg, len);
    uint16_t type = reader_be16(&r);

    (void)reader_be16(&r);
    return reader_be32(&r) == MAGIC_COOKIE && (type == TYPE_SUCCESS || type == TYPE_ERROR) &&
           len >= STUN_HEADER_SIZE;
}

int stun_decode_request(struct stun_request *ret, const uint8_t *msg, size_t len)
{
    struct stun_request req = {.n_unknown = 0};
    struct reader r = reader_make(msg, len);
    bool is_signed = false;
    int e = decode_header(&r, TYPE_REQUEST, &req.id, len);

    if (e != 0)
        return e;
    while (reader_left(&r) > 0) {
        struct reader value;
        uint16_t type;

        if (!take_attribute(&r, msg, len, &type, &value))
            return STUN_E_MALFORMED;
        if (type == ATTR_FINGERPRINT) {
            req.has_fingerprint = true;
        } else if (!is_signed && type == ATTR_RESPONSE_PORT) {
            /* Two bytes, and two more of padding that some count as part of the value. */
            size_t value_len = reader_left(&value);

            req.response_port = reader_be16(&value);
            if ((value_len != 2 && value_len != 4) || req.response_port == 0)
                return STUN_E_MALFORMED;
        } else if (!is_signed && !is_understood(type) && req.n_unknown < STUN_UNKNOWN_MAX) {
            req.unknown[req.n_unknown++] = type;
        }
        /* Sections 14.5 and 14.6: what follows a message integrity is not part of the request. */
        is_signed |= type == ATTR_MESSAGE_INTEGRITY || type == ATTR_MESSAGE_INTEGRITY_SHA256;
    }
    *ret = req;
    return 0;
}

void stun_refuse_port(struct stun_request *req)
{
    if (req->response_port == 0)
        return;
    req->response_port = 0;
    if (req->n_unknown < STUN_UNKNOWN_MAX)
        req->unknown[req->n_unknown++] = ATTR_RESPONSE_PORT;
}

/* What an address and port are hidden under, so that no NAT rewrites them (section 14.2). */
struct address_mask {
    uint8_t b[16]; /* the cookie, then the transaction */
};

static struct address_mask address_mask(const struct stun_transaction *id)
{
    struct address_mask mask;
    struct be32 cookie = be32_make(MAGIC_COOKIE);

    memcpy(mask.b, &cookie, sizeof(cookie));
    memcpy(mask.b + sizeof(cookie), id->b, sizeof(id->b));
    return mask;
}

static void write_mapped_address(
    struct writer *w, const struct endpoint *ep, const struct stun_transaction *id)
{
    struct address_mask mask = address_mask(id);
    bool is_v4 = ip_addr_is_v4(&ep->addr);
    const uint8_t *addr = is_v4 ? ep->addr.b + 12 : ep->addr.b;
    uint8_t addr_len = is_v4 ? 4 : 16;

    writer_be16(w, ATTR_XOR_MAPPED_ADDRESS);
    writer_be16(w, (uint16_t)(4 + addr_len));
    writer_u8(w, 0);
    writer_u8(w, is_v4 ? FAMILY_V4 : FAMILY_V6);
    writer_be16(w, (uint16_t)(ep->port ^ MAGIC_COOKIE >> 16));
    for (uint8_t i = 0; i < addr_len; i++)
        writer_u8(w, addr[i] ^ mask.b[i]);
}

/* No reason phrase: it is for people, and would make the answer longer than the question. */
static void write_unknown_attributes(struct writer *w, const struct stun_request *req)
{
    writer_be16(w, ATTR_ERROR_CODE);
    writer_be16(w, 4);
    writer_be16(w, 0);
    writer_u8(w, STUN_UNKNOWN_ATTRIBUTE / 100);
    writer_u8(w, STUN_UNKNOWN_ATTRIBUTE % 100);
    writer_be16(w, ATTR_UNKNOWN_ATTRIBUTES);
    writer_be16(w, (uint16_t)(2 * req->n_unknown));
    for (unsigned i = 0; i < req->n_unknown; i++)
        writer_be16(w, req->unknown[i]);
    if (req->n_unknown % 2 != 0)
        writer_be16(w, 0);
}

static void set_length(uint8_t *msg, size_t attrs_len)
{
    struct be16 v = be16_make((uint16_t)attrs_len);

    memcpy(msg + 2, &v, sizeof(v));
}

/* Its length is set when all attributes are written. */
static void write_header(struct writer *w, uint16_t type, const struct stun_transaction *id)
{
    writer_be16(w, type);
    writer_be16(w, 0);
    writer_be32(w, MAGIC_COOKIE);
    writer_put(w, id->b, sizeof(id->b));
}

void stun_encode_request(
    const struct stun_transaction *id, uint16_t port, uint8_t out[static STUN_REQUEST_SIZE])
{
    static const char software[] = "weft                ";
    struct writer w = writer_make(out, STUN_REQUEST_SIZE);
    size_t padding;

    write_header(&w, TYPE_REQUEST, id);
    if (port != 0) {
        writer_be16(&w, ATTR_RESPONSE_PORT);
        writer_be16(&w, 4);
        writer_be16(&w, port);
        writer_be16(&w, 0);
    }
    padding = STUN_REQUEST_SIZE - writer_len(&w) - 4;
    writer_be16(&w, ATTR_SOFTWARE);
    writer_be16(&w, (uint16_t)padding);
    writer_put(&w, software, padding);
    set_length(out, writer_len(&w) - STUN_HEADER_SIZE);
    assert(!w.failed && writer_len(&w) == STUN_REQUEST_SIZE);
}

size_t stun_encode_answer(const struct stun_request *req, const struct endpoint *mapped,
    uint8_t out[static STUN_ANSWER_MAX])
{
    struct writer w = writer_make(out, STUN_ANSWER_MAX);

    write_header(&w, req->n_unknown > 0 ? TYPE_ERROR : TYPE_SUCCESS, &req->id);
    if (req->n_unknown > 0)
        write_unknown_attributes(&w, req);
    else
        write_mapped_address(&w, mapped, &req->id);
    if (req->has_fingerprint) {
        /* The length that the sum covers already counts the fingerprint itself. */
        set_length(out, writer_len(&w) - STUN_HEADER_SIZE + FINGERPRINT_SIZE);
        writer_be16(&w, ATTR_FINGERPRINT);
        writer_be16(&w, sizeof(uint32_t));
        writer_be32(&w, crc32_iso(out, writer_len(&w) - 4) ^ FINGERPRINT_MASK);
    }
    set_length(out, writer_len(&w) - STUN_HEADER_SIZE);
    assert(!w.failed);
    return writer_len(&w);
}

static bool read_mapped_address(
    struct reader value, const struct stun_transaction *id, struct endpoint *ret)
{
    struct address_mask mask = address_mask(id);
    struct endpoint ep = {.port = 0};
    uint8_t addr[16] = {0};
    uint8_t family;
    size_t addr_len;

    (void)reader_u8(&value);
    family = reader_u8(&value);
    ep.port = (uint16_t)(reader_be16(&value) ^ MAGIC_COOKIE >> 16);
    addr_len = family == FAMILY_V4 ? 4 : 16;
    reader_copy(&value, addr, addr_len);
    if (value.failed || reader_left(&value) != 0 || (family != FAMILY_V4 && family != FAMILY_V6))
        return false;
    for (size_t i = 0; i < addr_len; i++)
        addr[i] ^= mask.b[i];
    ep.addr = family == FAMILY_V4 ? ip_addr_v4(addr) : ip_addr_v6(addr);
    *ret = ep;
    return true;
}

int stun_decode_response(struct stun_response *ret, const uint8_t *msg, size_t len)
{
    struct stun_response resp;
    struct reader r = reader_make(msg, len);
    bool has_mapped = false;
    int e = decode_header(&r, TYPE_SUCCESS, &resp.id, len);

    if (e != 0)
        return e;
    while (reader_left(&r) > 0) {
        struct reader value;
        uint16_t type;

        if (!take_attribute(&r, msg, len, &type, &value))
            return STUN_E_MALFORMED;
        if (type == ATTR_XOR_MAPPED_ADDRESS && !has_mapped) {
            if (!read_mapped_address(value, &resp.id, &resp.mapped))
                return STUN_E_MALFORMED;
            has_mapped = true;
        }
    }
    if (!has_mapped)
        return STUN_E_MALFORMED;
    *ret = resp;
    return 0;
}

int stun_decode_refusal(struct stun_refusal *ret, const uint8_t *msg, size_t len)
{
    struct stun_refusal refusal = {.code = 0};
    struct reader r = reader_make(msg, len);
    int e = decode_header(&r, TYPE_ERROR, &refusal.id, len);

    if (e != 0)
        return e;
    while (reader_left(&r) > 0) {
        struct reader value;
        uint16_t type;

        if (!take_attribute(&r, msg, len, &type, &value))
            return STUN_E_MALFORMED;
        /* The class is the hundreds, in three bits; the number the rest (section 14.8). */
        if (type == ATTR_ERROR_CODE) {
            uint32_t bits = reader_be32(&value);
            unsigned class = bits >> 8 & 7;
            unsigned number = bits & UINT8_MAX;

            if (value.failed || class < 3 || class > 6 || number > 99)
                return STUN_E_MALFORMED;
            refusal.code = (uint16_t)(class * 100 + number);
        }
    }
    if (refusal.code == 0)
        return STUN_E_MALFORMED;
    *ret = refusal;
    return 0;
}
