/* health.c - see health.h. */
#include "hub/watch/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health/node.h"
#include "health/pair.h"
#include "health/way_loss.h"
#include "health/way_rate.h"
#include "hub/overlay/overlay.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/relay_lines.h"
#include "hub/watch/watch.h"
#include "store/store.h"

/* Most pairs that wait to be looked at again. What has no room is looked at with all pairs. */
#define WAITING_MAX 4000

/* A WireGuard session whose handshake is younger than this is in use. */
#define SESSION_LIFE (180 * NSEC_PER_SEC)

/* A node's check takes some seconds itself, s. */
#define CHECK_TAKES_S 10

/* What a probe of an earlier run of the hub has said counts for so long, s. */
#define KEPT_PROBES_S 60

struct health_network {
    struct keyed keyed; /* its name */
    struct findings found;
    struct findings slow; /* ways that jobs find slow, by the last pass */
    struct keys waiting;  /* of struct keyed alone: pairs, by their names */
    bool is_again;        /* all pairs are to be looked at again */
    nsec_t again_at;      /* when they were */
};

static const struct findings nothing;

void health_init(struct health *h, struct model *model, struct edge_events *events)
{
    *h = (struct health){.model = model, .events = events};
}

static void empty(struct health_network *hn)
{
    findings_deinit(&hn->found);
    findings_deinit(&hn->slow);
    keys_free_all(&hn->waiting);
}

void health_deinit(struct health *h)
{
    for (size_t i = 0; i < h->networks.n; i++)
        empty(container_of(h->networks.items[i], struct health_network, keyed));
    keys_free_all(&h->networks);
}

void health_forget(struct health *h, const char *network)
{
    struct health_network *hn = keys_find(&h->networks, network);

    if (!hn)
        return;
    empty(hn);
    keys_free(&h->networks, &hn->keyed);
}

const struct findings *health_of(const struct health *h, const char *network)
{
    const struct health_network *hn = keys_find(&h->networks, network);

    return hn ? &hn->found : &nothing;
}

static struct health_network *open_network(struct health *h, const char *network)
{
    return keys_open(&h->networks, network, sizeof(struct health_network));
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Of these there are events of their own, which whoever notices them adds. */
static const bool has_own_event[FINDING_CODE_N] = {
    [FINDING_NODE_AGENT_SILENT] = true,
    [FINDING_NODE_NEVER_APPLIED] = true,
    [FINDING_NODE_COPIED] = true,
    [FINDING_APPLY_FAILED] = true,
    [FINDING_PAIR_APPLY_FAILED] = true,
    [FINDING_PAIR_UNREACHED] = true,
    [FINDING_PAIR_NO_PATH] = true,
    [FINDING_PAIR_FELL_BACK] = true,
    [FINDING_HUB_STORE_BEHIND] = true,
    [FINDING_BUDGET_NEAR] = true,
    [FINDING_BUDGET_SPENT] = true,
};

/* Whom a look at a subject tells. */
struct looked_at_by {
    struct health *h;
    const char *network;
    int64_t wall_s;
};

static void on_changed(void *arg, const struct finding *f, bool is_over)
{
    const struct looked_at_by *by = arg;

    if (has_own_event[f->code])
        return;
    edge_events_add(
        by->h->events, &(struct edge_event){.kind = is_over ? EDGE_EVENT_GONE : EDGE_EVENT_FOUND,
                           .at = by->wall_s,
                           .network = by->network,
                           .object = f->subject,
                           .code = finding_kinds[f->code].code,
                           .text = f->text});
}

static void end_look(struct health *h, struct findings *found, const char *network,
    const char *subject, int64_t wall_s)
{
    findings_done(found, subject, on_changed,
        &(struct looked_at_by){.h = h, .network = network, .wall_s = wall_s});
}

struct findings *health_begin(
    struct health *h, const char *network, enum finding_subject about, const char *subject)
{
    struct health_network *hn = open_network(h, network);

