/* ip.c - see ip.h. */
#include "wire/ip.h"

#include "base/bytes.h"

/* RFC 791 section 3.1. */
struct v4_header {
    uint8_t version_ihl;   /*  0 */
    uint8_t tos;           /*  1 */
    struct be16 total_len; /*  2 */
    struct be16 id;        /*  4 */
    struct be16 fragment;  /*  6: flags and offset */
    uint8_t ttl;           /*  8 */
    uint8_t proto;         /*  9 */
    struct be16 checksum;  /* 10 */
    uint8_t src[4];        /* 12 */
    uint8_t dst[4];        /* 16 */
};

/* RFC 8200 section 3. */
struct v6_header {
    struct be32 version_class_flow; /*  0 */
    struct be16 payload_len;        /*  4 */
    uint8_t next_header;            /*  6 */
    uint8_t hop_limit;              /*  7 */
    uint8_t src[16];                /*  8 */
    uint8_t dst[16];                /* 24 */
};

_Static_assert(sizeof(struct v4_header) == IP_V4_HEADER_MIN, "RFC 791");
_Static_assert(sizeof(struct v6_header) == IP_V6_HEADER, "RFC 8200");

#define V4_FRAGMENT_MASK 0x3fff /* "more fragments" and the offset */
#define V6_NEXT_FRAGMENT 44
#define V6_CLASS_SHIFT   20

static int parse_v4(const void *p, size_t len, struct ip_info *ret)
{
    struct v4_header h;
    size_t header_len;
    size_t total;

    if (len < sizeof(h))
        return IP_E_LENGTH;
    memcpy(&h, p, sizeof(h));
    header_len = (size_t)(h.version_ihl & 15) * 4;
    total = be16_get(h.total_len);
    if (header_len < sizeof(h) || total < header_len || total > len)
        return IP_E_LENGTH;
    *ret = (struct ip_info){
        .src = ip_addr_v4(h.src),
        .dst = ip_addr_v4(h.dst),
        .version = 4,
        .tos = h.tos,
        .proto = h.proto,
        .is_fragment = (be16_get(h.fragment) & V4_FRAGMENT_MASK) != 0,
        .l4_off = (uint16_t)header_len,
        .len = (uint32_t)total,
    };
    return 0;
}

static int parse_v6(const void *p, size_t len, struct ip_info *ret)
{
    struct v6_header h;
    size_t total;

    if (len < sizeof(h))
        return IP_E_LENGTH;
    memcpy(&h, p, sizeof(h));
    total = sizeof(h) + be16_get(h.payload_len);
    if (total > len)
        return IP_E_LENGTH;
    *ret = (struct ip_info){
        .src = ip_addr_v6(h.src),
        .dst = ip_addr_v6(h.dst),
        .version = 6,
        .tos = (uint8_t)(be32_get(h.version_class_flow) >> V6_CLASS_SHIFT),
        .proto = h.next_header,
        .is_fragment = h.next_header == V6_NEXT_FRAGMENT,
        .l4_off = sizeof(h),
        .len = (uint32_t)total,
    };
    return 0;
}

int ip_parse(const void *p, size_t len, struct ip_info *ret)
{
    const uint8_t *first = p;

    if (len == 0)
        return IP_E_NOT_IP;
    switch (*first >> 4) {
    case 4:
        return parse_v4(p, len, ret);
    case 6:
        return parse_v6(p, len, ret);
    }
    return IP_E_NOT_IP;
}

uint8_t ip_ecn_encapsulate(uint8_t inner_tos)
{
    uint8_t ecn = inner_tos & IP_ECN_MASK;

    return ecn == IP_ECN_CE ? IP_ECN_ECT0 : ecn;
}

static void v4_set_ecn(void *p, uint8_t ecn)
{
    struct v4_header h;
    uint8_t tos;
    uint32_t sum;

    memcpy(&h, p, sizeof(h));
    tos = (uint8_t)((h.tos & ~IP_ECN_MASK) | ecn);
    /* RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). */
    sum = (uint16_t)~be16_get(h.checksum);
    sum += (uint16_t) ~(h.version_ihl << 8 | h.tos);
    sum += (uint16_t)(h.version_ihl << 8 | tos);
    h.checksum = be16_make((uint16_t)~ip_sum_fold(sum));
    h.tos = tos;
    memcpy(p, &h, sizeof(h));
}

static void v6_set_ecn(void *p, uint8_t ecn)
{
    struct be32 word;

    memcpy(&word, p, sizeof(word));
    word = be32_make((be32_get(word) & ~((uint32_t)IP_ECN_MASK << V6_CLASS_SHIFT)) |
                     (uint32_t)ecn << V6_CLASS_SHIFT);
    memcpy(p, &word, sizeof(word));
}

