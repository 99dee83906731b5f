/* allowedips.c - see allowedips.h. */
#include "allowedips.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define NODES_MIN 16u
#define NODES_MAX (UINT32_MAX / 2)

/** A prefix as the trie has it. */
struct key {
    uint64_t bits[2]; /* as in struct allowedips_node */
    uint8_t len;
    bool is_v4;
};

static struct key key_of_addr(const struct ip_addr *addr)
{
    struct key k = {0};

    if (ip_addr_is_v4(addr)) {
        struct be32 v4;

        memcpy(&v4, addr->b + 12, sizeof(v4));
        k.bits[0] = (uint64_t)be32_get(v4) << 32;
        k.len = 32;
        k.is_v4 = true;
    } else {
        struct be64 half[2];

        memcpy(half, addr->b, sizeof(half));
        k.bits[0] = be64_get(half[0]);
        k.bits[1] = be64_get(half[1]);
        k.len = 128;
    }
    return k;
}

/* The first @len bits of a 64-bit half set. */
static uint64_t mask_of(unsigned len)
{
    return len == 0 ? 0 : UINT64_MAX << (64 - len);
}

static void key_cut(struct key *k, uint8_t len)
{
    k->bits[0] &= mask_of(len < 64 ? len : 64);
    k->bits[1] &= mask_of(len > 64 ? len - 64u : 0);
    k->len = len;
}

static struct key key_of_prefix(const struct ip_prefix *prefix)
{
    struct key k = key_of_addr(&prefix->addr);

    key_cut(&k, prefix->len < k.len ? prefix->len : k.len);
    return k;
}

static struct ip_prefix prefix_of_node(const struct allowedips_node *node)
{
    struct ip_prefix p = {.len = node->len};

    if (node->is_v4) {
        struct be32 v4 = be32_make((uint32_t)(node->key[0] >> 32));

        p.addr = ip_addr_v4(v4.b);
    } else {
        struct be64 half[2] = {be64_make(node->key[0]), be64_make(node->key[1])};

        memcpy(p.addr.b, half, sizeof(half));
    }
    return p;
}

/* How many leading bits are the same: 0 to 128. */
static inline unsigned common_bits(const uint64_t a[static 2], const uint64_t b[static 2])
{
    uint64_t upper = a[0] ^ b[0];
    uint64_t lower = a[1] ^ b[1];

    if (upper)
        return (unsigned)__builtin_clzll(upper);
    return lower ? 64 + (unsigned)__builtin_clzll(lower) : 128;
}

/* Bit number @i from the left, 0 to 127. */
static inline unsigned bit_at(const uint64_t bits[static 2], unsigned i)
{
    return (unsigned)(bits[i / 64] >> (63 - i % 64)) & 1;
}

static uint32_t *root_of(struct allowedips *t, bool is_v4)
{
    return is_v4 ? &t->root4 : &t->root6;
}

/* Room for @n more nodes, so that node_take() cannot fail. */
static int reserve(struct allowedips *t, uint32_t n)
{
    uint32_t want = t->cap < NODES_MIN ? NODES_MIN : t->cap + t->cap / 2;
    struct allowedips_node *nodes;

    /* Free nodes are not counted: at worst the array grows once too often. */
    if (t->cap - t->n_used >= n)
        return 0;
    if (want > NODES_MAX)
        return -ENOMEM;
    nodes = reallocarray(t->nodes, want, sizeof(*nodes));
    if (!nodes)
        return -ENOMEM;
    t->nodes = nodes;
    t->cap = want;
    if (t->n_used == 0)
        t->n_used = 1;
    return 0;
}

static uint32_t node_take(struct allowedips *t, const struct key *k)
{
    uint32_t i = t->free;

    if (i)
        t->free = t->nodes[i].child[0];
    else
        i = t->n_used++;
    t->nodes[i] = (struct allowedips_node){
        .key = {k->bits[0], k->bits[1]},
        .len = k->len,
        .is_v4 = k->is_v4,
    };
    return i;
}

static void owner_unlink(struct allowedips *t, uint32_t i)
{
    struct allowedips_node *node = &t->nodes[i];

    assert(node->owner);
    if (node->prev)
        t->nodes[node->prev].next = node->next;
    else
        node->owner->first = node->next;
    if (node->next)
        t->nodes[node->next].prev = node->prev;
    node->owner->n--;
    node->owner = NULL;
    node->next = 0;
    node->prev = 0;
}

void allowedips_deinit(struct allowedips *t)
{
    free(t->nodes);
    *t = (struct allowedips)ALLOWEDIPS_NULL;
}

/*
 * Descends to where @k is or belongs: the link that holds its node, the node
 * that it must be put above, or 0 at the bottom. The link is valid until the
 * array moves.
 */
