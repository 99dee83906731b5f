/* node_uplink.c - see node_uplink.h. */
#include "agent/node_uplink.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "base/traffic.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"
#include "mesh/snapshot/snapshot.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"

/* The command takes some seconds. */
#define COMMAND_MAX (90 * NSEC_PER_SEC)

/* A ping that was answered so lately says how the path is now. */
#define FRESH (3 * NSEC_PER_SEC)

#define FILE_NAME "uplink.json"
#define FILE_MAX  (32u << 10)

/* ---- what is kept ---------------------------------------------------------------------------- */

static void decode_train(
    struct fields *f, struct uplink *u, const json_t *json, const char *where, struct err *e)
{
    struct fields g = fields_make(json, where, e);
    struct uplink_train t = {.is_line = false};
    uint64_t at = 0;

    fields_name(&g, "peer", FIELDS_REQUIRED, t.peer);
    fields_u64(&g, "bitsPerSecond", FIELDS_REQUIRED, 1, TRAFFIC_RATE_MAX, &t.bits_per_s);
    fields_bool(&g, "isLine", FIELDS_REQUIRED, &t.is_line);
    fields_u64(&g, "at", FIELDS_REQUIRED, 0, INT64_MAX, &at);
    t.at_s = (int64_t)at;
    if (fields_end(&g) != 0)
        f->failed = fields_end(&g);
    else
        uplink_put(u, &t);
}

int node_uplink_decode(struct uplink *ret, const json_t *json, const char *where, struct err *e)
{
    struct fields f = fields_make(json, where, e);
    const json_t *trains = fields_array(&f, "trains", FIELDS_REQUIRED, 0, UPLINK_TRAINS_MAX);
    struct uplink u = {.n = 0};
    const json_t *item;
    size_t i;

    json_array_foreach(trains, i, item)
        if (fields_end(&f) == 0)
            decode_train(&f, &u, item, where, e);
    return fields_give(&f, ret, &u, sizeof(u));
}

json_t *node_uplink_encode_kept(const struct uplink *u)
{
    json_t *trains = json_array();

    for (unsigned i = 0; i < u->n; i++)
        fields_append(&trains, json_pack("{s:s, s:I, s:b, s:I}", "peer", u->items[i].peer,
                                   "bitsPerSecond", (json_int_t)u->items[i].bits_per_s, "isLine",
                                   (int)u->items[i].is_line, "at", (json_int_t)u->items[i].at_s));
    return json_pack("{s:o}", "trains", trains);
}

/* One that cannot be read is as good as none. */
static void load(struct node_uplink *nu)
{
    _cleanup_(freep) char *text = NULL;
    json_auto_t *json = NULL;
    struct err e = ERR_NULL;
    int r = statefile_read(nu->path, FILE_MAX, &text, NULL, &e);

    if (r == 0)
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (r == 0)
        r = node_uplink_decode(&nu->trains, json, nu->path, &e);
    if (r < 0)
        log_warning("what was found of the uplink is found anew: %s", err_text(&e));
}

static void save(const struct node_uplink *nu)
{
    json_auto_t *json = node_uplink_encode_kept(&nu->trains);
    _cleanup_(freep) char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct err e = ERR_NULL;

    if (text && nu->path[0] != '\0' &&
        statefile_replace(nu->path, text, strlen(text), 0600, &e) < 0)
        log_debug("what was found of the uplink is not kept: %s", err_text(&e));
}

void node_uplink_init(
    struct node_uplink *nu, const char *state_dir, uint32_t random, nsec_t now, int64_t wall_s)
{
    *nu = (struct node_uplink){.pid = 0};
    uplink_plan_init(&nu->plan, random, now);
    if (!state_dir || snprintf(nu->path, sizeof(nu->path), "%s/" FILE_NAME, state_dir) >= PATH_MAX)
        nu->path[0] = '\0';
    else
        load(nu);
    nu->state = uplink_estimate(&nu->trains, wall_s).state;
}

/* ---- to whom a train is sent ------------------------------------------------------------------
 */

static bool is_fit(const struct node_uplink_facts *facts, const struct reach_peer *path)
{
    const struct node *node = snapshot_find_node(facts->snapshot, path->node);

    return node && node_has_agent(node) &&
           (path->kind == PATH_KIND_LAN || path->kind == PATH_KIND_DIRECT) &&
           path->silent_since == 0;
}

