/* edge_view.c - see edge_view.h. */
#include "edge_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/node.h"
#include "hub/watch/relay_lines.h"
#include "os/clock.h"

/* How long a WireGuard session lives without a new handshake, and by how much the hub's note that
 * a node was seen may be late. */
#define HANDSHAKE_LIFE_S 180
#define SEEN_SLACK_S     20

/* Most edges that one list of edge_view_list() names. */
#define EDGE_VIEW_LIST_MAX 10000

bool edge_pair_find(struct edge_pair *ret, const struct model_network *net, const char *name)
{
    const char *middle = strstr(name, "--");
    char first[NAME_MAX_LEN + 1];

    if (!middle || middle - name > NAME_MAX_LEN)
        return false;
    memcpy(first, name, (size_t)(middle - name));
    first[middle - name] = '\0';
    ret->nodes[0] = model_find_node(net, first);
    ret->nodes[1] = model_find_node(net, middle + 2);
    return ret->nodes[0] && ret->nodes[1];
}

void edge_pairs_deinit(struct edge_pairs *p)
{
    free(p->items);
    *p = (struct edge_pairs)EDGE_PAIRS_NULL;
}

static const char *name_of(const struct model_node *node)
{
    return node->spec.meta.name;
}

static int add(struct edge_pairs *p, const struct model_node *a, const struct model_node *b)
{
    bool in_order = strcmp(name_of(a), name_of(b)) < 0;
    struct edge_pair *items = sorted_open(p->items, p->n, sizeof(*items), p->n, &p->cap);

    if (!items)
        return -ENOMEM;
    p->items = items;
    items[p->n++] = (struct edge_pair){{in_order ? a : b, in_order ? b : a}};
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct edge_pair *a = left;
    const struct edge_pair *b = right;
    int order = a->nodes[0] == b->nodes[0] ? 0 : strcmp(name_of(a->nodes[0]), name_of(b->nodes[0]));

    return order ? order : strcmp(name_of(a->nodes[1]), name_of(b->nodes[1]));
}

/* ---- which there are ------------------------------------------------------------------------ */

static int add_parts(
    struct edge_pairs *p, const struct model_node *node, const struct edge_parts *parts)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < parts->n; i++) {
        const struct model_node *peer = model_find_node(node->net, parts->items[i]->peer);

        if (peer && peer != node)
            r = add(p, node, peer);
    }
    return r;
}

static bool has_agent(const struct model_node *node)
{
    return node_has_agent(&node->spec);
}

static int add_implied(
    struct edge_pairs *p, const struct model_network *net, const struct model_node *node)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < net->nodes.n; i++) {
        const struct model_node *other = model_node_at(net, i);

        if (other != node && !other->spec.hub && model_may_talk(node, other))
            r = add(p, node, other);
    }
    return r;
}

int edge_pairs_known(struct edge_pairs *ret, const struct model_network *net, bool and_implied)
{
    struct edge_pairs p = EDGE_PAIRS_NULL;
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < net->edges.n; i++) {
        const struct model_edge *edge = model_edge_at(net, i);

        if (edge->ends[0].node && edge->ends[1].node)
            r = add(&p, edge->ends[0].node, edge->ends[1].node);
    }
    for (size_t i = 0; r == 0 && i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        const struct report *rp = &node->reported->heard.report;
        /* Its agent was never heard, has applied nothing, or cannot apply anything. */
        bool is_unapplied = has_agent(node) && (node->reported->reported_at == 0 || rp->error ||
                                                   (rp->has_applied && rp->applied == 0));

        r = add_parts(&p, node, &node->reported->heard.report.edges);
        if (r == 0)
            r = add_parts(&p, node, &node->reported->heard.probed);
        /* Where no agent runs, all implied pairs are in the same state, and the list has a limit;
         * so it does not matter which of them are missing. */
        if (r == 0 && and_implied && is_unapplied && p.n < 4 * EDGE_VIEW_LIST_MAX)
            r = add_implied(&p, net, node);
    }
    if (p.n > 0)
        qsort(p.items, p.n, sizeof(*p.items), compare);
    for (size_t i = 0; i < p.n; i++)
        if (n == 0 || compare(&p.items[n - 1], &p.items[i]) != 0)
            p.items[n++] = p.items[i];
    p.n = n;
    if (r < 0)
        edge_pairs_deinit(&p);
    else
        *ret = p;
    return r;
}

