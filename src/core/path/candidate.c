/* candidate.c - see candidate.h. */
#include "path/candidate.h"

#include <string.h>

#include "base/parse.h"

const char *const candidate_kind_names[] = {
    "none", "host", "given", "mapped", "reflexive", "predicted", "heard"};
_Static_assert(sizeof(candidate_kind_names) / sizeof(*candidate_kind_names) == CANDIDATE_KIND_N,
    "a name each");

enum candidate_kind candidate_kind_parse(const char *text)
{
    size_t k = parse_word(text, candidate_kind_names, CANDIDATE_REFLEXIVE + 1);

    return k <= CANDIDATE_REFLEXIVE ? (enum candidate_kind)k : CANDIDATE_NONE;
}

bool candidate_is_possible(const struct endpoint *ep)
{
    const uint8_t *b = ep->addr.b;
    bool is_loopback6 = true;

    if (ep->port == 0 || ip_addr_is_none(&ep->addr))
        return false;
    if (ip_addr_is_v4(&ep->addr))
        return b[12] != 0 && b[12] != 127 && b[12] < 224;
    for (unsigned i = 0; i < 15; i++)
        is_loopback6 = is_loopback6 && b[i] == 0;
    return b[0] != 0xff && !(is_loopback6 && b[15] == 1) && !ip_addr_is_link_local(&ep->addr);
}

bool candidate_blocks_have(const struct candidate_blocks *blocks, const struct ip_addr *a)
{
    unsigned inside = 0; /* length of the smallest block that has it, and one */
    unsigned outside = 0;

    for (unsigned i = 0; i < blocks->n; i++)
        if (blocks->items[i].len >= inside && ip_prefix_has(&blocks->items[i], a))
            inside = blocks->items[i].len + 1u;
    for (unsigned i = 0; i < blocks->n_outside; i++)
        if (blocks->outside[i].len >= outside && ip_prefix_has(&blocks->outside[i], a))
            outside = blocks->outside[i].len + 1u;
    return inside > 0 && inside >= outside;
}

static bool has_block(const struct ip_prefix *outer, const struct ip_prefix *inner)
{
    return ip_addr_is_v4(&outer->addr) == ip_addr_is_v4(&inner->addr) && outer->len <= inner->len &&
           ip_prefix_has(outer, &inner->addr);
}

static bool are_prefixes_equal(
    const struct ip_prefix *a, unsigned n_a, const struct ip_prefix *b, unsigned n_b)
{
    bool equal = n_a == n_b;

    for (unsigned i = 0; i < n_a && equal; i++)
        equal = ip_prefix_equal(&a[i], &b[i]);
    return equal;
}

bool candidate_blocks_equal(const struct candidate_blocks *a, const struct candidate_blocks *b)
{
    return are_prefixes_equal(a->items, a->n, b->items, b->n) &&
           are_prefixes_equal(a->outside, a->n_outside, b->outside, b->n_outside);
}

bool candidate_blocks_add(struct candidate_blocks *blocks, const struct ip_prefix *block)
{
    for (unsigned i = 0; i < blocks->n; i++)
        if (has_block(&blocks->items[i], block))
            return true;
    for (unsigned i = blocks->n; i-- > 0;)
        if (has_block(block, &blocks->items[i]))
            blocks->items[i] = blocks->items[--blocks->n];
    if (blocks->n == sizeof(blocks->items) / sizeof(*blocks->items))
        return false;
    blocks->items[blocks->n++] = *block;
    return true;
}

void candidate_blocks_exclude(struct candidate_blocks *blocks, const struct ip_prefix *part)
{
    bool is_inside = false;

    for (unsigned i = 0; i < blocks->n && !is_inside; i++)
        is_inside = blocks->items[i].len < part->len && has_block(&blocks->items[i], part);
    if (is_inside && blocks->n_outside < CANDIDATE_BLOCKS_OUTSIDE)
        blocks->outside[blocks->n_outside++] = *part;
}

bool candidate_is_private(const struct ip_addr *a)
{
    const uint8_t *b = a->b;

    if (ip_addr_is_link_local(a))
        return true;
    if (!ip_addr_is_v4(a))
        return (b[0] & 0xfe) == 0xfc;
    return b[12] == 10 || (b[12] == 172 && (b[13] & 0xf0) == 16) ||
           (b[12] == 192 && b[13] == 168) || (b[12] == 100 && (b[13] & 0xc0) == 64);
}

static unsigned candidate_index(const struct candidates *c, const struct endpoint *ep)
{
    unsigned i = 0;

    while (i < c->n && !endpoint_equal(&c->items[i].endpoint, ep))
        i++;
    return i;
}

const struct candidate *candidates_find(const struct candidates *c, const struct endpoint *ep)
{
    unsigned i = candidate_index(c, ep);

    return i < c->n ? &c->items[i] : NULL;
}

bool candidates_add(struct candidates *c, enum candidate_kind kind, const struct endpoint *ep)
{
    unsigned i = candidate_index(c, ep);

    if (!candidate_is_possible(ep))
        return false;
    if (i < c->n) {
        if (c->items[i].kind <= kind)
            return false;
        memmove(&c->items[i], &c->items[i + 1], (c->n - i - 1) * sizeof(c->items[0]));
        c->n--;
    } else if (c->n == CANDIDATES_MAX) {
        if (c->items[c->n - 1].kind <= kind)
            return false;
        c->n--;
    }
    for (i = c->n; i > 0 && c->items[i - 1].kind > kind; i--)
        c->items[i] = c->items[i - 1];
    c->items[i] = (struct candidate){.kind = kind, .endpoint = *ep};
    c->n++;
    return true;
}

bool candidates_equal(const struct candidates *a, const struct candidates *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        if (a->items[i].kind != b->items[i].kind ||
            !endpoint_equal(&a->items[i].endpoint, &b->items[i].endpoint))
            return false;
    return a->n == b->n;
}
