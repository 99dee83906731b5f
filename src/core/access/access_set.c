/* access_set.c - see access_set.h: what the lines become, and what is asked of that. */
#include "access/access_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access/access_set_internal.h"

#include "base/err.h"

#define PORT_N 65536

/** Ports, and the rule that allows them. */
struct segment {
    uint16_t first;
    uint16_t last;
    uint32_t rule;
};

/** Segments of a list, in order, none of which overlaps another one. */
struct segments {
    uint32_t first;
    uint32_t n;
};

/** What is allowed between a peer and what a packet is for. */
struct allowed {
    struct segments tcp;
    struct segments udp;
    uint32_t any;  /* a rule that allows all; ACCESS_NO_RULE: none does */
    uint32_t icmp; /* and ICMP */
};

/** A list's place. */
struct entry {
    uint32_t scope;
    uint32_t peer;
    uint32_t list; /* its number, and one; 0: this is free */
};

/** An address that is in sets. */
struct member {
    struct ip_addr addr;
    uint32_t first; /* of its sets, in order */
    uint32_t n;     /* 0: this is free */
};

/** Ports of the node's own that are shut, but for some sets. */
struct shut {
    uint16_t first;
    uint16_t last;
    uint32_t first_set; /* of door_sets */
    uint32_t n_sets;
};

/** A rule, for its name and what it has let in. */
struct counted {
    char name[NAME_MAX_LEN + 1]; /* "": it is not counted */
    _Atomic uint64_t passed;
};

struct access_set {
    uint64_t seed;
    bool refuses[ACCESS_WAY_N];
    bool has_shut;
    struct ip_addr *own; /* owns, with @n_own */
    size_t n_own;
    struct access_array blocks; /* owns: struct access_block * */
    struct allowedips trie;     /* of the blocks */
    struct member *members;     /* owns; a table with open addressing */
    size_t members_mask;
    uint32_t *sets;        /* owns; of members */
    struct entry *entries; /* owns; the same */
    size_t entries_mask;
    struct access_array lists;    /* owns: struct allowed */
    struct access_array segments; /* owns: struct segment */
    struct shut *shut;            /* owns; in order, none overlaps another one */
    size_t n_shut;
    uint32_t *door_sets;     /* owns */
    struct counted *counted; /* owns; by the rules' numbers */
    uint32_t *by_name;       /* owns; the numbers, by the names */
    size_t n_rules;
};

struct access_set *access_set_free(struct access_set *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < s->blocks.n; i++)
        free(((struct access_block **)s->blocks.items)[i]);
    free(s->blocks.items);
    allowedips_deinit(&s->trie);
    free(s->own);
    free(s->members);
    free(s->sets);
    free(s->entries);
    free(s->lists.items);
    free(s->segments.items);
    free(s->shut);
    free(s->door_sets);
    free(s->counted);
    free(s->by_name);
    free(s);
    return NULL;
}

/* ---- look-ups ------------------------------------------------------------------------------- */

static struct access_block *find_block(const struct access_set *s, const struct ip_addr *addr)
{
    struct allowedips_owner *owner = allowedips_find(&s->trie, addr);

    return owner ? container_of(owner, struct access_block, owner) : NULL;
}

/* Its place, or the free one where it belongs. */
static struct member *find_member(const struct access_set *s, const struct ip_addr *addr)
{
    size_t i = hash_bytes(s->seed, addr, sizeof(*addr)) & s->members_mask;

    while (s->members[i].n > 0 && !ip_addr_equal(&s->members[i].addr, addr))
        i = (i + 1) & s->members_mask;
    return &s->members[i];
}

static struct entry *find_entry(const struct access_set *s, uint32_t scope, uint32_t peer)
{
    size_t i = hash_u64(s->seed, (uint64_t)scope << 32 | peer) & s->entries_mask;

    while (s->entries[i].list > 0 && (s->entries[i].scope != scope || s->entries[i].peer != peer))
        i = (i + 1) & s->entries_mask;
    return &s->entries[i];
}

static uint32_t find_port(const struct access_set *s, const struct segments *in, uint16_t port)
{
    const struct segment *all = (const struct segment *)s->segments.items + in->first;
    uint32_t from = 0;
    uint32_t to = in->n;

    /* The first that does not end before the port. */
    while (from < to) {
        uint32_t at = from + (to - from) / 2;

        if (all[at].last < port)
            from = at + 1;
        else
            to = at;
    }
    return from < in->n && all[from].first <= port ? all[from].rule : ACCESS_NO_RULE;
}