    if (hn)
        findings_look_as(&hn->found, about, subject);
    return hn ? &hn->found : NULL;
}

void health_end(struct health *h, const char *network, const char *subject, int64_t wall_s)
{
    struct health_network *hn = keys_find(&h->networks, network);

    if (hn)
        end_look(h, &hn->found, network, subject, wall_s);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int64_t since_s(int64_t wall_s, int64_t then)
{
    return wall_s > then ? wall_s - then : 0;
}

/* Since when its agent is not heard, s; -1: it never was. What is older than this run of the hub
 * counts from its beginning. */
static int64_t silent_for(const struct reported_node *r, const struct health_time *at)
{
    int64_t heard_at = r->reported_at > at->started_at ? r->reported_at : at->started_at;

    return r->reported_at == 0 ? -1 : since_s(at->wall_s, heard_at);
}

static bool is_unapplied(const struct reported_node *r)
{
    return r->reported_at == 0 || (r->heard.report.has_applied && r->heard.report.applied == 0);
}

/* A node that has just joined gets some time: from when it was seen, or its agent was heard. */
static int64_t unapplied_for(const struct reported_node *r, const struct health_time *at)
{
    int64_t seen_for = since_s(at->wall_s, r->heard.last_seen_at);
    int64_t run_for = since_s(at->wall_s, at->started_at);

    if (!is_unapplied(r))
        return -1;
    if (r->reported_at != 0)
        return r->unapplied_at != 0 ? since_s(at->wall_s, r->unapplied_at) : 0;
    return seen_for < run_for ? seen_for : run_for;
}

static int64_t lost_for(const struct model_node *node, const struct health_time *at)
{
    nsec_t lost = watch_lost_for(node, at->now);
    nsec_t handshake_at;

    /* It may be back, and not have opened its watch yet. */
    if (lost != 0 && overlay_read_handshake(node, &handshake_at) &&
        handshake_at > node->watched->lost_at)
        return 0;
    return lost / NSEC_PER_SEC;
}

/* For how long have packets of it come since it acknowledges nothing, s; -1: none have. Several
 * hubs do not know of each other's. */
static int64_t sending_for(const struct model_node *node, nsec_t now)
{
    struct reported_node *r = node->reported;
    struct overlay_facts facts;

    if (node->watched->lost_at == 0 || !overlay_read_facts(node, now, &facts))
        return -1;
    if (r->lost_at != node->watched->lost_at) {
        r->lost_at = node->watched->lost_at;
        r->lost_rx = facts.rx_bytes;
        r->sent_at = 0;
    }
    if (r->sent_at == 0 && facts.rx_bytes > r->lost_rx)
        r->sent_at = now;
    return r->sent_at == 0 ? -1 : (now - r->sent_at) / NSEC_PER_SEC;
}

static enum node_session session_of(const struct model_node *node, nsec_t now)
{
    nsec_t handshake_at;

    /* Another hub may have it. */
    if (store_is_shared(node->net->model->store) || !overlay_read_handshake(node, &handshake_at))
        return NODE_SESSION_UNKNOWN;
    return handshake_at > 0 && now - handshake_at < SESSION_LIFE ? NODE_SESSION_LIVE
                                                                 : NODE_SESSION_NONE;
}

static void tell(struct health *h, const struct model_node *node, enum edge_event_kind kind,
    int64_t wall_s, const char *text)
{
    edge_events_add(h->events, &(struct edge_event){.kind = kind,
                                   .at = wall_s,
                                   .network = node->net->spec.meta.name,
                                   .object = node->spec.meta.name,
                                   .text = text});
}

/* The events of their own that follow from a node's facts. */
static void tell_node(
    struct health *h, const struct model_node *node, const struct node_facts *facts, int64_t wall_s)
{
    struct reported_node *r = node->reported;
    char text[EDGE_EVENT_TEXT_MAX];

    if (node_is_silent(facts) && !r->was_silent) {
        r->was_silent = true;
        (void)snprintf(
            text, sizeof(text), "its agent has not been heard for %d s", EDGE_SILENT_AFTER);
        tell(h, node, EDGE_EVENT_SILENT, wall_s, text);
    } else if (r->was_silent && facts->silent_for < EDGE_SILENT_AFTER) {
        r->was_silent = false;
        tell(h, node, EDGE_EVENT_HEARD, wall_s, "its agent is heard again");
    }
    if (facts->unapplied_for >= EDGE_SILENT_AFTER && !r->was_unapplied) {
        r->was_unapplied = true;
        tell(h, node, EDGE_EVENT_NEVER_APPLIED, wall_s,
            facts->silent_for < 0 ? "its agent has never been heard"
                                  : "its agent has applied nothing yet");
    } else if (facts->unapplied_for < 0) {
        r->was_unapplied = false;
    }
}

/* Is what its probe said too old to count? A probe of an older version says nothing for as long as
 * nothing differs. */
static bool is_probe_silent(const struct model_node *node, const struct health_time *at)
{
    const struct reported_node *r = node->reported;

    if (r->probe_at != 0)
        return r->probe_every != 0 &&
               since_s(at->wall_s, r->probe_at) >= node_probe_limit(r->probe_every);
    return r->heard.probed.n > 0 && !store_is_shared(node->net->model->store) &&
           since_s(at->wall_s, at->started_at) >= KEPT_PROBES_S;
}

/* What a look at a node may find something by. One that is as it was when it was looked at last is
 * not looked at again. */
enum condition {
    CONDITION_LOST = 1 << 0,      /* it is not heard: others are asked about it */
    CONDITION_FAILING = 1 << 1,   /* its agent cannot apply what it is told */
    CONDITION_UNAPPLIED = 1 << 2, /* its agent is heard, and has applied nothing yet */
    CONDITION_LATE = 1 << 3,      /* it has had enough time to apply something */
    CONDITION_PROBE = 1 << 4,     /* what its probe said is not counted any more */
    CONDITION_COPIED = 1 << 5,    /* several machines run as it */
    CONDITION_LINE = 1 << 6,      /* it relays, and its line is near its limit */
    CONDITION_UNFIT = 1 << 7,     /* it fails its health check, as it says */
    CONDITION_DRAINED = 1 << 8,   /* it is drained */
    CONDITION_FORGOTTEN = 1 << 9, /* its NAT forgets it sooner than it says hello */
};

/* Does the node say that it fails its health check? One that says so no more is not known to. */
static bool is_unfit(const struct reported_node *r, const struct health_time *at)
{
    const struct reported_fitness *f = r->fitness;

    return f && f->n_failed >= FITNESS_CHECKS &&
           since_s(at->wall_s, f->said_at) <= 5 * (int64_t)f->every / 2 + CHECK_TAKES_S;
}

/* What its NAT forgets after, where the network says how often it says hello; 0: not known, no NAT,
 * or it does so as it has measured. */
static int64_t nat_forgets_s(const struct model_node *node)
{
    const struct report_nat *nat = &node->reported->heard.report.nat;
    bool is_set = node->net->spec.keepalive != NETWORK_KEEPALIVE_AUTO;

    return is_set && nat->is_measured && nat->is_natted ? (nat->forgotten_ms + 500) / 1000 : 0;
}

static unsigned conditions_of(const struct model_node *node, const struct health_time *at)
{
    const struct reported_node *r = node->reported;
    bool has_agent = node_has_agent(&node->spec);
    bool is_lost = has_agent && r->reported_at != 0 &&
                   (node->watched->lost_at != 0 || silent_for(r, at) >= EDGE_SILENT_AFTER);
    bool is_failing = has_agent && r->heard.report.error;
    bool is_known_unapplied = has_agent && r->reported_at != 0 && is_unapplied(r);
    bool is_late = has_agent && unapplied_for(r, at) >= EDGE_SILENT_AFTER;
    bool is_line =
        node->spec.relay && r->heard.report.line && r->heard.report.line->level != RELAY_LINE_OPEN;

    return (is_lost ? CONDITION_LOST : 0u) | (is_failing ? CONDITION_FAILING : 0u) |
           (is_known_unapplied ? CONDITION_UNAPPLIED : 0u) | (is_late ? CONDITION_LATE : 0u) |
           (is_probe_silent(node, at) ? CONDITION_PROBE : 0u) |
           (copies_are_there(&r->copies) ? CONDITION_COPIED : 0u) |
           (is_line ? CONDITION_LINE : 0u) | (is_unfit(r, at) ? CONDITION_UNFIT : 0u) |
           (node->spec.drained ? CONDITION_DRAINED : 0u) |
           (node_is_forgotten(nat_forgets_s(node), node->net->spec.keepalive) ? CONDITION_FORGOTTEN
                                                                              : 0u);
}

static void find_line(const struct model_node *node, struct findings *found, int64_t wall_s)
{
    struct line_facts facts;

    relay_lines_facts(node, &facts);
    line_find(&facts, found, wall_s);
}

/* What an agent finds, as the hub's own. */
static void add_own(struct findings *found, const struct finding *own, const char *subject)
{
    finding_set_fix(
        findings_add(found, own->code, subject, own->since, "%s", own->text), "%s", own->fix);
}

static bool is_of_itself(const struct finding *own)
{
    return own->subject[0] == '\0';
}

/* Of the way from this hub to the node. */
static void look_way(
    struct health *h, struct health_network *hn, const struct node_facts *facts, int64_t wall_s)
{
    char subject[FINDING_SUBJECT_MAX];

    (void)snprintf(subject, sizeof(subject), FINDING_HUB ">%.63s", facts->name);
    findings_look_as(&hn->found, FINDING_OF_WAY, subject);
    node_find_way(facts, &hn->found, subject, wall_s);
    end_look(h, &hn->found, hn->keyed.key, subject, wall_s);
}

/* @reached_by: a node whose probe reaches it; NULL: none, or it was not asked. */
static void look_node(struct health *h, struct health_network *hn, const struct model_node *node,
    const char *reached_by, const struct health_time *at)
{
    struct reported_node *r = node->reported;
    const char *name = node->spec.meta.name;
    char copies[COPIES_TEXT_MAX];
    struct node_facts facts = {.name = name,
        .reached_by = reached_by,
        .error = r->heard.report.error,
        .copies = copies,
        .silent_for = silent_for(r, at),
        .lost_for = lost_for(node, at),
        .probe_for = r->probe_at != 0 ? since_s(at->wall_s, r->probe_at) : -1,
        .probe_every = r->probe_every,
        .keepalive_s = node->net->spec.keepalive,
        .nat_forgets_s = nat_forgets_s(node),
        .there_for = r->there_at != 0 ? since_s(at->wall_s, r->there_at) : -1,
        .session = session_of(node, at->now),
        .drained = node->spec.drained,
        .has_agent = node_has_agent(&node->spec),
        .sending_for = sending_for(node, at->now)};
    bool was_found = r->is_found;
    bool was_down = r->is_down;
    bool was_probe_silent = r->is_probe_silent;
    bool is_heard;

    r->conditions = (uint16_t)conditions_of(node, at);
    if (is_unfit(r, at)) {
        facts.unfit = r->fitness->reason;
        facts.n_failed = r->fitness->n_failed;
    }
    if (r->fitness && r->fitness->hook[0] != '\0')
        facts.hook = r->fitness->hook;
    if (r->reported_at == 0 || !is_unapplied(r))
        r->unapplied_at = 0;
    else if (r->unapplied_at == 0)
        r->unapplied_at = at->wall_s;
    facts.unapplied_for = facts.has_agent ? unapplied_for(r, at) : -1;
    copies_explain(&r->copies, copies);
    r->is_down = node_is_down(&facts);
    is_heard = facts.has_agent && facts.silent_for >= 0 && !r->is_down && !node_is_silent(&facts);
    r->is_probe_silent = (r->conditions & CONDITION_PROBE) != 0;
    findings_look_as(&hn->found, FINDING_OF_NODE, name);
    r->is_found = node_find(&facts, &hn->found, at->wall_s);
    r->has_new_own = false;
    for (size_t i = 0; i < r->own.n && is_heard; i++)
        if (is_of_itself(r->own.items[i]))
            add_own(&hn->found, r->own.items[i], name);
    if ((r->conditions & CONDITION_LINE) && !r->is_down && !node_is_silent(&facts))
        find_line(node, &hn->found, at->wall_s);
    end_look(h, &hn->found, hn->keyed.key, name, at->wall_s);
    look_way(h, hn, &facts, at->wall_s);
    hn->is_again |= was_found != r->is_found || was_down != r->is_down ||
                    was_probe_silent != r->is_probe_silent;
    if ((was_found && !r->is_found) || (was_down && !r->is_down) ||
        (was_probe_silent && !r->is_probe_silent))
        r->settles_at = at->wall_s + HEALTH_SETTLES_S;
    if (facts.has_agent)
        tell_node(h, node, &facts, at->wall_s);
}

/* Its machine was there when it acknowledged something. */
static void note_there(const struct model_node *node, const struct health_time *at)
{
    nsec_t answered_at = node->watched->answered_at;
    int64_t there_at = at->wall_s - (at->now - answered_at) / NSEC_PER_SEC;

    if (answered_at != 0 && there_at > node->reported->there_at)
        node->reported->there_at = there_at;
}

/* What the probe of @from says, to those that it reaches. Both lists are in the order of names. */
static void note_reached(const struct model_network *net, const struct model_node *from,
    const char **reached_by, const struct health_time *at)
{
    const struct edge_parts *parts = &from->reported->heard.probed;
    size_t k = 0;

    if (parts->n == 0 || from->watched->lost_at != 0 || from->reported->probe_every == 0 ||
        is_probe_silent(from, at))
        return;
    for (size_t i = 0; i < parts->n && k < net->nodes.n; i++) {
        const struct edge_part *part = parts->items[i];

        if (part->probed.tunnel != EDGE_REACH_REACHED &&
            part->probed.underlay != EDGE_REACH_REACHED)
            continue;
        while (k < net->nodes.n && strcmp(net->nodes.items[k]->key, part->peer) < 0)
            k++;
        if (k < net->nodes.n && strcmp(net->nodes.items[k]->key, part->peer) == 0)
            reached_by[k] = from->spec.meta.name;
    }
}

static void pass_nodes(struct health *h, struct health_network *hn, const struct model_network *net,
    const struct health_time *at)
{
    const char **reached_by;
    bool is_any_lost = false;

    for (size_t i = 0; i < net->nodes.n; i++) {
        const struct model_node *node = model_node_at(net, i);
        unsigned conditions = conditions_of(node, at);

        note_there(node, at);
        if (conditions & CONDITION_LOST)
            is_any_lost = true;
        else if (conditions != node->reported->conditions ||
                 (conditions & (CONDITION_PROBE | CONDITION_LINE)) || node->reported->has_new_own)
            look_node(h, hn, node, NULL, at);
    }
    if (!is_any_lost)
        return;
    reached_by = calloc(net->nodes.n, sizeof(*reached_by));
    for (size_t i = 0; reached_by && i < net->nodes.n; i++)
        note_reached(net, model_node_at(net, i), reached_by, at);
    for (size_t i = 0; reached_by && i < net->nodes.n; i++)
        if (conditions_of(model_node_at(net, i), at) & CONDITION_LOST)
            look_node(h, hn, model_node_at(net, i), reached_by[i], at);
    free(reached_by);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* What a pair and its two ways are called as subjects. */
struct pair_names {
    char pair[FINDING_SUBJECT_MAX];
    char one_way[2][FINDING_SUBJECT_MAX]; /* [i]: from the node number i */
};

static void name_pair(const char *a, const char *b, struct pair_names *ret)
{
    (void)snprintf(ret->pair, sizeof(ret->pair), "%.63s--%.63s", a, b);
    (void)snprintf(ret->one_way[0], sizeof(ret->one_way[0]), "%.63s>%.63s", a, b);
    (void)snprintf(ret->one_way[1], sizeof(ret->one_way[1]), "%.63s>%.63s", b, a);
}

static void forget_waiting(struct health_network *hn, const char *pair)
{
    struct keyed *waiting = keys_find(&hn->waiting, pair);

    if (waiting)
        keys_free(&hn->waiting, waiting);
}

static void make_wait(struct health_network *hn, const char *pair)
{
    if (hn->waiting.n >= WAITING_MAX || !keys_open(&hn->waiting, pair, sizeof(struct keyed)))
        hn->is_again = true;
}

/* May what is said be of a time when something else was wrong? The clock may have been set back. */
static bool is_settling(int64_t settles_at, int64_t wall_s)
{
    return settles_at > wall_s && settles_at <= wall_s + HEALTH_SETTLES_S;
}

/* One that had never applied anything when it was looked at last may have done so since. */
static bool is_node_settling(const struct model_node *node, int64_t wall_s)
{
    return is_settling(node->reported->settles_at, wall_s) ||
           (node->reported->conditions & CONDITION_LATE);
}

static bool is_pair_settling(const struct health *h, const struct edge_pair *pair, int64_t wall_s)
{
    return is_settling(h->settles_at, wall_s) || is_node_settling(pair->nodes[0], wall_s) ||
           is_node_settling(pair->nodes[1], wall_s);
}

static bool has_to_wait(const struct health *h, const struct edge_pair *pair,
    const struct pair_verdict *v, int64_t wall_s)
{
    return v->waits || (v->code != FINDING_PAIR_KEY_REFUSED && is_pair_settling(h, pair, wall_s));
}

/* What is lost each way, by what the agent at its end has counted and still says. */
static void find_losses(struct findings *found, const struct pair_facts *f, int64_t wall_s)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct pair_end *to = &f->ends[i];
        const struct edge_said *said = to->said;
        bool is_old = !said || to->is_down || to->silent_for < 0 ||
                      to->silent_for >= EDGE_SILENT_AFTER || said->path == PATH_KIND_NONE;
        bool is_relayed = said && (said->path == PATH_KIND_RELAY || said->path == PATH_KIND_STREAM);

        way_loss_find(
            found, f->ends[1 - i].node, to->node, is_old ? NULL : &said->loss, is_relayed, wall_s);
    }
}

/* May what the end @i says of the other one follow from its machine's having gone? */
static bool is_other_gone(const struct edge_pair *pair, const struct pair_facts *f, unsigned i)
{
    const struct pair_end *other = &f->ends[1 - i];

    return other->is_down || other->is_away ||
           (other->has_agent && other->there_at < pair->nodes[i]->reported->own_at);
}

/* A probe tells a machine that is deaf from one that is dead or behind a cut, so where one reports
 * of the pair, that an agent has no answer says nothing more. */
static bool is_better_known(const struct pair_facts *f, enum finding_code code)
{
    return (f->ends[0].probed || f->ends[1].probed) &&
           (code == FINDING_PEER_SILENT || code == FINDING_HANDSHAKE_STALE);
}

/* That round trips take longer may be because one end is busy, which only that one knows. So it has
 * to be found at both. */
static bool is_half_known(
    const struct edge_pair *pair, const struct pair_facts *f, unsigned i, enum finding_code code)
{
    const struct findings *other = &pair->nodes[1 - i]->reported->own;

    return code == FINDING_PAIR_RTT && f->ends[1 - i].has_agent &&
           !findings_find(other, code, f->ends[i].node);
}

/* What the agents at both ends find of the pair. What is found now stays as long as they say it;
 * what is new has to wait until the other machine is known to be there. True: something waits. */
static bool find_own(const struct health *h, struct findings *found, const struct edge_pair *pair,
    const struct pair_facts *f, const char *subject, int64_t wall_s)
{
    bool waits = false;

    for (unsigned i = 0; i < 2; i++) {
        const struct pair_end *end = &f->ends[i];
        const struct findings *own = &pair->nodes[i]->reported->own;
        const char *peer = f->ends[1 - i].node;
        bool is_old = end->is_down || end->silent_for < 0 || end->silent_for >= EDGE_SILENT_AFTER;

        for (size_t k = 0; k < own->n && !is_old; k++) {
            const struct finding *item = own->items[k];

            if (strcmp(item->subject, peer) != 0 || is_better_known(f, item->code) ||
                is_half_known(pair, f, i, item->code))
                continue;
            if (!findings_find(found, item->code, subject) &&
                (is_other_gone(pair, f, i) || is_pair_settling(h, pair, wall_s)))
                waits = true;
            else
                add_own(found, item, subject);
        }
    }
    return waits;
}

/* What is found of the rates of both ways, in jobs. */
static void find_rates(struct health_network *hn, const struct pair_names *names)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct finding *slow = findings_find(&hn->slow, FINDING_WAY_SLOW, names->one_way[i]);

