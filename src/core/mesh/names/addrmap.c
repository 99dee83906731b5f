/* addrmap.c - see addrmap.h. */
#include "mesh/names/addrmap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mesh/snapshot/snapshot.h"
#include "path/candidate.h"

#define ADDRMAP_MAX 4096 /* translations; more are left out, and said */

/* Most private addresses of one node that are taken; who has more has them on bridges of
 * containers, where no other machine reaches it. */
#define PRIVATE_MAX 8

/** Where a node is, as far as it is known. */
struct place {
    const struct node *node; /* borrowed from the snapshot */
    struct ip_addr private[PRIVATE_MAX];
    unsigned n_private;
    struct ip_addr public; /* none: not known */
    struct ip_addr own;    /* a public address on an interface of its own; none: it has none */
};

/** An address that a node says is its own. */
struct claim {
    struct ip_addr addr;
    const struct node *node; /* borrowed likewise */
};

/** All nodes but the hubs, and their claims, sorted by address. */
struct survey {
    struct place *places; /* owns */
    struct claim *claims; /* owns */
    size_t n;
    size_t n_claims;
};

void addrmap_deinit(struct addrmap *m)
{
    free(m->entries);
    free(m->gaps);
    *m = (struct addrmap)ADDRMAP_NULL;
}

/* ---- what a node says of itself ------------------------------------------------------------- */

static const char *label_of(const struct node *n, const char *key)
{
    for (unsigned i = 0; i < n->n_labels; i++)
        if (strcmp(n->labels[i].key, key) == 0)
            return n->labels[i].value;
    return NULL;
}

static bool take_v4(struct ip_addr *ret, const char *text)
{
    struct ip_addr a;

    if (!text || ip_addr_parse(&a, text, NULL) < 0 || !ip_addr_is_v4(&a))
        return false;
    *ret = a;
    return true;
}

static void add_private(struct place *p, const struct ip_addr *a)
{
    if (p->n_private < PRIVATE_MAX)
        p->private[p->n_private++] = *a;
}

/* One of `status.candidates`. What cannot be read is passed over: node_decode() judges it. */
static void take_candidate(struct place *p, const json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *text = json_string_value(json_object_get(json, "endpoint"));
    enum candidate_kind kind = type ? candidate_kind_parse(type) : CANDIDATE_NONE;
    struct endpoint ep;

    if (!text || endpoint_parse(&ep, text, NULL) < 0 || !ip_addr_is_v4(&ep.addr))
        return;
    if (kind == CANDIDATE_HOST && candidate_is_private(&ep.addr))
        add_private(p, &ep.addr);
    else if ((kind == CANDIDATE_GIVEN || kind == CANDIDATE_REFLEXIVE) &&
             !candidate_is_private(&ep.addr) && ip_addr_is_none(&p->public))
        p->public = ep.addr;
    else if (kind == CANDIDATE_HOST && ip_addr_is_none(&p->own))
        p->own = ep.addr;
}

static struct place place_of(const struct node *n)
{
    const json_t *candidates = json_object_get(n->status, "candidates");
    struct place p = {.node = n};
    struct ip_addr said;
    size_t index;
    json_t *item;

    json_array_foreach(candidates, index, item) {
        if (index < OBJECT_CANDIDATES_MAX)
            take_candidate(&p, item);
    }
    /* A node reports an address once, as the first kind that it found. So where a hub sees the
     * node under an address of its own, that is a host candidate, and none is reflexive. */
    if (ip_addr_is_none(&p.public))
        p.public = p.own;
    if (take_v4(&said, label_of(n, ADDRMAP_LABEL_PRIVATE))) {
        p.n_private = 0;
        add_private(&p, &said);
    }
    if (take_v4(&said, label_of(n, ADDRMAP_LABEL_PUBLIC)))
        p.public = said;
    return p;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a;
    const struct claim *y = b;

    return memcmp(&x->addr, &y->addr, sizeof(x->addr));
}

static void add_claim(struct survey *s, const struct ip_addr *a, const struct node *n)
{
    if (!ip_addr_is_none(a))
        s->claims[s->n_claims++] = (struct claim){*a, n};
}

static int survey_init(struct survey *s, const struct snapshot *snapshot)
{
    s->places = calloc(snapshot->nodes.n + 1, sizeof(*s->places));
    s->claims = calloc((snapshot->nodes.n + 1) * (PRIVATE_MAX + 1), sizeof(*s->claims));
    if (!s->places || !s->claims)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->nodes.n; i++) {
        const struct node *n = &snapshot->nodes.items[i]->node;
        struct place *p = &s->places[s->n];

        if (n->hub)
            continue;
        *p = place_of(n);
        s->n++;
        add_claim(s, &p->public, n);
        for (unsigned k = 0; k < p->n_private; k++)
            add_claim(s, &p->private[k], n);
    }
    qsort(s->claims, s->n_claims, sizeof(*s->claims), compare_claims);
    return 0;
}