static uint32_t ask_list(
    const struct access_set *s, uint32_t scope, uint32_t peer, const struct access_packet *p)
{
    const struct entry *entry = find_entry(s, scope, peer);
    const struct allowed *list = (const struct allowed *)s->lists.items + entry->list - 1;

    if (entry->list == 0)
        return ACCESS_NO_RULE;
    if (list->any != ACCESS_NO_RULE)
        return list->any;
    if (p->is_icmp)
        return list->icmp;
    if (p->key.protocol == IP_PROTO_TCP)
        return find_port(s, &list->tcp, p->port);
    return p->key.protocol == IP_PROTO_UDP ? find_port(s, &list->udp, p->port) : ACCESS_NO_RULE;
}

/* All lists of what the packet is for. */
static uint32_t ask_scope(const struct access_set *s, uint32_t scope, const struct member *m,
    const struct access_packet *p)
{
    bool is_of_first = m->n > 0 && s->sets[m->first] == 0;
    uint32_t rule = ACCESS_NO_RULE;

    for (uint32_t i = 0; rule == ACCESS_NO_RULE && i < m->n; i++)
        rule = ask_list(s, scope, ACCESS_PEER(ACCESS_PEER_SET, s->sets[m->first + i]), p);
    for (const struct access_block *b = find_block(s, &p->key.remote); rule == ACCESS_NO_RULE && b;
         b = b->parent) {
        rule = ask_list(s, scope, ACCESS_PEER(ACCESS_PEER_BLOCK, b->number), p);
        if (rule == ACCESS_NO_RULE && !is_of_first)
            rule = ask_list(s, scope, ACCESS_PEER(ACCESS_PEER_OTHERS, b->number), p);
    }
    return rule;
}

uint32_t access_set_find(const struct access_set *s, const struct access_packet *p)
{
    const struct member *m = find_member(s, &p->key.remote);
    uint32_t rule = ACCESS_NO_RULE;

    if (p->way == ACCESS_OUT)
        return ask_scope(s, ACCESS_SCOPE_OUT, m, p);
    for (const struct access_block *b = find_block(s, &p->key.local); rule == ACCESS_NO_RULE && b;
         b = b->parent)
        rule = ask_scope(s, b->number, m, p);
    return rule;
}

static bool is_own(const struct access_set *s, const struct ip_addr *addr)
{
    for (size_t i = 0; i < s->n_own; i++)
        if (ip_addr_equal(&s->own[i], addr))
            return true;
    return false;
}

static bool is_in_set(const struct access_set *s, const struct ip_addr *addr, uint32_t set)
{
    const struct member *m = find_member(s, addr);

    for (uint32_t i = 0; i < m->n; i++)
        if (s->sets[m->first + i] == set)
            return true;
    return false;
}

bool access_set_is_shut(const struct access_set *s, const struct access_packet *p)
{
    size_t from = 0;
    size_t to = s->n_shut;

    if (p->way != ACCESS_IN || p->key.protocol != IP_PROTO_TCP || !is_own(s, &p->key.local))
        return false;
    while (from < to) {
        size_t at = from + (to - from) / 2;

        if (s->shut[at].last < p->port)
            from = at + 1;
        else
            to = at;
    }
    if (from == s->n_shut || s->shut[from].first > p->port)
        return false;
    for (uint32_t i = 0; i < s->shut[from].n_sets; i++)
        if (is_in_set(s, &p->key.remote, s->door_sets[s->shut[from].first_set + i]))
            return false;
    return true;
}

bool access_set_refuses(const struct access_set *s, enum access_way way)
{
    return s->refuses[way];
}

/* ---- counters ------------------------------------------------------------------------------- */

void access_set_count(const struct access_set *s, uint32_t rule)
{
    atomic_fetch_add_explicit(&s->counted[rule].passed, 1, memory_order_relaxed);
}