void ip_ecn_decapsulate(void *p, uint8_t outer_tos)
{
    const uint8_t *b = p;
    bool is_v4 = b[0] >> 4 == 4;
    uint8_t inner = (is_v4 ? b[1] : b[1] >> 4) & IP_ECN_MASK;
    uint8_t outer = outer_tos & IP_ECN_MASK;
    uint8_t ecn = inner;

    /* RFC 6040 figure 4, but for the drop of Not-ECT under CE: the kernel lets it pass. */
    if (inner == IP_ECN_NOT_ECT)
        return;
    if (outer == IP_ECN_CE)
        ecn = IP_ECN_CE;
    else if (outer == IP_ECN_ECT1 && inner == IP_ECN_ECT0)
        ecn = IP_ECN_ECT1;
    if (ecn == inner)
        return;
    if (is_v4)
        v4_set_ecn(p, ecn);
    else
        v6_set_ecn(p, ecn);
}

/** Four 64-bit words, which the compiler keeps in one vector register, or two. */
typedef uint64_t u64x4 __attribute__((vector_size(32)));

/*
 * Words as they lie in memory. One's complement sums may be taken in wider words
 * and in either byte order (RFC 1071 section 2): lanes of 32 bits each gather
 * their carries in the upper halves, so a datagram cannot overflow them.
 */
static inline __attribute__((always_inline)) uint64_t sum_words(const uint8_t *b, size_t len)
{
    const u64x4 mask = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    u64x4 low = {0}, high = {0};
    uint64_t sum = 0;

    for (; len >= sizeof(u64x4); len -= sizeof(u64x4), b += sizeof(u64x4)) {
        u64x4 x;

        memcpy(&x, b, sizeof(x));
        low += x & mask;
        high += x >> 32;
    }
    for (; len >= 4; len -= 4, b += 4) {
        uint32_t word;

        memcpy(&word, b, sizeof(word));
        sum += word;
    }
    if (len > 0) {
        uint32_t word = 0;

        memcpy(&word, b, len);
        sum += word;
    }
    low += high;
    return sum + low[0] + low[1] + low[2] + low[3];
}

#ifdef __x86_64__
/* The same, in instructions that not every CPU has. */
__attribute__((target("avx2"))) static uint64_t sum_avx2(const uint8_t *b, size_t len)
{
    return sum_words(b, len);
}
#endif

static uint64_t sum_native(const uint8_t *b, size_t len)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return sum_avx2(b, len);
#endif
    return sum_words(b, len);
}

uint64_t ip_sum_add(uint64_t sum, const void *p, size_t len)
{
    return sum + __builtin_bswap16(ip_sum_fold(sum_native(p, len)));
}

uint16_t ip_sum_fold(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

uint64_t ip_sum_pseudo(
    const struct ip_addr *src, const struct ip_addr *dst, uint8_t proto, uint32_t l4_len)
{
    size_t skip = ip_addr_is_v4(src) ? 12 : 0;
    uint64_t sum = ip_sum_add(0, src->b + skip, sizeof(src->b) - skip);

    /* Both families add protocol and length, in fields of different width (RFC 9293, RFC 8200). */
    return ip_sum_add(sum, dst->b + skip, sizeof(dst->b) - skip) + proto + l4_len;
}

void ip_v4_set_checksum(void *p, size_t header_len)
{
    static const struct be16 zero;
    struct be16 checksum;
    uint8_t *field = (uint8_t *)p + offsetof(struct v4_header, checksum);

    memcpy(field, &zero, sizeof(zero));
    checksum = be16_make((uint16_t)~ip_sum_fold(ip_sum_add(0, p, header_len)));
    memcpy(field, &checksum, sizeof(checksum));
}

/* ---- echo ---- */

#define V4_REQUEST 8
#define V4_ANSWER  0
#define V6_REQUEST 128
#define V6_ANSWER  129

/* As on the wire. */
struct echo_wire {
    uint8_t type;         /* 0 */
    uint8_t code;         /* 1 */
    struct be16 checksum; /* 2 */
    struct be16 id;       /* 4 */
    struct be16 seq;      /* 6 */
    struct be32 index;    /* 8; from here on it is ours */
    uint8_t cookie[8];    /* 12 */
};

_Static_assert(sizeof(struct echo_wire) == ECHO_LEN, "no padding");

void echo_encode(const struct echo *e, bool v4, uint8_t out[static ECHO_LEN])
{
    struct echo_wire w = {
        .type = v4 ? V4_REQUEST : V6_REQUEST,
        .id = be16_make(e->id),
        .seq = be16_make(e->seq),
        .index = be32_make(e->index),
    };

    memcpy(w.cookie, &e->cookie, sizeof(w.cookie));
    if (v4)
        w.checksum = be16_make((uint16_t)~ip_sum_fold(ip_sum_add(0, &w, sizeof(w))));
    memcpy(out, &w, sizeof(w));
}

bool echo_decode(struct echo *ret, bool v4, const uint8_t *p, size_t len)
{
    struct echo_wire w;

    if (len < sizeof(w))
        return false;
    memcpy(&w, p, sizeof(w));
    if (w.type != (v4 ? V4_ANSWER : V6_ANSWER) || w.code != 0)
        return false;
    if (v4 && ip_sum_fold(ip_sum_add(0, &w, sizeof(w))) != 0xffff)
        return false;
    *ret = (struct echo){.id = be16_get(w.id), .seq = be16_get(w.seq), .index = be32_get(w.index)};
    memcpy(&ret->cookie, w.cookie, sizeof(ret->cookie));
    return true;
}