        if (slow)
            add_own(&hn->found, slow, names->one_way[i]);
    }
}

/* @pair: in the order of the names. NULL: there is none any more, and nothing is found of it. */
static void look_pair(struct health *h, struct health_network *hn, const struct edge_pair *pair,
    const struct pair_names *names, int64_t wall_s)
{
    struct pair_verdict v = {.is_found = false};
    struct pair_facts facts;
    const char *subject;
    bool waits = false;

    if (pair) {
        edge_view_facts(pair, wall_s, &facts);
        pair_assess(&facts, &v);
    }
    subject = v.is_found && finding_kinds[v.code].subject == FINDING_OF_WAY ? names->one_way[v.from]
                                                                            : names->pair;
    /* What was found already need not wait. */
    if (v.is_found && !findings_find(&hn->found, v.code, subject) &&
        has_to_wait(h, pair, &v, wall_s)) {
        waits = true;
        v.is_found = false;
    }
    findings_look_as(&hn->found, FINDING_OF_PAIR, names->pair);
    for (unsigned i = 0; i < 2; i++)
        findings_look_as(&hn->found, FINDING_OF_WAY, names->one_way[i]);
    if (v.is_found) {
        (void)findings_add(&hn->found, v.code, subject, wall_s, "%s.", v.text);
    } else if (pair) {
        find_losses(&hn->found, &facts, wall_s);
        waits |= find_own(h, &hn->found, pair, &facts, names->pair, wall_s);
        find_rates(hn, names);
    }
    if (waits)
        make_wait(hn, names->pair);
    else
        forget_waiting(hn, names->pair);
    end_look(h, &hn->found, hn->keyed.key, names->pair, wall_s);
    for (unsigned i = 0; i < 2; i++)
        end_look(h, &hn->found, hn->keyed.key, names->one_way[i], wall_s);
}