void access_set_add_counts(struct access_set *s, const struct access_set *before)
{
    size_t k = 0;

    for (size_t i = 0; i < s->n_rules; i++) {
        struct counted *mine = &s->counted[s->by_name[i]];
        int order = -1;

        for (; k < before->n_rules; k++) {
            order = strcmp(before->counted[before->by_name[k]].name, mine->name);
            if (order >= 0)
                break;
        }
        if (k < before->n_rules && order == 0 && mine->name[0] != '\0')
            atomic_fetch_add_explicit(&mine->passed,
                atomic_load_explicit(
                    &before->counted[before->by_name[k]].passed, memory_order_relaxed),
                memory_order_relaxed);
    }
}

const char *access_set_each(const struct access_set *s, uint32_t *cursor, uint64_t *ret_passed)
{
    while (*cursor < s->n_rules) {
        const struct counted *c = &s->counted[s->by_name[(*cursor)++]];
        uint64_t passed = atomic_load_explicit(&c->passed, memory_order_relaxed);

        if (c->name[0] != '\0' && passed > 0) {
            *ret_passed = passed;
            return c->name;
        }
    }
    return NULL;
}

size_t access_set_rules(const struct access_set *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_rules; i++)
        n += s->counted[i].name[0] != '\0';
    return n;
}

/* ---- making one: blocks and members --------------------------------------------------------- */

static int no_memory(struct err *e)
{
    return err_set(e, -ENOMEM, "no memory for rules");
}

/* A power of two that is twice as much, so that a look-up ends. */
static size_t table_size(size_t n)
{
    size_t size = 2;

    while (size < 2 * n)
        size *= 2;
    return size;
}

static int by_length(const void *a, const void *b)
{
    const struct access_block *x = *(struct access_block *const *)a;
    const struct access_block *y = *(struct access_block *const *)b;

    return (x->prefix.len > y->prefix.len) - (x->prefix.len < y->prefix.len);
}

/* Larger blocks come first, so each finds the next larger one that has it. */
static int make_blocks(struct access_set *s, struct access_builder *b, struct err *e)
{
    struct access_block **blocks = b->blocks.items;

    if (b->blocks.n > 0)
        qsort(blocks, b->blocks.n, sizeof(*blocks), by_length);
    s->blocks = b->blocks;
    b->blocks = (struct access_array){.n = 0};
    for (size_t i = 0; i < s->blocks.n; i++) {
        blocks[i]->parent = find_block(s, &blocks[i]->prefix.addr);
        if (allowedips_insert(&s->trie, &blocks[i]->prefix, &blocks[i]->owner) < 0)
            return no_memory(e);
    }
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct access_address *x = a;
    const struct access_address *y = b;
    int r = memcmp(&x->addr, &y->addr, sizeof(x->addr));

    return r != 0 ? r : (x->set > y->set) - (x->set < y->set);
}

static int make_members(struct access_set *s, struct access_builder *b, struct err *e)
{
    struct access_address *all = b->addresses.items;
    size_t n = b->addresses.n;
    size_t size = table_size(n + 1);
    uint32_t n_sets = 0;

    s->sets = calloc(n + 1, sizeof(*s->sets));
    s->members = calloc(size, sizeof(*s->members));
    s->members_mask = size - 1;
    if (!s->sets || !s->members)
        return no_memory(e);
    if (n > 0)
        qsort(all, n, sizeof(*all), by_address);
    for (size_t i = 0; i < n; i++) {
        struct member *m = find_member(s, &all[i].addr);

        if (m->n == 0)
            *m = (struct member){.addr = all[i].addr, .first = n_sets};
        else if (s->sets[n_sets - 1] == all[i].set)
            continue;
        s->sets[n_sets++] = all[i].set;
        m->n++;
    }
    return 0;
}

/* ---- making one: lists ---------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const struct segment *x = a;
    const struct segment *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->rule > y->rule) - (x->rule < y->rule);
}

/* Adds what @all, which it sorts, has together, without overlaps. */
static int add_segments(
    struct access_set *s, struct segment *all, size_t n, struct segments *ret, struct err *e)
{
    uint32_t next = 0; /* port that is not in one yet */