/* ---- how they are --------------------------------------------------------------------------- */

static const struct mesh_edge *spec_of(const struct edge_pair *pair)
{
    const struct model_edge *edge =
        model_find_edge(pair->nodes[0]->net, name_of(pair->nodes[0]), name_of(pair->nodes[1]));

    return edge ? &edge->spec : NULL;
}

/* Without an agent it need not be there: what it is asked for may find it switched off. */
static bool is_away(const struct model_node *node, int64_t wall_s)
{
    return node->spec.stock &&
           wall_s - node->reported->heard.last_seen_at >= HANDSHAKE_LIFE_S + SEEN_SLACK_S;
}

/* When its machine was known to be there. Of a node that another hub serves, nobody here can tell.
 */
static int64_t there_at(const struct model_node *node)
{
    bool is_elsewhere =
        store_is_shared(node->net->model->store) && list_is_empty(&node->watched->watches);

    return is_elsewhere ? PAIR_ALWAYS_THERE : node->reported->there_at;
}

/* Since when a part says what it says. One that is kept from an earlier run of the hub is older
 * than all that was heard in this one. */
static int64_t since_of(const struct edge_part *part)
{
    return part && part->since != 0 ? part->since : 1;
}

static struct pair_end end_of(
    const struct model_node *node, const struct model_node *peer, int64_t wall_s)
{
    const struct report_record *heard = &node->reported->heard;
    const struct edge_part *said = edge_parts_find(&heard->report.edges, name_of(peer));
    const struct edge_part *probed =
        node->reported->is_probe_silent ? NULL : edge_parts_find(&heard->probed, name_of(peer));

    return (struct pair_end){.node = name_of(node),
        .key = &node->spec.key,
        .said = said ? &said->said : NULL,
        .said_at = since_of(said),
        .probed = probed ? &probed->probed : NULL,
        .probed_at = since_of(probed),
        .error = heard->report.error,
        .silent_for = node->reported->reported_at == 0       ? -1
                      : wall_s > node->reported->reported_at ? wall_s - node->reported->reported_at
                                                             : 0,
        .there_at = there_at(node),
        .has_agent = has_agent(node),
        .tells_applied = heard->report.has_applied,
        .applied = heard->report.applied,
        .is_down = node->reported->is_down,
        .is_away = is_away(node, wall_s)};
}

void edge_view_facts(const struct edge_pair *pair, int64_t wall_s, struct pair_facts *ret)
{
    const struct model_node *a = pair->nodes[0];
    const struct model_node *b = pair->nodes[1];

    *ret = (struct pair_facts){.spec = spec_of(pair),
        .wants_relay = a->net->spec.topology == TOPOLOGY_HUB,
        .ends = {end_of(a, b, wall_s), end_of(b, a, wall_s)}};
}

/* @asking: by a full relay the pair may be asked to go another way. */
static void assess(const struct edge_pair *pair, const struct relay_lines_asking *asking,
    int64_t wall_s, struct pair_facts *ret_facts, struct pair_verdict *ret)
{
    const struct model_node *relay = relay_lines_asks(asking, pair->nodes[0], pair->nodes[1]);

    edge_view_facts(pair, wall_s, ret_facts);
    pair_assess(ret_facts, ret);
    if (relay && ret->state > EDGE_STATE_NONE)
        (void)snprintf(ret->why, sizeof(ret->why),
            "the line of %.63s is full, and has asked the pair to go another way", name_of(relay));
}

/* What a part says that is true no more, since who said it is not heard, or whom it is about is
 * down. */
static struct edge_probed current_of(
    const struct edge_probed *p, const struct model_node *node, const struct model_node *peer)
{
    struct edge_probed ret = *p;

    if (node->reported->is_down || node->reported->is_probe_silent)
        return (struct edge_probed){.endpoint = p->endpoint};
    if (!peer->reported->is_down)
        return ret;
    if (ret.tunnel == EDGE_REACH_REACHED)
        ret.tunnel = EDGE_REACH_UNKNOWN;
    if (ret.underlay == EDGE_REACH_REACHED)
        ret.underlay = EDGE_REACH_UNKNOWN;
    ret.is_heard = false;
    ret.rtt_us = ret.underlay_rtt_us = 0;
    return ret;
}

