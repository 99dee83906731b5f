/* local_candidates.c - see local_candidates.h. */
#include "agent/paths/socket/local_candidates.h"

#include <string.h>

#include "base/rng.h"
#include "mesh/snapshot/snapshot.h"

/* A round trip is taken for the present one for so long: three times what it takes to be measured
 * anew (stun_client.c). */
#define RTT_LIFE (90 * NSEC_PER_SEC)

void local_candidates_init(
    struct local_candidates *lc, const struct endpoint *given, unsigned n_given)
{
    *lc = (struct local_candidates){.given = given, .n_given = n_given};
}

void local_candidates_set_mapping(struct local_candidates *lc, const struct port_mapping *pm)
{
    lc->mapping = *pm;
}

bool local_candidates_set_blocked(struct local_candidates *lc, bool is_blocked)
{
    bool is_new = is_blocked != lc->is_blocked;

    lc->is_blocked = is_blocked;
    return is_new;
}

bool local_candidates_set_keepalive(struct local_candidates *lc, nsec_t keepalive)
{
    bool is_new = keepalive != lc->keepalive;

    lc->keepalive = keepalive;
    return is_new;
}

/* ---- servers -------------------------------------------------------------------------------- */

void local_candidates_set_servers(struct local_candidates *lc, const struct snapshot *s, nsec_t now)
{
    struct endpoint servers[STUN_CLIENT_SERVERS_MAX];
    unsigned n = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node_hub *hub = s->nodes.items[i]->node.hub;

        for (unsigned k = 0; hub && k < hub->n_endpoints && n + 2 <= STUN_CLIENT_SERVERS_MAX; k++) {
            servers[n++] = hub->endpoints[k];
            servers[n] = hub->endpoints[k];
            servers[n++].port = hub->api_port;
        }
    }
    stun_client_set_servers(&lc->stun, servers, n, now);
}

void local_candidates_set_blocks(struct local_candidates *lc, const struct candidate_blocks *blocks)
{
    lc->blocks = *blocks;
}

void local_candidates_set_addresses(
    struct local_candidates *lc, const struct ip_addr *addrs, unsigned n, uint16_t port, nsec_t now)
{
    lc->port = port;
    lc->n_own = 0;
    for (unsigned i = 0; i < n && i < CANDIDATES_MAX; i++)
        lc->own[lc->n_own++] = (struct endpoint){.addr = addrs[i], .port = port};
    behavior_survey_clear(&lc->survey);
    lc->fresh.port = 0;
    stun_client_forget(&lc->stun, now);
}

void local_candidates_restart(struct local_candidates *lc, nsec_t now)
{
    stun_client_restart(&lc->stun, now);
}

bool local_candidates_next(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret, nsec_t now)
{
    return stun_client_next(&lc->stun, now, rng, &ret->to, ret->bytes);
}

nsec_t local_candidates_due(const struct local_candidates *lc)
{
    return stun_client_due(&lc->stun);
}

/* Has the NAT given us another port towards that server since? Then that port is the newest. */
static bool is_moved(const struct local_candidates *lc, const struct stun_view *v)
{
    for (unsigned i = 0; i < lc->survey.n; i++)
        if (endpoint_equal(&lc->survey.samples[i].server, &v->server))
            return !endpoint_equal(&lc->survey.samples[i].mapped, &v->mapped);
    return true;
}

bool local_candidates_on_answer(struct local_candidates *lc, const uint8_t *msg, size_t len,
    const struct endpoint *from, nsec_t at)
{
    const struct stun_view *v = stun_client_take(&lc->stun, msg, len, from, at);

    if (!v)
        return false;
    if (is_moved(lc, v))
        lc->fresh.port = 0;
    behavior_survey_add(&lc->survey, &v->server, &v->mapped, v->heard_at);
    return true;
}

/* ---- the newest port of a NAT that counts --------------------------------------------------- */

/* Where a server has answered over IPv4; NULL: none has. */
static const struct endpoint *find_server(const struct local_candidates *lc)
{
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0 && ip_addr_is_v4(&lc->stun.views[i].server.addr))
            return &lc->stun.views[i].server;
    return NULL;
}