    if (n > 0)
        qsort(all, n, sizeof(*all), by_first);
    *ret = (struct segments){.first = (uint32_t)s->segments.n};
    for (size_t i = 0; i < n; i++) {
        struct segment *item;

        if (all[i].last < next)
            continue;
        if (s->segments.n >= ACCESS_SEGMENTS_LIMIT)
            return err_set(
                e, -E2BIG, "the rules allow more than %d ranges of ports", ACCESS_SEGMENTS_LIMIT);
        item = access_array_add(&s->segments, sizeof(*item));
        if (!item)
            return no_memory(e);
        *item = all[i];
        if (item->first < next)
            item->first = (uint16_t)next;
        next = (uint32_t)item->last + 1;
        ret->n++;
    }
    return 0;
}

/* What rules allow together; each number once. */
static int fill_list(struct access_set *s, const struct access_builder *b, struct allowed *list,
    const struct access_pair *pairs, size_t n, struct err *e)
{
    const struct access_built_rule *rules = b->rules.items;
    const struct access_service *services = b->services.items;
    struct segment *ports[2];
    size_t n_ports[2] = {0, 0};
    size_t max = 1;
    int r;

    *list = (struct allowed){.any = ACCESS_NO_RULE, .icmp = ACCESS_NO_RULE};
    for (size_t i = 0; i < n; i++)
        max += rules[pairs[i].rule].n;
    ports[0] = calloc(2 * max, sizeof(*ports[0]));
    if (!ports[0])
        return no_memory(e);
    ports[1] = ports[0] + max;
    for (size_t i = 0; i < n; i++) {
        const struct access_built_rule *rule = &rules[pairs[i].rule];

        for (uint32_t k = 0; k < rule->n; k++) {
            const struct access_service *service = &services[rule->first + k];
            unsigned which = service->protocol == IP_PROTO_UDP;

            if (service->protocol == 0 && list->any == ACCESS_NO_RULE)
                list->any = pairs[i].rule;
            else if (service->protocol == IP_PROTO_ICMP && list->icmp == ACCESS_NO_RULE)
                list->icmp = pairs[i].rule;
            else if (service->protocol == IP_PROTO_TCP || service->protocol == IP_PROTO_UDP)
                ports[which][n_ports[which]++] =
                    (struct segment){service->ports.first, service->ports.last, pairs[i].rule};
        }
    }
    r = add_segments(s, ports[0], n_ports[0], &list->tcp, e);
    if (r == 0)
        r = add_segments(s, ports[1], n_ports[1], &list->udp, e);
    free(ports[0]);
    return r;
}

static int by_place(const void *a, const void *b)
{
    const struct access_pair *x = a;
    const struct access_pair *y = b;

    if (x->scope != y->scope)
        return x->scope < y->scope ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->rule > y->rule) - (x->rule < y->rule);
}

/** A list that was made, and of which pairs. */
struct made {
    uint64_t hash;
    size_t first;
    size_t n;
    uint32_t list; /* its number, and one; 0: this is free */
};

static bool is_same_rules(const struct access_pair *a, const struct access_pair *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].rule != b[i].rule)
            return false;
    return true;
}

/* The list of pairs that have one place; equal ones are made once. */
static int make_list(struct access_set *s, const struct access_builder *b,
    const struct access_pair *pairs, struct made *like, struct made *table, size_t mask,
    struct err *e)
{
    struct allowed *list;
    size_t i;
    int r;

    like->hash = s->seed;
    for (i = 0; i < like->n; i++)
        like->hash = hash_u64(like->hash, pairs[like->first + i].rule);
    for (i = like->hash & mask; table[i].list > 0; i = (i + 1) & mask) {
        like->list = table[i].list;
        if (table[i].hash == like->hash && table[i].n == like->n &&
            is_same_rules(pairs + table[i].first, pairs + like->first, like->n))
            return 0;
    }
    list = access_array_add(&s->lists, sizeof(*list));
    if (!list)
        return no_memory(e);
    r = fill_list(s, b, list, pairs + like->first, like->n, e);
    like->list = (uint32_t)s->lists.n;
    table[i] = *like;
    return r;
}