static bool is_stale(const struct model_node *node, enum edge_owner owner, int64_t wall_s)
{
    const struct reported_node *r = node->reported;

    if (owner == EDGE_OWNER_PROBE)
        return r->is_down || r->is_probe_silent;
    return r->is_down || (has_agent(node) && wall_s - r->reported_at >= EDGE_SILENT_AFTER);
}

/* What it has measured of the line, the last day, or, @is_whole, each day. */
static void add_daily(json_t *part, const struct daily_peer *days, bool is_whole)
{
    if (!days || days->n == 0)
        return;
    (void)json_object_set_new(part, "line", daily_sample_encode(&days->days[days->n - 1]));
    if (is_whole)
        (void)json_object_set_new(part, "lineByDay", daily_peer_encode(days));
}

static void add_part(json_t *status, const struct model_node *node, const struct model_node *peer,
    enum edge_owner owner, bool is_whole, int64_t wall_s)
{
    const struct report *rp = &node->reported->heard.report;
    bool is_agent = owner == EDGE_OWNER_AGENT;
    int64_t heard_at = is_agent ? node->reported->reported_at : node->reported->probe_at;
    const struct edge_part *part =
        edge_parts_find(is_agent ? &rp->edges : &node->reported->heard.probed, name_of(peer));
    char field[OBJECT_NAME_MAX + 1];
    char at[CLOCK_TEXT_MAX];
    json_t *json;

    if (!part && !(is_agent && (rp->has_applied || daily_find(&rp->daily, name_of(peer)))))
        return;
    if (!part) {
        json = json_object();
    } else if (is_agent) {
        json = edge_part_encode(part, owner, wall_s);
    } else {
        struct edge_probed probed = current_of(&part->probed, node, peer);

        json = edge_probed_encode(&probed);
    }
    if (is_stale(node, owner, wall_s))
        (void)json_object_set_new(json, "stale", json_true());
    /* What is dead, or was measured by who is not heard, has no round trip. */
    if (is_agent && (peer->reported->is_down || is_stale(node, owner, wall_s)))
        (void)json_object_del(json, "rtt");
    if (is_agent)
        add_daily(json, daily_find(&rp->daily, name_of(peer)), is_whole);
    /* What holds for all its edges; each edge shows it. */
    if (is_agent && rp->has_applied)
        (void)json_object_set_new(json, "applied",
            json_pack("{s:I, s:s, s:s*}", "revision", (json_int_t)rp->applied, "engine", rp->engine,
                "error", rp->error));
    /* What is kept from an earlier run of the hub has no time. */
    if (heard_at > 0)
        (void)json_object_set_new(json, "observedAt", json_string(clock_text(at, heard_at)));
    (void)snprintf(
        field, sizeof(field), "%s/%.*s", edge_owner_names[owner], NAME_MAX_LEN, name_of(node));
    (void)json_object_set_new(status, field, json);
}

static json_t *status_of(const struct edge_pair *pair, const struct relay_lines_asking *asking,
    bool is_whole, int64_t wall_s)
{
    json_t *status = json_object();
    struct pair_verdict verdict;
    struct pair_facts facts;

    for (unsigned i = 0; i < 2; i++)
        for (unsigned o = 0; o < EDGE_OWNER_N; o++)
            add_part(
                status, pair->nodes[i], pair->nodes[1 - i], (enum edge_owner)o, is_whole, wall_s);
    assess(pair, asking, wall_s, &facts, &verdict);
    (void)json_object_set_new(status, "hub",
        json_pack("{s:s, s:s}", "state", edge_state_names[verdict.state], "why", verdict.why));
    return status;
}

