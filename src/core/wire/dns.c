/* dns.c - see dns.h. */
#include "wire/dns.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Flags of the header's second word. */
#define FLAG_RESPONSE            0x8000
#define FLAG_OPCODE              0x7800
#define FLAG_AUTHORITATIVE       0x0400
#define FLAG_TRUNCATED           0x0200
#define FLAG_RECURSION_DESIRED   0x0100
#define FLAG_RECURSION_AVAILABLE 0x0080

#define CLASS_IN 1
#define TYPE_OPT 41

#define LABEL_MAX 63
/* A pointer to the question's name, which begins right behind the header. */
#define POINTER_TO_QUESTION (0xc000 | DNS_HEADER_LEN)

/* How long records are kept: names change when nodes come and go. */
#define TTL_S 5

/* Longest answer over UDP that is offered, so that nothing on the way is cut into fragments. */
#define EDNS_LEN 1232

/* ---- a query -------------------------------------------------------------------------------- */

static char letter(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c > ' ' && c < 0x7f && c != '.' ? (char)c : '?';
}

/* A name without pointers, as a question has it (RFC 1035 section 4.1.2). */
static bool read_name(struct reader *r, char out[static DNS_NAME_MAX])
{
    size_t n = 0;

    for (;;) {
        uint8_t len = reader_u8(r);
        const uint8_t *label;

        if (r->failed || len > LABEL_MAX)
            return false;
        if (len == 0)
            break;
        label = reader_take(r, len);
        /* 255 bytes on the wire are 253 characters (RFC 1035 section 2.3.4). */
        if (!label || n + len + (n > 0) > DNS_NAME_MAX - 3)
            return false;
        if (n > 0)
            out[n++] = '.';
        for (size_t i = 0; i < len; i++)
            out[n++] = letter(label[i]);
    }
    out[n] = '\0';
    return true;
}

int dns_decode_query(struct dns_query *ret, const uint8_t *p, size_t len)
{
    struct reader r = reader_make(p, len);
    uint16_t id = reader_be16(&r);
    uint16_t flags = reader_be16(&r);
    uint16_t n_questions = reader_be16(&r);
    uint16_t n_answers = reader_be16(&r);
    uint16_t n_authorities = reader_be16(&r);
    uint16_t n_more = reader_be16(&r);
    struct dns_query q = {.id = id,
        .opcode = flags & FLAG_OPCODE,
        .wants_recursion = (flags & FLAG_RECURSION_DESIRED) != 0,
        .udp_len = DNS_UDP_LEN};

    if (r.failed || (flags & FLAG_RESPONSE))
        return DNS_E_OTHER;
    *ret = q;
    if (q.opcode != 0)
        return DNS_E_UNSUPPORTED;
    if (n_questions != 1 || n_answers != 0 || n_authorities != 0 || !read_name(&r, q.name))
        return DNS_E_MALFORMED;
    q.type = reader_be16(&r);
    q.class = reader_be16(&r);
    if (r.failed)
        return DNS_E_MALFORMED;
    q.question_len = (size_t)(r.p - p) - DNS_HEADER_LEN;
    /* The pseudo record of EDNS, when it is the first that follows the question. */
    if (n_more > 0) {
        uint8_t root = reader_u8(&r);
        uint16_t type = reader_be16(&r);
        uint16_t udp_len = reader_be16(&r);

        q.has_edns = !r.failed && root == 0 && type == TYPE_OPT;
        if (q.has_edns && udp_len > DNS_UDP_LEN)
            q.udp_len = udp_len < EDNS_LEN ? udp_len : EDNS_LEN;
    }
    *ret = q;
    return 0;
}

/* ---- an answer ------------------------------------------------------------------------------ */

static void write_name(struct writer *w, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, ".");

        if (n == 0 || n > LABEL_MAX) {
            w->failed = true;
            return;
        }
        writer_u8(w, (uint8_t)n);
        writer_put(w, name, n);
        name += n + (name[n] == '.');
    }
    writer_u8(w, 0);
}

/* A record of the question's name, up to its data. */
static void begin_record(struct writer *w, uint16_t type)
{
    writer_be16(w, POINTER_TO_QUESTION);
    writer_be16(w, type);
    writer_be16(w, CLASS_IN);
    writer_be32(w, TTL_S);
}

/* Data with names in it: the length, two bytes in front of it, is known when it is written. */
static void end_data(struct writer *w, uint8_t *len)
{
    if (!w->failed)
        be16_store(len, (uint16_t)(w->p - (len + 2)));
}