/* Is it worth a look what one end says? Where UDP is blocked both ways, all of it is silent. */
static bool is_trouble(const struct edge_part *part, enum edge_owner owner)
{
    const struct edge_said *s = &part->said;

    if (owner == EDGE_OWNER_AGENT)
        return s->error || s->fell_at != 0 || s->is_alarm || s->path == PATH_KIND_NONE ||
               loss_level(&s->loss, LOSS_LEVEL_NONE) != LOSS_LEVEL_NONE;
    return part->probed.tunnel == EDGE_REACH_SILENT ||
           (part->probed.underlay == EDGE_REACH_SILENT && part->probed.is_heard);
}

void health_look_part(struct health *h, const struct model_node *node,
    const struct model_node *peer, const struct edge_part *part, enum edge_owner owner,
    int64_t wall_s)
{
    const struct health_network *hn = keys_find(&h->networks, node->net->spec.meta.name);
    bool is_worth = is_trouble(part, owner) ||
                    (owner == EDGE_OWNER_PROBE && part->probed.underlay == EDGE_REACH_SILENT);

    /* Of most networks nothing is found, and most parts tell of nothing. */
    if (is_worth || (hn && hn->found.n + hn->waiting.n > 0))
        health_look_pair(h, node, peer, wall_s);
}

