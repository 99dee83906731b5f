/* nat.c - see nat.h. */
#include "test/sim/path/nat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"

/* Somebody who was sent to through a mapping. */
struct permission {
    struct endpoint to;
    nsec_t at;
};

struct sim_mapping {
    struct endpoint inner;
    struct endpoint to; /* the part that the mapping rule looks at; else zeroes */
    struct endpoint outer;
    nsec_t used_at; /* by an outbound packet */
    struct permission *permissions;
    unsigned n_permissions;
    unsigned cap_permissions;
};

void sim_nat_init(struct sim_nat *n, const struct sim_nat_kind *kind, const struct ip_addr *address,
    nsec_t timeout, uint64_t *seed)
{
    struct rng rng = rng_seeded(seed);

    *n = (struct sim_nat){.kind = *kind, .address = *address, .timeout = timeout, .seed = seed};
    n->next_port = (uint16_t)(20000 + rng_u32(&rng) % 20000);
}

static void mapping_free(struct sim_mapping *m)
{
    free(m->permissions);
    free(m);
}

void sim_nat_reset(struct sim_nat *n)
{
    for (unsigned i = 0; i < n->n_mappings; i++)
        mapping_free(n->mappings[i]);
    free(n->mappings);
    free(n->taken);
    n->mappings = NULL;
    n->taken = NULL;
    n->n_mappings = n->cap_mappings = n->n_taken = 0;
}

/* Ports first: lists are long, and most of their members differ in it. */
static bool is_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && endpoint_equal(a, b);
}

/* What a rule looks at of the other end. */
static struct endpoint seen_by(enum behavior_rule rule, const struct endpoint *ep)
{
    struct endpoint seen = {.port = 0};

    if (rule == BEHAVIOR_ADDRESS_DEPENDENT || rule == BEHAVIOR_PORT_DEPENDENT)
        seen.addr = ep->addr;
    if (rule == BEHAVIOR_PORT_DEPENDENT)
        seen.port = ep->port;
    return seen;
}

static bool is_port_taken(const struct sim_nat *n, uint16_t port)
{
    for (unsigned i = 0; i < n->n_mappings; i++)
        if (n->mappings[i]->outer.port == port)
            return true;
    return false;
}

static uint16_t choose_port(struct sim_nat *n, uint16_t inner)
{
    struct rng rng = rng_seeded(n->seed);
    uint16_t port = inner;

    if (n->kind.ports == SIM_PORTS_SEQUENTIAL)
        port = n->next_port++;
    if (n->kind.ports == SIM_PORTS_RANDOM)
        port = (uint16_t)(1024 + rng_u32(&rng) % 64512);
    while (port < 1024 || is_port_taken(n, port))
        port = (uint16_t)(1024 + rng_u32(&rng) % 64512);
    return port;
}

static void expire(struct sim_nat *n, nsec_t now)
{
    for (unsigned i = n->n_mappings; i-- > 0;) {
        if (now - n->mappings[i]->used_at < n->timeout)
            continue;
        mapping_free(n->mappings[i]);
        n->mappings[i] = n->mappings[--n->n_mappings];
    }
}

static struct sim_mapping *add_mapping(
    struct sim_nat *n, const struct endpoint *inner, const struct endpoint *to)
{
    struct sim_mapping *m = calloc(1, sizeof(*m));

    assert(m);
    if (n->n_mappings == n->cap_mappings) {
        n->cap_mappings = n->cap_mappings ? 2 * n->cap_mappings : 8;
        n->mappings = realloc(n->mappings, n->cap_mappings * sizeof(struct sim_mapping *));
        assert(n->mappings);
    }
    m->inner = *inner;
    m->to = seen_by(n->kind.mapping, to);
    m->outer = *inner;
    if (n->kind.mapping != BEHAVIOR_UNKNOWN)
        m->outer = (struct endpoint){.addr = n->address, .port = choose_port(n, inner->port)};
    n->mappings[n->n_mappings++] = m;
    return m;
}

static void permit(
    struct sim_mapping *m, const struct sim_nat *n, const struct endpoint *to, nsec_t now)
{
    struct endpoint seen = seen_by(n->kind.filtering, to);
    struct permission *old = NULL;

    for (unsigned i = 0; i < m->n_permissions; i++) {
        struct permission *p = &m->permissions[i];

        if (is_same(&p->to, &seen)) {
            p->at = now;
            return;
        }
        if (now - p->at >= n->timeout)
            old = p;
    }
    if (!old && m->n_permissions == m->cap_permissions) {
        m->cap_permissions = m->cap_permissions ? 2 * m->cap_permissions : 4;
        m->permissions = realloc(m->permissions, m->cap_permissions * sizeof(struct permission));
        assert(m->permissions);
    }
    if (!old)
        old = &m->permissions[m->n_permissions++];
    *old = (struct permission){seen, now};
}