/* How long it is remembered that there is nothing (RFC 2308 section 3). */
static void write_soa(struct writer *w, const char *zone)
{
    uint8_t *len;

    write_name(w, zone);
    writer_be16(w, DNS_TYPE_SOA);
    writer_be16(w, CLASS_IN);
    writer_be32(w, TTL_S);
    len = writer_reserve(w, 2);
    write_name(w, zone);
    write_name(w, zone);
    writer_be32(w, 1);     /* serial */
    writer_be32(w, 3600);  /* refresh, s */
    writer_be32(w, 600);   /* retry, s */
    writer_be32(w, 86400); /* expire, s */
    writer_be32(w, TTL_S); /* of answers without a record */
    end_data(w, len);
}

size_t dns_encode_answer(const struct dns_query *q, const uint8_t *query,
    const struct dns_answer *a, uint8_t out[static DNS_ANSWER_MAX])
{
    struct writer w = writer_make(out, DNS_ANSWER_MAX);
    size_t n = a->n_addresses < DNS_ADDRESSES_MAX ? a->n_addresses : DNS_ADDRESSES_MAX;

    writer_be16(&w, q->id);
    writer_be16(
        &w, (uint16_t)(FLAG_RESPONSE | q->opcode | (a->is_authoritative ? FLAG_AUTHORITATIVE : 0) |
                       (q->wants_recursion ? FLAG_RECURSION_DESIRED : 0) |
                       FLAG_RECURSION_AVAILABLE | (unsigned)a->rcode));
    writer_be16(&w, q->question_len > 0);
    writer_be16(&w, (uint16_t)(n + (a->target != NULL)));
    writer_be16(&w, a->zone != NULL);
    writer_be16(&w, q->has_edns);
    writer_put(&w, query + DNS_HEADER_LEN, q->question_len);
    for (size_t i = 0; i < n; i++) {
        const struct ip_addr *address = &a->addresses[i];
        uint16_t len = ip_addr_is_v4(address) ? 4 : 16;

        begin_record(&w, len == 4 ? DNS_TYPE_A : DNS_TYPE_AAAA);
        writer_be16(&w, len);
        writer_put(&w, address->b + (sizeof(address->b) - len), len);
    }
    if (a->target) {
        uint8_t *len;

        begin_record(&w, DNS_TYPE_PTR);
        len = writer_reserve(&w, 2);
        write_name(&w, a->target);
        end_data(&w, len);
    }
    if (a->zone)
        write_soa(&w, a->zone);
    if (q->has_edns) {
        writer_u8(&w, 0);
        writer_be16(&w, TYPE_OPT);
        writer_be16(&w, EDNS_LEN);
        writer_be32(&w, 0);
        writer_be16(&w, 0);
    }
    return w.failed ? 0 : writer_len(&w);
}

size_t dns_truncate(uint8_t *p, size_t len, const struct dns_query *q, size_t max)
{
    size_t left = DNS_HEADER_LEN + q->question_len;

    if (len <= max || len < left)
        return len;
    be16_store(p + 2, (uint16_t)(be16_load(p + 2) | FLAG_TRUNCATED));
    memset(p + 6, 0, 6);
    return left;
}

/* ---- names of addresses --------------------------------------------------------------------- */

/* The last byte of the address comes first. */
static bool parse_reverse4(struct ip_addr *ret, const char *name)
{
    char text[IP_ADDR_TEXT_MAX];
    struct ip_addr a = {{0}};
    char back[64];

    /* At most three digits and a dot, four times. */
    (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "i"), name);
    if (text[0] == '\0' || text[strlen(text) - 1] != '.')
        return false;
    text[strlen(text) - 1] = '\0';
    (void)ip_addr_parse(&a, text, NULL);
    (void)snprintf(
        back, sizeof(back), "%u.%u.%u.%u.in-addr.arpa", a.b[12], a.b[13], a.b[14], a.b[15]);
    *ret = ip_addr_v4((const uint8_t[]){a.b[15], a.b[14], a.b[13], a.b[12]});
    /* Nothing else is such a name: no zeroes in front, nothing behind. */
    return strcmp(name, back) == 0;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_reverse6(struct ip_addr *ret, const char *name)
{
    uint8_t v6[16] = {0};

    if (strlen(name) != 64 + strlen("ip6.arpa") || strcmp(name + 64, "ip6.arpa") != 0)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int n = nibble(name[2 * i]);

        if (n < 0 || name[2 * i + 1] != '.')
            return false;
        v6[15 - i / 2] |= (uint8_t)(i % 2 == 0 ? n : n << 4);
    }
    *ret = ip_addr_v6(v6);
    return true;
}

bool dns_parse_reverse(struct ip_addr *ret, const char *name)
{
    return parse_reverse4(ret, name) || parse_reverse6(ret, name);
}