void health_look_pair(
    struct health *h, const struct model_node *a, const struct model_node *b, int64_t wall_s)
{
    struct health_network *hn = open_network(h, a->net->spec.meta.name);
    bool in_order = strcmp(a->spec.meta.name, b->spec.meta.name) < 0;
    struct edge_pair pair = {.nodes = {in_order ? a : b, in_order ? b : a}};
    struct pair_names names;

    if (!hn)
        return;
    name_pair(pair.nodes[0]->spec.meta.name, pair.nodes[1]->spec.meta.name, &names);
    look_pair(h, hn, &pair, &names, wall_s);
}

/* A pair by its name. */
static void look_named(struct health *h, struct health_network *hn, const struct model_network *net,
    const char *name, int64_t wall_s)
{
    const char *middle = strstr(name, "--");
    char first[NAME_MAX_LEN + 1];
    struct pair_names names;
    struct edge_pair pair;

    (void)snprintf(first, sizeof(first), "%.*s", (int)(middle - name), name);
    name_pair(first, middle + 2, &names);
    look_pair(h, hn, edge_pair_find(&pair, net, name) ? &pair : NULL, &names, wall_s);
}

static void look_waiting(
    struct health *h, struct health_network *hn, const struct model_network *net, int64_t wall_s)
{
    char name[FINDING_SUBJECT_MAX];