const char *node_uplink_next(struct node_uplink *nu, const struct node_uplink_facts *facts)
{
    if (!uplink_plan_is_due(&nu->plan, facts->now))
        return NULL;
    for (size_t i = 0; i < facts->reach->n && !facts->is_busy; i++) {
        const struct reach_peer *path = &facts->reach->items[i];

        if (is_fit(facts, path))
            uplink_plan_offer(&nu->plan, &nu->trains, path->node, path->kind == PATH_KIND_LAN,
                facts->now, facts->wall_s);
    }
    return uplink_plan_choose(&nu->plan, nu->state, facts->now);
}

/* ---- following it -----------------------------------------------------------------------------
 */

/* Has this node a rate only where one is found, and can it have one? */
static bool may_have_rate(const struct node_uplink_facts *facts)
{
    const struct node *self = snapshot_self(facts->snapshot);

    return self && facts->keeps_rates && !self->finds_no_rate &&
           (!self->rates || self->rates->all == 0);
}

static void take_round_trips(struct uplink_follow_facts *ret, const struct reach *reach, nsec_t now)
{
    unsigned n = 0;

    for (size_t i = 0; i < reach->n; i++) {
        const struct reach_peer *p = &reach->items[i];
        nsec_t rise = nsec_max(p->rtt - p->least_rtt, 0);

        if (p->kind != PATH_KIND_DIRECT || !p->is_measured || p->answered_at == 0 ||
            now - p->answered_at > FRESH)
            continue;
        if (n == 0 || rise < ret->rise) {
            ret->rise = rise;
            ret->least_rtt = p->least_rtt;
        }
        if (n == 0 || p->lost_lately_permille < ret->lost_permille)
            ret->lost_permille = p->lost_lately_permille;
        n++;
    }
    ret->has_rtt = n > 0;
    ret->is_of_one = n == 1;
}

static bool follow(struct node_uplink *nu, const struct node_uplink_facts *facts)
{
    struct uplink_estimate found = uplink_estimate(&nu->trains, facts->wall_s);
    struct uplink_follow_facts ff = {.now = facts->now,
        .found = found.state == UPLINK_FOUND && nu->may_have_rate ? found.bits_per_s : 0};

    nu->state = found.state;
    for (size_t i = 0; i < facts->seen->n; i++)
        ff.sent += facts->seen->items[i].facts.tx_bytes;
    take_round_trips(&ff, facts->reach, facts->now);
    return uplink_follow_look(&nu->follow, &ff);
}

static void log_rate(const struct node_uplink *nu, uint64_t before)
{
    char rate[TRAFFIC_RATE_TEXT_MAX];
    char found[TRAFFIC_RATE_TEXT_MAX];

    if (before == 0 && nu->follow.rate != 0)
        log_info("what is sent is kept to %s: the uplink is found to carry %s",
            traffic_rate_format(nu->follow.rate, rate),
            traffic_rate_format(nu->follow.found, found));
    else if (before != 0 && nu->follow.rate == 0)
        log_info("what is sent is not kept to a rate of the uplink any more");
    else
        log_debug("what is sent is kept to %s", traffic_rate_format(nu->follow.rate, rate));
}

/* What the hub sees this node at is another address, so the line may be another one. */
static void see_place(struct node_uplink *nu, const struct node_uplink_facts *facts)
{
    if (ip_addr_is_none(&facts->outside) || ip_addr_equal(&facts->outside, &nu->outside))
        return;
    if (!ip_addr_is_none(&nu->outside) && nu->trains.n > 0) {
        log_info("this node is at another address, and finds anew what its uplink carries");
        uplink_forget(&nu->trains);
        save(nu);
        uplink_plan_restart(&nu->plan, facts->now);
    }
    nu->outside = facts->outside;
}

static void measure(
    struct node_uplink *nu, const struct node_uplink_facts *facts, const char *socket_path)
{
    const char *argv[] = {
        "/proc/self/exe", "bench", NULL, "--uplink", "--json", "--socket", socket_path, NULL};
    struct err e = ERR_NULL;

    if (nu->pid != 0 && process_has_ended(nu->pid))
        nu->pid = 0;
    if (nu->pid != 0 && facts->now - nu->started_at > COMMAND_MAX)
        (void)kill(nu->pid, SIGKILL);
    if (nu->pid != 0 || !nu->may_have_rate)
        return;
    argv[2] = node_uplink_next(nu, facts);
    if (!argv[2])
        return;
    nu->started_at = facts->now;
    if (process_detach(argv, "/dev/null", &nu->pid, &e) == 0)
        return;
    nu->pid = 0;
    log_warning("what the uplink carries is not measured: %s", err_text(&e));
}