/* ---- strangers ------------------------------------------------------------------------------ */

static struct sim_taken *find_taken(struct sim_nat *n, const struct endpoint *from, uint16_t port)
{
    for (unsigned i = 0; i < n->n_taken; i++)
        if (n->taken[i].port == port && is_same(&n->taken[i].from, from))
            return &n->taken[i];
    return NULL;
}

static void take_stranger(struct sim_nat *n, const struct endpoint *from, uint16_t port, nsec_t now)
{
    struct sim_taken *t = find_taken(n, from, port);

    if (!t) {
        n->taken = realloc(n->taken, (n->n_taken + 1) * sizeof(*n->taken));
        assert(n->taken);
        t = &n->taken[n->n_taken++];
    }
    *t = (struct sim_taken){*from, port, now};
}

static bool has_permission(
    const struct sim_nat *n, const struct sim_mapping *m, const struct endpoint *from, nsec_t now)
{
    struct endpoint seen = seen_by(n->kind.filtering, from);

    for (unsigned k = 0; k < m->n_permissions; k++)
        if (is_same(&m->permissions[k].to, &seen) && now - m->permissions[k].at < n->timeout)
            return true;
    return false;
}

/* Does connection tracking keep the port of @m for what @to has sent to the gateway? */
static bool is_kept_from(
    struct sim_nat *n, const struct sim_mapping *m, const struct endpoint *to, nsec_t now)
{
    const struct sim_taken *t = find_taken(n, to, m->outer.port);

    return t && now - t->at < SIM_TAKEN_FOR && !has_permission(n, m, to, now);
}

/* ---- packets -------------------------------------------------------------------------------- */

/* The mapping of @inner towards exactly @to, where the usual one was kept from it. */
static struct sim_mapping *find_own(
    struct sim_nat *n, const struct endpoint *inner, const struct endpoint *to, nsec_t now)
{
    for (unsigned i = 0; i < n->n_mappings; i++)
        if (is_same(&n->mappings[i]->inner, inner) && is_same(&n->mappings[i]->to, to) &&
            now - n->mappings[i]->used_at < n->timeout)
            return n->mappings[i];
    return NULL;
}

static struct sim_mapping *add_own(
    struct sim_nat *n, const struct endpoint *inner, const struct endpoint *to, nsec_t now)
{
    struct sim_mapping *m = find_own(n, inner, to, now);

    if (m)
        return m;
    expire(n, now);
    m = add_mapping(n, inner, to);
    m->to = *to;
    while (m->outer.port == inner->port || m->outer.port < 1024)
        m->outer.port = (uint16_t)(1024 + (m->outer.port * 31u + 7) % 64512);
    return m;
}

bool sim_nat_out(struct sim_nat *n, const struct endpoint *inner, const struct endpoint *to,
    nsec_t now, struct endpoint *ret_outer)
{
    struct endpoint seen = seen_by(n->kind.mapping, to);
    struct sim_mapping *m = NULL;

    if (n->kind.is_blocked)
        return false;
    for (unsigned i = 0; i < n->n_mappings && !m; i++)
        if (is_same(&n->mappings[i]->inner, inner) && is_same(&n->mappings[i]->to, &seen) &&
            now - n->mappings[i]->used_at < n->timeout)
            m = n->mappings[i];
    if (!m) {
        expire(n, now);
        m = add_mapping(n, inner, to);
    }
    if (n->kind.takes_strangers && is_kept_from(n, m, to, now))
        m = add_own(n, inner, to, now);
    m->used_at = now;
    permit(m, n, to, now);
    *ret_outer = m->outer;
    return true;
}

bool sim_nat_in(struct sim_nat *n, const struct endpoint *from, const struct endpoint *outer,
    nsec_t now, struct endpoint *ret_inner)
{
    for (unsigned i = 0; i < n->n_mappings; i++) {
        const struct sim_mapping *m = n->mappings[i];

        if (!is_same(&m->outer, outer) || now - m->used_at >= n->timeout)
            continue;
        if (has_permission(n, m, from, now)) {
            *ret_inner = m->inner;
            return true;
        }
    }
    if (n->kind.takes_strangers)
        take_stranger(n, from, outer->port, now);
    return false;
}