static uint32_t shorter_of(uint32_t a, uint32_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static uint32_t rtt_of(const struct pair_end *end)
{
    return end->probed ? end->probed->rtt_us : 0;
}

/* The agent's that has the shorter median; NULL: neither knows one. */
static const struct rtt_spread *spread_of(const struct pair_facts *f)
{
    const struct rtt_spread *ret = NULL;

    for (unsigned i = 0; i < 2; i++) {
        const struct edge_said *said = f->ends[i].said;

        if (said && rtt_spread_is_known(&said->spread) &&
            (!ret || said->spread.p50_us < ret->p50_us))
            ret = &said->spread;
    }
    return ret;
}

void edge_view_figures_of(const struct pair_facts *f, struct edge_figures *ret)
{
    const struct rtt_spread *spread = spread_of(f);
    struct pair_verdict verdict;

    pair_assess(f, &verdict);
    *ret = (struct edge_figures){.state = verdict.state};
    ret->is_alive = !f->ends[0].is_down && !f->ends[1].is_down &&
                    (verdict.state == EDGE_STATE_FELL || verdict.state >= EDGE_STATE_STREAM);
    if (!ret->is_alive)
        return;
    ret->rtt_us = shorter_of(rtt_of(&f->ends[0]), rtt_of(&f->ends[1]));
    ret->direct_rtt_us = spread ? spread->p50_us : 0;
    ret->jitter_us = spread ? spread->jitter_us : 0;
    /* What does not arrive is known where it should. */
    for (unsigned i = 0; i < 2; i++) {
        const struct edge_said *said = f->ends[1 - i].said;

        ret->has_loss[i] = said && loss_rate_is_known(&said->loss);
        ret->loss_ppm[i] = ret->has_loss[i] ? loss_rate_ppm(&said->loss) : 0;
    }
}

void edge_view_figures(const struct edge_pair *pair, int64_t wall_s, struct edge_figures *ret)
{
    struct pair_facts f;

    edge_view_facts(pair, wall_s, &f);
    edge_view_figures_of(&f, ret);
}

json_t *edge_view_status(const struct edge_pair *pair, int64_t wall_s)
{
    struct relay_lines_asking asking;

    relay_lines_asking(pair->nodes[0]->net, &asking);
    return status_of(pair, &asking, false, wall_s);
}

json_t *edge_view_object(const struct edge_pair *pair, int64_t wall_s)
{
    const struct mesh_edge *said = spec_of(pair);
    const struct node *a = &pair->nodes[0]->spec;
    const struct node *b = &pair->nodes[1]->spec;
    struct relay_lines_asking asking;
    struct mesh_edge spec = MESH_EDGE_NULL;
    json_t *json;

    if (said) {
        spec = *said;
    } else {
        (void)edge_name(a->meta.name, b->meta.name, spec.meta.name);
        memcpy(spec.meta.network, a->meta.network, sizeof(spec.meta.network));
        memcpy(spec.nodes[0], a->meta.name, NAME_MAX_LEN);
        memcpy(spec.nodes[1], b->meta.name, NAME_MAX_LEN);
    }
    relay_lines_asking(pair->nodes[0]->net, &asking);
    spec.status = status_of(pair, &asking, true, wall_s);
    json = mesh_edge_encode(&spec);
    json_decref(spec.status);
    return json;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* A list in the making. */
struct edge_list {
    const struct model_network *net;
    int64_t wall_s;
    struct relay_lines_asking asking;
    struct edge_pairs known; /* owns; of which something is known */
    json_t *rows;            /* owns */
    size_t counts[EDGE_STATE_N];
    size_t n_looks; /* at pairs of which nobody says anything */
};

static bool is_full(const struct edge_list *l)
{
    return json_array_size(l->rows) >= EDGE_VIEW_LIST_MAX;
}

static bool is_trouble(enum edge_state state)
{
    return state > EDGE_STATE_OFF && state <= EDGE_STATE_NONE;
}

static json_t *make_row(const struct edge_list *l, const struct edge_pair *pair,
    const struct pair_verdict *v, int64_t since)
{
    const char *a = name_of(pair->nodes[0]);
    const char *b = name_of(pair->nodes[1]);
    char name[OBJECT_NAME_MAX + 1];

    return json_pack("{s:s, s:[s, s], s:s, s:s, s:o*, s:o*, s:b, s:o}", "name",
        edge_name(a, b, name), "nodes", a, b, "state", edge_state_names[v->state], "why", v->why,
        "since", since > 0 ? json_integer(since) : NULL, "forSeconds",
        since > 0 ? json_integer(l->wall_s > since ? l->wall_s - since : 0) : NULL, "trouble",
        (int)is_trouble(v->state), "status", status_of(pair, &l->asking, false, l->wall_s));
}

/* A row for the pair, if it is in trouble or not as @in_trouble says. */
static void look_at(struct edge_list *l, const struct edge_pair *pair, bool in_trouble)
{
    struct pair_verdict verdict;
    struct pair_facts facts;

    assess(pair, &l->asking, l->wall_s, &facts, &verdict);
    if (is_trouble(verdict.state) != in_trouble)
        return;
    l->counts[verdict.state]++;
    if (!is_full(l))
        (void)json_array_append_new(
            l->rows, make_row(l, pair, &verdict, pair_since(&facts, verdict.state, l->wall_s)));
}

/* The pair of two nodes of which nobody says anything. Hubs speak to all, and are known. */
static void look_at_unsaid(struct edge_list *l, size_t i, size_t j, bool in_trouble)
{
    const struct model_node *a = model_node_at(l->net, i < j ? i : j);
    const struct model_node *b = model_node_at(l->net, i < j ? j : i);
    struct edge_pair pair = {{a, b}};

    l->n_looks++;
    if (a->spec.hub || b->spec.hub ||
        (l->known.n > 0 && bsearch(&pair, l->known.items, l->known.n, sizeof(pair), compare)))
        return;
    look_at(l, &pair, in_trouble);
}

/* Is what would be said of its pairs old? */
static bool is_lost(const struct model_node *node, int64_t wall_s)
{
    return is_stale(node, EDGE_OWNER_AGENT, wall_s);
}

/* In trouble are those with a node that is not heard; of two such nodes the pair comes once. */
static void add_unsaid(struct edge_list *l, bool in_trouble)
{
    size_t n = l->net->nodes.n;

    l->n_looks = 0;
    for (size_t i = 0; i < n; i++) {
        if (in_trouble && !is_lost(model_node_at(l->net, i), l->wall_s))
            continue;
        for (size_t j = in_trouble ? 0 : i + 1; j < n; j++) {
            if (is_full(l) || l->n_looks >= 4 * EDGE_VIEW_LIST_MAX)
                return;
            if (j != i && (!in_trouble || j > i || !is_lost(model_node_at(l->net, j), l->wall_s)))
                look_at_unsaid(l, i, j, in_trouble);
        }
    }
}

/* Pairs that the network has beside those that are known. */
static size_t count_unsaid(const struct edge_list *l)
{
    size_t n = 0;
    size_t n_known = 0;

    for (size_t i = 0; i < l->net->nodes.n; i++)
        n += !model_node_at(l->net, i)->spec.hub;
    for (size_t i = 0; i < l->known.n; i++)
        n_known += !l->known.items[i].nodes[0]->spec.hub && !l->known.items[i].nodes[1]->spec.hub;
    return n * (n - (n > 0)) / 2 - n_known;
}

static json_t *list_encode(const struct edge_list *l, size_t n)
{
    json_t *by_state = json_object();

    for (unsigned s = 0; s < EDGE_STATE_N; s++)
        if (l->counts[s] > 0)
            (void)json_object_set_new(
                by_state, edge_state_names[s], json_integer((json_int_t)l->counts[s]));
    return json_pack("{s:O, s:o, s:I}", "edges", l->rows, "counts", by_state, "leftOut",
        (json_int_t)(n - json_array_size(l->rows)));
}

static json_t *list(const struct model_network *net, int64_t wall_s, bool and_unsaid)
{
    struct edge_list l = {.net = net, .wall_s = wall_s, .rows = json_array()};
    json_t *ret = NULL;

    relay_lines_asking(net, &l.asking);
    if (l.rows && edge_pairs_known(&l.known, net, true) == 0) {
        for (unsigned round = 0; round < 2; round++) {
            for (size_t i = 0; i < l.known.n; i++)
                look_at(&l, &l.known.items[i], round == 0);
            if (and_unsaid)
                add_unsaid(&l, round == 0);
        }
        ret = list_encode(&l, l.known.n + (and_unsaid ? count_unsaid(&l) : 0));
    }
    edge_pairs_deinit(&l.known);
    json_decref(l.rows);
    return ret;
}

json_t *edge_view_list(const struct model_network *net, int64_t wall_s)
{
    return list(net, wall_s, false);
}

json_t *edge_view_list_all(const struct model_network *net, int64_t wall_s)
{
    return list(net, wall_s, true);
}