    /* A look may take the pair out of the list. */
    for (size_t i = hn->waiting.n; i-- > 0;) {
        (void)snprintf(name, sizeof(name), "%s", hn->waiting.items[i]->key);
        look_named(h, hn, net, name, wall_s);
    }
}

static void add_pair(struct health_network *hn, const char *a, const char *b)
{
    char name[OBJECT_NAME_MAX + 1];

    make_wait(hn, edge_name(a, b, name));
}

static void add_troubles(struct health_network *hn, const struct model_node *node)
{
    const struct report_record *heard = &node->reported->heard;

    if (node->reported->is_down)
        return;
    for (size_t i = 0; i < heard->report.edges.n; i++)
        if (is_trouble(heard->report.edges.items[i], EDGE_OWNER_AGENT))
            add_pair(hn, node->spec.meta.name, heard->report.edges.items[i]->peer);
    for (size_t i = 0; !node->reported->is_probe_silent && i < heard->probed.n; i++)
        if (is_trouble(heard->probed.items[i], EDGE_OWNER_PROBE))
            add_pair(hn, node->spec.meta.name, heard->probed.items[i]->peer);
    for (size_t i = 0; i < node->reported->own.n; i++)
        if (!is_of_itself(node->reported->own.items[i]))
            add_pair(hn, node->spec.meta.name, node->reported->own.items[i]->subject);
}