/* Another node that claims @a; NULL: it is @self's alone. */
static const struct node *rival(
    const struct survey *s, const struct ip_addr *a, const struct node *self)
{
    const struct claim key = {.addr = *a};
    const struct claim *end = s->claims + s->n_claims;
    const struct claim *c =
        bsearch(&key, s->claims, s->n_claims, sizeof(*s->claims), compare_claims);

    while (c && c > s->claims && compare_claims(c - 1, &key) == 0)
        c--;
    for (; c && c < end && compare_claims(c, &key) == 0; c++)
        if (c->node != self)
            return c->node;
    return NULL;
}

/* ---- the map -------------------------------------------------------------------------------- */

static void add_gap(struct addrmap *m, const struct place *p, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add_gap(struct addrmap *m, const struct place *p, const char *fmt, ...)
{
    struct addrmap_gap *gap;
    va_list args;

    if (m->n_gaps == ADDRMAP_MAX)
        return;
    gap = &m->gaps[m->n_gaps++];
    (void)snprintf(gap->node, sizeof(gap->node), "%.*s", NAME_MAX_LEN, p->node->meta.name);
    va_start(args, fmt);
    (void)vsnprintf(gap->why, sizeof(gap->why), fmt, args);
    va_end(args);
}

static void map_address(
    struct addrmap *m, const struct survey *s, const struct place *p, const struct ip_addr *private)
{
    const struct node *other = rival(s, private, p->node);
    char text[IP_ADDR_TEXT_MAX];
    struct addrmap_entry *entry;

    if (other) {
        add_gap(m, p, "its private address %s is that of %.*s, too", ip_addr_format(private, text),
            NAME_MAX_LEN, other->meta.name);
    } else if (m->n == ADDRMAP_MAX) {
        add_gap(m, p, "there are more than %d addresses", ADDRMAP_MAX);
    } else {
        entry = &m->entries[m->n++];
        *entry = (struct addrmap_entry){.private = *private, .public = p->public};
        (void)snprintf(entry->node, sizeof(entry->node), "%.*s", NAME_MAX_LEN, p->node->meta.name);
    }
}

static void map_place(struct addrmap *m, const struct survey *s, const struct place *p)
{
    const struct node *other = rival(s, &p->public, p->node);
    char text[IP_ADDR_TEXT_MAX];

    if (p->n_private == 0) {
        /* A node with a public address of its own announces that: nothing is to be translated. */
        if (ip_addr_is_none(&p->public))
            add_gap(m, p, "it has not reported its addresses");
    } else if (ip_addr_is_none(&p->public)) {
        add_gap(m, p, "its public address is not known");
    } else if (other) {
        add_gap(m, p,
            "it shares its public address %s with %.*s: that leads to one of them at most",
            ip_addr_format(&p->public, text), NAME_MAX_LEN, other->meta.name);
    } else {
        for (unsigned i = 0; i < p->n_private; i++)
            map_address(m, s, p, &p->private[i]);
    }
}

int addrmap_make(struct addrmap *ret, const struct snapshot *snapshot)
{
    struct survey s = {0};
    struct addrmap m = {
        .entries = calloc(ADDRMAP_MAX, sizeof(*m.entries)),
        .gaps = calloc(ADDRMAP_MAX, sizeof(*m.gaps)),
    };
    int r = m.entries && m.gaps ? survey_init(&s, snapshot) : -ENOMEM;

    for (size_t i = 0; r == 0 && i < s.n; i++)
        if (s.places[i].node != snapshot_self(snapshot))
            map_place(&m, &s, &s.places[i]);
    free(s.places);
    free(s.claims);
    if (r < 0) {
        addrmap_deinit(&m);
        return r;
    }
    *ret = m;
    return 0;
}

bool addrmap_equal(const struct addrmap *a, const struct addrmap *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = ip_addr_equal(&a->entries[i].private, &b->entries[i].private) &&
               ip_addr_equal(&a->entries[i].public, &b->entries[i].public);
    return same;
}

void addrmap_add_chain(struct str *out, const struct addrmap *m)
{
    char from[IP_ADDR_TEXT_MAX];
    char to[IP_ADDR_TEXT_MAX];

    str_add(out, "\tchain output {\n\t\ttype nat hook output priority -100; policy accept;\n");
    if (m->n > 0) {
        /* Not UDP: the WireGuards of two nodes find each other without it. */
        str_add(out, "\t\tip protocol { tcp, icmp } dnat to ip daddr map {\n");
        for (size_t i = 0; i < m->n; i++)
            str_addf(out, "\t\t\t%s : %s,\n", ip_addr_format(&m->entries[i].private, from),
                ip_addr_format(&m->entries[i].public, to));
        str_add(out, "\t\t}\n");
    }
    str_add(out, "\t}");
}