bool node_uplink_poll(
    struct node_uplink *nu, const struct node_uplink_facts *facts, const char *socket_path)
{
    uint64_t before = nu->follow.rate;

    if (nu->plan.due_at == 0)
        return false;
    nu->may_have_rate = may_have_rate(facts);
    see_place(nu, facts);
    measure(nu, facts, socket_path);
    if (!follow(nu, facts))
        return false;
    log_rate(nu, before);
    return true;
}

uint64_t node_uplink_rate(const struct node_uplink *nu)
{
    return nu->follow.rate;
}

/* ---- what was measured, and who is told ---------------------------------------------------------
 */

int node_uplink_take(struct node_uplink *nu, const struct snapshot *s, const json_t *body,
    nsec_t now, int64_t wall_s, struct err *e)
{
    struct fields f = fields_make(body, "what was measured", e);
    struct uplink_train t = {.at_s = wall_s};
    int r;

    fields_name(&f, "peer", FIELDS_REQUIRED, t.peer);
    fields_u64(&f, "bitsPerSecond", FIELDS_REQUIRED, 1, TRAFFIC_RATE_MAX, &t.bits_per_s);
    fields_bool(&f, "isLine", FIELDS_REQUIRED, &t.is_line);
    r = fields_end(&f);
    if (r != 0)
        return r;
    if (!snapshot_find_node(s, t.peer) || strcmp(t.peer, s->self) == 0)
        return err_set(e, -EINVAL, "\"%s\" is no other node of this network", t.peer);
    uplink_put(&nu->trains, &t);
    save(nu);
    nu->state = uplink_estimate(&nu->trains, wall_s).state;
    uplink_plan_on_train(&nu->plan, nu->state, now);
    return 0;
}

struct uplink_report node_uplink_report(
    const struct node_uplink *nu, const struct node *node, uint64_t rate, int64_t wall_s)
{
    struct uplink_estimate found = uplink_estimate(&nu->trains, wall_s);
    bool is_typed = node->rates && node->rates->all != 0;

    return (struct uplink_report){
        .is_said = nu->may_have_rate || rate != 0 || found.state != UPLINK_UNKNOWN,
        .state = found.state,
        .bits_per_s = found.bits_per_s,
        .at_s = found.at_s,
        .rate = rate,
        .from = rate == 0  ? UPLINK_FROM_NOBODY
                : is_typed ? UPLINK_FROM_TYPED
                           : UPLINK_FROM_FOUND};
}

/* Why all that is sent is kept to no rate that was found; "": it is. */
static void explain(const struct node_uplink *nu, const struct node *node,
    const struct uplink_estimate *found, char ret[static 160])
{
    const char *why = "";

    if (node->rates && node->rates->all != 0)
        why = "it was told a rate";
    else if (node->finds_no_rate)
        why = "it was told to send as fast as it can";
    else if (nu->plan.due_at == 0)
        why = "this agent measures nothing";
    else if (!nu->may_have_rate)
        why = "its engine keeps no rates";
    else if (found->state == UPLINK_FAST)
        why = "it is so fast that nothing is gained by it";
    else if (found->state == UPLINK_UNKNOWN && !found->faster)
        why =
            "too few peers that are reached directly were measured, or their figures do not agree";
    (void)snprintf(ret, 160, "%s", why);
    if (why[0] == '\0' && found->faster)
        (void)snprintf(ret, 160,
            "the way to %.63s is faster than that to others, and all would be slowed down",
            found->faster);
}

json_t *node_uplink_encode(
    const struct node_uplink *nu, const struct node *node, uint64_t rate, int64_t wall_s)
{
    struct uplink_report r = node_uplink_report(nu, node, rate, wall_s);
    struct uplink_estimate found = uplink_estimate(&nu->trains, wall_s);
    char why[160];
    json_t *json;

    r.is_said = true;
    json = uplink_report_encode(&r);
    explain(nu, node, &found, why);
    if (json)
        (void)json_object_del(json, "rateBitsPerSecond");
    fields_set(&json, "trains", json_integer(found.n_trains));
    fields_set(&json, "peers", json_integer(found.n_peers));
    fields_set(&json, "why", json_string(why));
    return json;
}