/* The pair of a way between two nodes. */
static void add_way(struct health_network *hn, const char *subject)
{
    const char *to = strchr(subject, '>');
    char from[NAME_MAX_LEN + 1];

    if (!to)
        return;
    (void)snprintf(from, sizeof(from), "%.*s", (int)(to - subject), subject);
    /* Ways from the hub are looked at with their node. */
    if (strcmp(from, FINDING_HUB) != 0)
        add_pair(hn, from, to + 1);
}

/* All pairs of which something is found, or may be. */
static void add_all(struct health_network *hn, const struct model_network *net)
{
    for (size_t i = 0; i < hn->found.n; i++) {
        const struct finding *f = hn->found.items[i];

        if (finding_kinds[f->code].subject == FINDING_OF_PAIR)
            make_wait(hn, f->subject);
        else if (finding_kinds[f->code].subject == FINDING_OF_WAY)
            add_way(hn, f->subject);
    }
    for (size_t i = 0; i < net->nodes.n; i++)
        add_troubles(hn, model_node_at(net, i));
    for (size_t i = 0; i < net->edges.n; i++) {
        const struct mesh_edge *spec = &model_edge_at(net, i)->spec;

        if (!x25519_public_is_none(&spec->pins[0].key) ||
            !x25519_public_is_none(&spec->pins[1].key))
            make_wait(hn, spec->meta.name);
    }
}