static uint32_t *descend(struct allowedips *t, const struct key *k)
{
    uint32_t *link = root_of(t, k->is_v4);

    while (*link) {
        struct allowedips_node *node = &t->nodes[*link];

        if (node->len >= k->len || common_bits(node->key, k->bits) < node->len)
            break;
        link = &node->child[bit_at(k->bits, node->len)];
    }
    return link;
}

/* Puts a new node for @k into *@link, above what is there; returns its number. */
static uint32_t put(struct allowedips *t, uint32_t *link, const struct key *k)
{
    uint32_t below = *link;
    struct key fork = *k;
    unsigned common;
    uint32_t leaf = node_take(t, k);
    uint32_t i;

    if (!below) {
        *link = leaf;
        return leaf;
    }
    common = common_bits(t->nodes[below].key, k->bits);
    if (common >= k->len) {
        t->nodes[leaf].child[bit_at(t->nodes[below].key, k->len)] = below;
        *link = leaf;
        return leaf;
    }
    key_cut(&fork, (uint8_t)common);
    i = node_take(t, &fork);
    t->nodes[i].child[bit_at(k->bits, common)] = leaf;
    t->nodes[i].child[bit_at(t->nodes[below].key, common)] = below;
    *link = i;
    return leaf;
}

static bool is_at(const struct allowedips *t, uint32_t i, const struct key *k)
{
    const struct allowedips_node *node = &t->nodes[i];

    return i != 0 && node->len == k->len && node->key[0] == k->bits[0] &&
           node->key[1] == k->bits[1];
}

int allowedips_insert(
    struct allowedips *t, const struct ip_prefix *prefix, struct allowedips_owner *owner)
{
    struct key k = key_of_prefix(prefix);
    struct allowedips_node *node;
    uint32_t *link;
    uint32_t i;
    int r = reserve(t, 2);

    if (r < 0)
        return r;
    link = descend(t, &k);
    i = is_at(t, *link, &k) ? *link : put(t, link, &k);
    if (t->nodes[i].owner)
        owner_unlink(t, i);
    node = &t->nodes[i];
    node->owner = owner;
    node->next = owner->first;
    if (node->next)
        t->nodes[node->next].prev = i;
    owner->first = i;
    owner->n++;
    return 0;
}

/* Takes out the node in *@link if it has no owner and does not fork; true if it is gone. */
static bool collapse(struct allowedips *t, uint32_t *link)
{
    uint32_t i = *link;
    const struct allowedips_node *node = &t->nodes[i];

    if (node->owner || (node->child[0] && node->child[1]))
        return false;
    *link = node->child[0] ? node->child[0] : node->child[1];
    t->nodes[i] = (struct allowedips_node){.child = {t->free, 0}};
    t->free = i;
    return true;
}

static void remove_at(struct allowedips *t, uint32_t i)
{
    struct key k = {
        .bits = {t->nodes[i].key[0], t->nodes[i].key[1]},
        .len = t->nodes[i].len,
        .is_v4 = t->nodes[i].is_v4,
    };
    uint32_t *parent = NULL;
    uint32_t *link = root_of(t, k.is_v4);

    owner_unlink(t, i);
    while (*link != i) {
        parent = link;
        link = &t->nodes[*link].child[bit_at(k.bits, t->nodes[*link].len)];
    }
    /* The parent may have been a fork for this node's sake only. */
    if (collapse(t, link) && parent)
        (void)collapse(t, parent);
}

void allowedips_remove(
    struct allowedips *t, const struct ip_prefix *prefix, struct allowedips_owner *owner)
{
    struct key k = key_of_prefix(prefix);
    uint32_t i = *descend(t, &k);

    if (is_at(t, i, &k) && t->nodes[i].owner == owner)
        remove_at(t, i);
}

void allowedips_remove_owner(struct allowedips *t, struct allowedips_owner *owner)
{
    while (owner->first)
        remove_at(t, owner->first);
}

struct allowedips_owner *allowedips_find(const struct allowedips *t, const struct ip_addr *addr)
{
    struct key k = key_of_addr(addr);
    uint32_t i = k.is_v4 ? t->root4 : t->root6;
    struct allowedips_owner *best = NULL;

    while (i) {
        const struct allowedips_node *node = &t->nodes[i];

        if (common_bits(node->key, k.bits) < node->len)
            break;
        if (node->owner)
            best = node->owner;
        if (node->len == k.len)
            break;
        i = node->child[bit_at(k.bits, node->len)];
    }
    return best;
}

bool allowedips_each(const struct allowedips *t, const struct allowedips_owner *owner,
    uint32_t *cursor, struct ip_prefix *ret)
{
    uint32_t i = *cursor ? t->nodes[*cursor].next : owner->first;

    if (!i)
        return false;
    *cursor = i;
    *ret = prefix_of_node(&t->nodes[i]);
    return true;
}