static int make_lists(struct access_set *s, struct access_builder *b, struct err *e)
{
    struct access_pair *pairs = b->pairs.items;
    size_t size = table_size(b->pairs.n + 1);
    _cleanup_(freep) struct made *table = calloc(size, sizeof(*table));
    int r = 0;

    s->entries = calloc(size, sizeof(*s->entries));
    s->entries_mask = size - 1;
    if (!s->entries || !table)
        return no_memory(e);
    if (b->pairs.n > 0)
        qsort(pairs, b->pairs.n, sizeof(*pairs), by_place);
    for (size_t i = 0, next; r == 0 && i < b->pairs.n; i = next) {
        struct made like = {.first = i};
        struct entry *entry;

        for (next = i; next < b->pairs.n && pairs[next].scope == pairs[i].scope &&
                       pairs[next].peer == pairs[i].peer;
             next++)
            ;
        like.n = next - i;
        r = make_list(s, b, pairs, &like, table, size - 1, e);
        entry = find_entry(s, pairs[i].scope, pairs[i].peer);
        *entry = (struct entry){pairs[i].scope, pairs[i].peer, like.list};
    }
    return r;
}

/* ---- making one: ports that are shut, and names --------------------------------------------- */

/* Which door decides about each port: its number, and one. */
static void paint(const struct access_builder *b, uint32_t ports[static PORT_N])
{
    const struct access_door *doors = b->doors.items;
    const struct access_range *ranges = b->ranges.items;

    for (size_t i = 0; i < b->doors.n; i++)
        for (uint32_t k = 0; k < doors[i].n_ranges; k++) {
            const struct access_range *range = &ranges[doors[i].first_range + k];

            for (uint32_t port = range->first; port <= range->last; port++)
                if (ports[port] == 0)
                    ports[port] = (uint32_t)i + 1;
        }
}

static int make_shut(struct access_set *s, struct access_builder *b, struct err *e)
{
    const struct access_door *doors = b->doors.items;
    _cleanup_(freep) uint32_t *ports = b->doors.n > 0 ? calloc(PORT_N, sizeof(*ports)) : NULL;
    struct access_array shut = {.n = 0};

    s->door_sets = b->door_sets.items;
    b->door_sets = (struct access_array){.n = 0};
    if (b->doors.n == 0)
        return 0;
    if (!ports)
        return no_memory(e);
    paint(b, ports);
    for (uint32_t port = 0, next; port < PORT_N; port = next) {
        struct shut *item;

        for (next = port + 1; next < PORT_N && ports[next] == ports[port]; next++)
            ;
        if (ports[port] == 0 || doors[ports[port] - 1].is_open)
            continue;
        item = access_array_add(&shut, sizeof(*item));
        s->shut = shut.items;
        if (!item)
            return no_memory(e);
        *item = (struct shut){.first = (uint16_t)port,
            .last = (uint16_t)(next - 1),
            .first_set = doors[ports[port] - 1].first_set,
            .n_sets = doors[ports[port] - 1].n_sets};
        s->n_shut = shut.n;
    }
    return 0;
}

static int by_rule_name(const void *a, const void *b, void *ctx)
{
    const struct counted *counted = ctx;

    return strcmp(counted[*(const uint32_t *)a].name, counted[*(const uint32_t *)b].name);
}

static int make_rules(struct access_set *s, const struct access_builder *b, struct err *e)
{
    const struct access_built_rule *rules = b->rules.items;

    s->n_rules = b->rules.n;
    s->counted = calloc(s->n_rules + 1, sizeof(*s->counted));
    s->by_name = calloc(s->n_rules + 1, sizeof(*s->by_name));
    if (!s->counted || !s->by_name)
        return no_memory(e);
    for (size_t i = 0; i < s->n_rules; i++) {
        memcpy(s->counted[i].name, rules[i].name, sizeof(rules[i].name));
        s->by_name[i] = (uint32_t)i;
    }
    qsort_r(s->by_name, s->n_rules, sizeof(*s->by_name), by_rule_name, s->counted);
    return 0;
}

int access_builder_finish(struct access_builder *b, struct access_set **ret, struct err *e)
{
    struct access_set *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return no_memory(e);
    s->seed = b->seed;
    memcpy(s->refuses, b->refuses, sizeof(s->refuses));
    s->own = b->own.items;
    s->n_own = b->own.n;
    b->own = (struct access_array){.n = 0};
    r = make_blocks(s, b, e);
    if (r == 0)
        r = make_members(s, b, e);
    if (r == 0)
        r = make_lists(s, b, e);
    if (r == 0)
        r = make_shut(s, b, e);
    if (r == 0)
        r = make_rules(s, b, e);
    if (r < 0) {
        (void)access_set_free(s);
        return r;
    }
    *ret = s;
    return 0;
}