void health_edge_changed(
    struct health *h, const struct model_node *a, const struct model_node *b, int64_t wall_s)
{
    a->reported->settles_at = b->reported->settles_at = wall_s + HEALTH_SETTLES_S;
    health_look_pair(h, a, b, wall_s);
}

void health_look_again(struct health *h, const struct model_network *net)
{
    struct health_network *hn = open_network(h, net->spec.meta.name);

    if (hn)
        hn->is_again = true;
}

void health_node_gone(struct health *h, const struct model_node *node, int64_t wall_s)
{
    struct health_network *hn = keys_find(&h->networks, node->net->spec.meta.name);

    if (!hn)
        return;
    findings_look_as(&hn->found, FINDING_OF_NODE, node->spec.meta.name);
    end_look(h, &hn->found, hn->keyed.key, node->spec.meta.name, wall_s);
    look_way(h, hn, &(struct node_facts){.name = node->spec.meta.name, .sending_for = -1}, wall_s);
    hn->is_again = true;
}

/* ---- jobs -------------------------------------------------------------------------------------
 */

/* Jobs are looked at where they are served (job_network.h), and shown with all else. */
static void take_jobs(
    struct health *h, struct health_network *hn, const struct model_network *net, int64_t wall_s)
{
    findings_take(&hn->found, net->served ? jobs_findings(&net->served->jobs) : NULL,
        1u << FINDING_OF_JOB | 1u << FINDING_OF_RANK, on_changed,
        &(struct looked_at_by){.h = h, .network = hn->keyed.key, .wall_s = wall_s});
}

/* What a pass looks at ways with. */
struct rates_look {
    struct health_network *hn;
    int64_t wall_s;
};

static void take_slow(void *arg, const char *job, const struct job_slow_line *line)
{
    const struct rates_look *l = arg;

    way_rate_find(&l->hn->slow, job, line, l->wall_s);
}

/* A finding_changed_fn. */
static void on_rate_changed(void *arg, const struct finding *f, bool is_over)
{
    if (is_over)
        add_way(arg, f->subject);
}

/* Pairs that jobs find slow, or did, are looked at; while one is, for the sake of its figures. */
static void take_rates(struct health_network *hn, const struct model_network *net, int64_t wall_s)
{
    findings_look(&hn->slow, NULL);
    if (net->served)
        jobs_each_slow(
            &net->served->jobs, take_slow, &(struct rates_look){.hn = hn, .wall_s = wall_s});
    findings_done(&hn->slow, NULL, on_rate_changed, hn);
    for (size_t i = 0; i < hn->slow.n; i++)
        add_way(hn, hn->slow.items[i]->subject);
}

/* ---- each second ----------------------------------------------------------------------------- */

void health_pass(struct health *h, const struct health_time *at)
{
    if (h->passed_at != 0 && at->now - h->passed_at < HEALTH_EACH)
        return;
    if (h->passed_at == 0)
        h->settles_at = at->wall_s + HEALTH_SETTLES_S;
    h->passed_at = at->now;
    for (size_t i = 0; i < h->model->networks.n; i++) {
        const struct model_network *net = model_network_at(h->model, i);
        struct health_network *hn = open_network(h, net->spec.meta.name);

        if (!hn)
            continue;
        /* What is kept from an earlier run is looked at once. */
        if (hn->again_at == 0)
            hn->is_again = true;
        pass_nodes(h, hn, net, at);
        if (hn->is_again && (hn->again_at == 0 || at->now - hn->again_at >= HEALTH_PAIRS_EACH)) {
            hn->is_again = false;
            hn->again_at = at->now;
            add_all(hn, net);
        }
        take_rates(hn, net, at->wall_s);
        look_waiting(h, hn, net, at->wall_s);
        take_jobs(h, hn, net, at->wall_s);
    }
}