bool local_candidates_begin_fresh(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret)
{
    const struct endpoint *server = find_server(lc);

    if (!server || behavior_of(&lc->survey, lc->own, lc->n_own).port_step == 0)
        return false;
    lc->fresh.server = *server;
    rng_fill(rng, lc->fresh.id.b, sizeof(lc->fresh.id.b));
    ret->to = *server;
    stun_encode_request(&lc->fresh.id, ret->bytes);
    return true;
}

bool local_candidates_on_fresh(
    struct local_candidates *lc, const uint8_t *msg, size_t len, const struct endpoint *from)
{
    struct stun_response resp;

    if (!endpoint_equal(from, &lc->fresh.server) || stun_decode_response(&resp, msg, len) != 0 ||
        memcmp(resp.id.b, lc->fresh.id.b, sizeof(resp.id.b)) != 0)
        return false;
    lc->fresh.server = (struct endpoint){.port = 0};
    lc->fresh.port = resp.mapped.port;
    return true;
}

/* ---- what is known -------------------------------------------------------------------------- */

/* The overlay's own addresses are left out, whatever an interface that has one is called, and
 * whoever has given or seen it. */
static void add(const struct local_candidates *lc, struct candidates *c, enum candidate_kind kind,
    const struct endpoint *ep)
{
    if (!candidate_blocks_have(&lc->blocks, &ep->addr))
        (void)candidates_add(c, kind, ep);
}

static void add_candidates(const struct local_candidates *lc, struct candidates *c)
{
    for (unsigned i = 0; i < lc->n_own; i++)
        add(lc, c, CANDIDATE_HOST, &lc->own[i]);
    for (unsigned i = 0; i < lc->n_given; i++) {
        struct endpoint ep = lc->given[i];

        if (ep.port == 0)
            ep.port = lc->port;
        add(lc, c, CANDIDATE_GIVEN, &ep);
    }
    if (lc->mapping.kind != PORT_MAPPING_NONE)
        add(lc, c, CANDIDATE_MAPPED, &lc->mapping.external);
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0)
            add(lc, c, CANDIDATE_REFLEXIVE, &lc->stun.views[i].mapped);
}

void local_candidates_fill(const struct local_candidates *lc, struct path_side *side)
{
    side->candidates = (struct candidates){.n = 0};
    add_candidates(lc, &side->candidates);
    side->nat = behavior_of(&lc->survey, lc->own, lc->n_own);
    side->nat.is_blocked = lc->is_blocked;
    if (side->nat.port_step != 0 && lc->fresh.port != 0)
        side->nat.last_port = lc->fresh.port;
    side->keepalive = lc->keepalive;
    side->can_guess = true;
}

struct ip_addr local_candidates_outside(
    const struct local_candidates *lc, const struct endpoint *server)
{
    for (unsigned i = 0; i < lc->stun.n_views; i++)
        if (lc->stun.views[i].heard_at != 0 && endpoint_equal(&lc->stun.views[i].server, server))
            return lc->stun.views[i].mapped.addr;
    return (struct ip_addr){{0}};
}

/* It was measured, not too long ago, and loses nothing. */
static bool is_measured(const struct stun_view *v, nsec_t now)
{
    return v->heard_at != 0 && now - v->heard_at < RTT_LIFE && !stun_view_is_full(v);
}

nsec_t local_candidates_hub_rtt(
    const struct local_candidates *lc, const struct endpoint *hub, nsec_t now)
{
    nsec_t least = 0;

    for (unsigned i = 0; i < lc->stun.n_views; i++) {
        const struct stun_view *v = &lc->stun.views[i];

        if (endpoint_equal(&v->server, hub))
            return is_measured(v, now) ? nsec_max(v->rtt, 1) : 0;
        if (is_measured(v, now) && (least == 0 || v->rtt < least))
            least = nsec_max(v->rtt, 1);
    }
    return least;
}
