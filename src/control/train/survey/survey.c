/* survey.c - see survey.h. */
#include "train/survey/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "measure/result.h"
#include "os/clock.h"
#include "plan/matrix.h"
#include "train/names/members.h"

/* How long each step waits for its answers at most. */
#define OPEN_TIME     (4 * NSEC_PER_SEC) /* to connect to the members, too */
#define FACTS_TIME    (6 * NSEC_PER_SEC)
#define NAMES_TIME    (5 * NSEC_PER_SEC)
#define WARM_TIME     (10 * NSEC_PER_SEC)
#define LIGHT_TIME    (8 * NSEC_PER_SEC)
#define BULK_SPARE    (8 * NSEC_PER_SEC)  /* in addition to the duration of the transfer */
#define BURST_TIME    (16 * NSEC_PER_SEC) /* with all that may be waited for */
#define ROUND_SPARE   12                  /* seconds of a round; bursts that nothing answers */
#define SESSION_SPARE 60                  /* seconds of a session, in addition to its rounds */
#define RETRY_BUDGET  (10 * NSEC_PER_SEC) /* after it, no further pair is measured again */

/* A test of loss: bits on the line of one of its datagrams, and how many a second are sent. */
#define DATAGRAM_BITS       1152
#define PER_SECOND_MIN      500
#define PER_SECOND_MAX      20000
#define PER_SECOND_MODERATE 2500 /* where no rate was measured */
/* Milliseconds of it: usually at most, over a long line at most, and of all rounds together. */
#define LOSS_MS       4000
#define LOSS_LONG_MS  12000
#define LOSS_TOTAL_MS 150000
/* Datagrams that arrive in a round trip time at the least, since so many are under way. */
#define LOSS_PER_RTT 100

void survey_deinit(struct survey *s)
{
    coordinator_deinit(&s->coordinator);
    free(s->nodes);
    free(s->pairs);
    *s = (struct survey)SURVEY_NULL;
}

static void tell(const struct survey_plan *plan, const char *what)
{
    if (plan->progress)
        plan->progress(what);
}

/* ---- opening ------------------------------------------------------------------------------- */

static int allocate(struct survey *s, size_t n)
{
    *s = (struct survey){.n_nodes = n, .n_pairs = rounds_pairs(n)};
    s->nodes = calloc(n + 1, sizeof(*s->nodes));
    s->pairs = calloc(s->n_pairs + 1, sizeof(*s->pairs));
    if (!s->nodes || !s->pairs) {
        survey_deinit(s);
        return -ENOMEM;
    }
    for (size_t b = 1; b < n; b++)
        for (size_t a = 0; a < b; a++) {
            struct preflight_pair *p = &s->pairs[rounds_index(n, a, b)];

            p->a = a;
            p->b = b;
        }
    return 0;
}

static int open_sessions(struct survey *s, const struct survey_plan *plan,
    const struct ip_addr addresses[], struct err *e)
{
    struct order session = {.kind = ORDER_SESSION};
    struct rng rng = rng_kernel();
    size_t seconds = SESSION_SPARE + survey_rounds(s, plan) * (ROUND_SPARE + plan->ms / 50) +
                     (plan->datagrams > 0 ? LOSS_TOTAL_MS / 1000 : 0);

    (void)snprintf(session.purpose, sizeof(session.purpose), "%.15s", plan->purpose);
    session.seconds = seconds > ORDER_SECONDS_MAX ? ORDER_SECONDS_MAX : (uint32_t)seconds;
    rng_fill(&rng, session.id.b, sizeof(session.id.b));
    if (coordinator_open(&s->coordinator, addresses, s->n_nodes, &plan->reach, &session,
            clock_now() + OPEN_TIME) < 0)
        return err_set(e, -ENOMEM, "no memory for %zu members", s->n_nodes);
    return 0;
}

static void gather_facts(struct survey *s)
{
    static const struct order ask = {.kind = ORDER_FACTS};
    _cleanup_(freep) const struct order **orders = calloc(s->n_nodes + 1, sizeof(*orders));

    for (size_t i = 0; orders && i < s->n_nodes; i++)
        orders[i] = &ask;
    if (orders)
        coordinator_ask(&s->coordinator, orders, clock_now() + FACTS_TIME);
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct coordinator_link *k = &s->coordinator.items[i];
        struct err e = ERR_NULL;

        s->nodes[i].present = k->answer && facts_decode(&s->nodes[i].facts, k->answer, &e) == 0;
        if (!s->nodes[i].present)
            (void)snprintf(s->nodes[i].why, sizeof(s->nodes[i].why), "%.*s",
                COORDINATOR_WHY_MAX - 1, e.code ? err_text(&e) : k->why);
        s->is_live |= s->nodes[i].present && (s->nodes[i].facts.jobs > 0 ||
                                                 s->nodes[i].facts.traffic >= PREFLIGHT_LIVE_RATE);
    }
}

int survey_open(struct survey *s, const struct survey_plan *plan, const struct member *members,
    size_t n, struct err *e)
{
    _cleanup_(freep) struct ip_addr *addresses = calloc(n, sizeof(*addresses));
    int r = addresses ? allocate(s, n) : -ENOMEM;

    if (r < 0)
        return err_set(e, r, "no memory for %zu members", n);
    for (size_t i = 0; i < n; i++) {
        struct preflight_node *node = &s->nodes[i];

        memcpy(node->name, members[i].name, sizeof(node->name));
        memcpy(node->no_path, members[i].no_path, sizeof(node->no_path));
        node->address = addresses[i] = members[i].address;
        node->is_stock = members[i].is_stock;
    }
    r = open_sessions(s, plan, addresses, e);
    if (r < 0)
        return r;
    tell(plan, "facts");
    gather_facts(s);
    for (size_t i = 0; i < n; i++)
        if (!s->nodes[i].present && ip_addr_equal(&addresses[i], &plan->reach.own))
            return err_set(
                e, -EAGAIN, "this machine's own agent does not measure: %s", s->nodes[i].why);
    return 0;
}

/* ---- asking pairs -------------------------------------------------------------------------- */

/* Gives each member its order, unless that is ORDER_NONE, and waits at most @time. The answers are
 * then in the coordinator's links. */
static void ask(struct survey *s, const struct order *orders, nsec_t time)
{
    _cleanup_(freep) const struct order **given = calloc(s->n_nodes + 1, sizeof(*given));

    for (size_t i = 0; given && i < s->n_nodes; i++) {
        json_decref(s->coordinator.items[i].answer);
        s->coordinator.items[i].answer = NULL;
        given[i] = orders[i].kind != ORDER_NONE ? &orders[i] : NULL;
    }
    if (given)
        coordinator_ask(&s->coordinator, given, clock_now() + time);
}

static bool both_present(const struct survey *s, size_t a, size_t b)
{
    return coordinator_has(&s->coordinator, a) && coordinator_has(&s->coordinator, b);
}

/* Keeps the better of two measurements of the same pair, since the worse one may have been bad by
 * chance. */
static void keep_idle(struct preflight_pair *p, unsigned way, const struct idle_test *l)
{
    const struct idle_test *have = &p->idle[way];
    bool is_better = !p->has_idle[way] || (l->transferred && !have->transferred) ||
                     (l->transferred == have->transferred && l->heard > have->heard);

    if (is_better)
        p->idle[way] = *l;
    p->has_idle[way] = true;
}

/* Has both members of each pair test their connection without load, at the same time. */
static void ask_idle(
    struct survey *s, const struct survey_plan *plan, const struct rounds_pair *pairs, size_t n)
{
    _cleanup_(freep) struct order *orders = calloc(s->n_nodes + 1, sizeof(*orders));

    if (!orders)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t a = pairs[i].a;
        size_t b = pairs[i].b;

        if (!both_present(s, a, b))
            continue;
        orders[a] = (struct order){
            .kind = ORDER_IDLE_TEST, .peer = s->nodes[b].address, .pings = plan->pings};
        orders[b] = (struct order){
            .kind = ORDER_IDLE_TEST, .peer = s->nodes[a].address, .pings = plan->pings};
    }
    ask(s, orders, LIGHT_TIME);
    for (size_t i = 0; i < n; i++) {
        struct preflight_pair *p = &s->pairs[rounds_index(s->n_nodes, pairs[i].a, pairs[i].b)];
        const size_t ends[2] = {p->a, p->b};

        for (unsigned way = 0; way < 2; way++) {
            const json_t *answer = s->coordinator.items[ends[way]].answer;
            struct idle_test l;

            if (answer && idle_test_decode(&l, answer, NULL) == 0)
                keep_idle(p, way, &l);
        }
    }
}

void survey_ask_bulk(struct survey *s, const struct order *orders, struct bulk *ret, bool *measured)
{
    _cleanup_(freep) struct order *given = calloc(s->n_nodes + 1, sizeof(*given));
    uint32_t longest = 0;

    memset(measured, 0, s->n_pairs * sizeof(*measured));
    for (size_t i = 0; i < s->n_pairs && given; i++) {
        const struct preflight_pair *p = &s->pairs[i];

        if (orders[i].kind != ORDER_BULK || !both_present(s, p->a, p->b))
            continue;
        given[p->a] = orders[i];
        given[p->a].peer = s->nodes[p->b].address;
        longest = orders[i].ms > longest ? orders[i].ms : longest;
    }
    if (!given)
        return;
    ask(s, given, (nsec_t)longest * NSEC_PER_MSEC + BULK_SPARE);
    for (size_t i = 0; i < s->n_pairs; i++) {
        const json_t *answer = s->coordinator.items[s->pairs[i].a].answer;

        if (orders[i].kind == ORDER_BULK && given[s->pairs[i].a].kind == ORDER_BULK && answer)
            measured[i] = bulk_decode(&ret[i], answer, NULL) == 0;
    }
}

void survey_ask_bursts(
    struct survey *s, const struct order *orders, bool from_b, struct burst *ret, bool *measured)
{
    _cleanup_(freep) struct order *given = calloc(s->n_nodes + 1, sizeof(*given));

    memset(measured, 0, s->n_pairs * sizeof(*measured));
    for (size_t i = 0; i < s->n_pairs && given; i++) {
        const struct preflight_pair *p = &s->pairs[i];
        size_t from = from_b ? p->b : p->a;

        if (orders[i].kind != ORDER_BURST || !both_present(s, p->a, p->b) ||
            !s->nodes[p->a].facts.counts_bursts || !s->nodes[p->b].facts.counts_bursts)
            continue;
        given[from] = orders[i];
        given[from].peer = s->nodes[from_b ? p->a : p->b].address;
    }
    if (!given)
        return;
    ask(s, given, BURST_TIME);
    for (size_t i = 0; i < s->n_pairs; i++) {
        size_t from = from_b ? s->pairs[i].b : s->pairs[i].a;
        const json_t *answer = s->coordinator.items[from].answer;

        if (orders[i].kind == ORDER_BURST && given[from].kind == ORDER_BURST && answer)
            measured[i] = burst_decode(&ret[i], answer, NULL) == 0;
    }
}

/* ---- throughput ---------------------------------------------------------------------------- */

/* Eight round trips, so that slow start is over when the rate is taken; at least the plan's
 * duration, and at most eight times that. */
struct order survey_bulk_order(const struct survey_plan *plan, const struct preflight_pair *p,
    uint32_t streams, enum order_direction way)
{
    uint32_t by_rtt = p->idle[0].rtt_median_us / 1000 * 8;

    return (struct order){.kind = ORDER_BULK,
        .streams = streams,
        .ms = by_rtt < plan->ms       ? plan->ms
              : by_rtt > 8 * plan->ms ? 8 * plan->ms
                                      : by_rtt,
        .bytes = plan->bytes,
        .way = way};
}

/* Throughput is measured only where full-size TCP segments have passed from both members. */
static bool is_fit(const struct preflight_pair *p)
{
    return p->idle[0].transferred && p->idle[1].transferred;
}

static void keep_flow(struct flow *have, const struct flow *f)
{
    if (f->bits_per_s > have->bits_per_s)
        *have = *f;
}

/* Measures the pairs in one direction and then in the other, with one stream or with several
 * (@many). Of repeated measurements of a direction the best is kept. */
static void ask_flows(struct survey *s, const struct survey_plan *plan,
    const struct rounds_pair *pairs, size_t n, bool many)
{
    _cleanup_(freep) struct order *orders = calloc(s->n_pairs + 1, sizeof(*orders));
    _cleanup_(freep) struct bulk *results = calloc(s->n_pairs + 1, sizeof(*results));
    _cleanup_(freep) bool *measured = calloc(s->n_pairs + 1, sizeof(*measured));

    for (unsigned way = ORDER_OUT; orders && results && measured && way <= ORDER_IN; way++) {
        for (size_t k = 0; k < n; k++) {
            size_t i = rounds_index(s->n_nodes, pairs[k].a, pairs[k].b);

            if (is_fit(&s->pairs[i]))
                orders[i] = survey_bulk_order(plan, &s->pairs[i], many ? plan->streams : 1, way);
        }
        survey_ask_bulk(s, orders, results, measured);
        for (size_t i = 0; i < s->n_pairs; i++) {
            struct bulk *to = many ? &s->pairs[i].many : &s->pairs[i].one;

            if (!measured[i])
                continue;
            s->pairs[i].has_bulk = true;
            keep_flow(&to->out, &results[i].out);
            keep_flow(&to->in, &results[i].in);
        }
    }
}

static void ask_bulk(
    struct survey *s, const struct survey_plan *plan, const struct rounds_pair *pairs, size_t n)
{
    ask_flows(s, plan, pairs, n, false);
    if (plan->streams > 1)
        ask_flows(s, plan, pairs, n, true);
}

size_t survey_rounds(const struct survey *s, const struct survey_plan *plan)
{
    return plan->alone ? s->n_pairs : rounds_count(s->n_nodes);
}

size_t survey_round(
    const struct survey *s, const struct survey_plan *plan, size_t round, struct rounds_pair *ret)
{
    if (!plan->alone)
        return rounds_get(s->n_nodes, round, ret);
    *ret = (struct rounds_pair){.a = s->pairs[round].a, .b = s->pairs[round].b};
    return 1;
}

/* ---- loss ---------------------------------------------------------------------------------- */

static uint64_t faster(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t clamp(uint64_t value, uint32_t min, uint32_t max)
{
    return value < min ? min : value > max ? max : (uint32_t)value;
}

struct order survey_loss_order(const struct survey *s, const struct survey_plan *plan,
    const struct preflight_pair *p, bool from_b)
{
    uint64_t bps = from_b ? faster(p->one.in.bits_per_s, p->many.in.bits_per_s)
                          : faster(p->one.out.bits_per_s, p->many.out.bits_per_s);
    uint64_t rtt_us = p->idle[from_b].rtt_median_us;
    size_t n_rounds = rounds_count(s->n_nodes);
    uint32_t of_round = n_rounds > 0 ? (uint32_t)(LOSS_TOTAL_MS / n_rounds) : LOSS_TOTAL_MS;
    uint32_t ms = clamp(plan->datagrams / LOSS_PER_RTT * rtt_us / 1000, LOSS_MS, LOSS_LONG_MS);

    return (struct order){.kind = ORDER_LOSS,
        .datagrams = plan->datagrams,
        .per_second = p->has_bulk && bps > 0
                          ? clamp(bps / 2 / DATAGRAM_BITS, PER_SECOND_MIN, PER_SECOND_MAX)
                          : PER_SECOND_MODERATE,
        .ms = ms < of_round ? ms : of_round};
}

/* Does @l count rather than @have (NULL: none)? One of far fewer datagrams says less, however good
 * it is. */
static bool is_better_loss(const struct loss_test *have, const struct loss_test *l)
{
    if (!have || l->sent > 2 * have->sent)
        return true;
    return 2 * l->sent >= have->sent &&
           (uint64_t)l->heard * have->sent > (uint64_t)have->heard * l->sent;
}

/* Keeps the better of two measurements of a direction, as keep_idle() does. */
static void keep_loss(struct preflight_pair *p, bool from_b, const struct loss_test *l)
{
    struct loss_test *have = &p->loss[from_b];

    if (l->sent == 0 || l->why[0] != '\0')
        return;
    if (is_better_loss(p->has_loss[from_b] ? have : NULL, l))
        *have = *l;
    p->has_loss[from_b] = true;
}

/* Can that member of the pair count what is lost of what it sends to the other one? */
static bool can_count(const struct survey *s, const struct preflight_pair *p, bool from_b)
{
    const struct preflight_node *n = &s->nodes[from_b ? p->b : p->a];

    return n->facts.counts_loss && p->has_idle[from_b] && p->idle[from_b].back > 0;
}

/* Has both members of each pair count what is lost, at the same time. */
static void ask_loss(
    struct survey *s, const struct survey_plan *plan, const struct rounds_pair *pairs, size_t n)
{
    _cleanup_(freep) struct order *orders = calloc(s->n_nodes + 1, sizeof(*orders));
    uint32_t longest = 0;

    if (!orders)
        return;
    for (size_t i = 0; i < 2 * n; i++) {
        const struct rounds_pair *pair = &pairs[i / 2];
        const struct preflight_pair *p = &s->pairs[rounds_index(s->n_nodes, pair->a, pair->b)];
        bool from_b = i % 2 == 1;
        struct order *o = &orders[from_b ? p->b : p->a];

        if (!both_present(s, p->a, p->b) || !can_count(s, p, from_b))
            continue;
        *o = survey_loss_order(s, plan, p, from_b);
        o->peer = s->nodes[from_b ? p->a : p->b].address;
        longest = o->ms > longest ? o->ms : longest;
    }
    ask(s, orders, (nsec_t)longest * NSEC_PER_MSEC + BULK_SPARE);
    for (size_t i = 0; i < 2 * n; i++) {
        const struct rounds_pair *pair = &pairs[i / 2];
        struct preflight_pair *p = &s->pairs[rounds_index(s->n_nodes, pair->a, pair->b)];
        size_t from = i % 2 == 1 ? p->b : p->a;
        const json_t *answer = s->coordinator.items[from].answer;
        struct loss_test l;

        if (orders[from].kind == ORDER_LOSS && answer && loss_test_decode(&l, answer, NULL) == 0)
            keep_loss(p, i % 2 == 1, &l);
    }
}

/* ---- everything ---------------------------------------------------------------------------- */

/* Has each member resolve all of @names, and calls @take for each name that does not resolve to its
 * address there. */
static void ask_names(struct survey *s, struct order_name *names, size_t n_names,
    void (*take)(struct survey *s, size_t asked, const struct wrong_name *wrong))
{
    _cleanup_(freep) struct order *orders = calloc(s->n_nodes + 1, sizeof(*orders));

    if (!orders)
        return;
    for (size_t i = 0; i < s->n_nodes; i++)
        orders[i] = (struct order){.kind = ORDER_NAMES, .names = names, .n_names = n_names};
    ask(s, orders, NAMES_TIME);
    for (size_t i = 0; i < s->n_nodes; i++) {
        json_t *all = json_object_get(s->coordinator.items[i].answer, "wrong");
        struct wrong_name wrong;
        const char *name;
        json_t *where;

        /* Nobody was asked for more. */
        if (json_object_size(all) > n_names)
            continue;
        json_object_foreach(all, name, where)
            if (wrong_name_decode(&wrong, name, where))
                take(s, i, &wrong);
    }
}

static void take_name(struct survey *s, size_t asked, const struct wrong_name *wrong)
{
    struct preflight_node *n = &s->nodes[asked];

    /* On many machines their own name resolves to a loopback address, which does no harm. */
    if (strcmp(wrong->name, n->name) == 0)
        return;
    if (wrong->where[0] == '\0')
        n->names_missing++;
    else if (n->names_wrong[0] == '\0')
        (void)snprintf(
            n->names_wrong, sizeof(n->names_wrong), "%s leads to %s", wrong->name, wrong->where);
}

/* A host name that is no DNS label cannot be in any node's hosts file, so it is not asked for. */
static bool can_be_asked(const struct preflight_node *n)
{
    return n->present && n->facts.hostname[0] != '\0' &&
           parse_name(n->facts.hostname, "host name", NULL) == 0;
}

static void take_host_name(struct survey *s, size_t asked, const struct wrong_name *wrong)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct preflight_node *n = &s->nodes[i];

        if (i == asked || n->host_name_wrong[0] != '\0' || !can_be_asked(n) ||
            strcmp(n->facts.hostname, wrong->name) != 0)
            continue;
        if (wrong->where[0] == '\0')
            (void)snprintf(n->host_name_wrong, sizeof(n->host_name_wrong), "leads nowhere on %.64s",
                s->nodes[asked].name);
        else
            (void)snprintf(n->host_name_wrong, sizeof(n->host_name_wrong), "leads to %s on %.64s",
                wrong->where, s->nodes[asked].name);
    }
}

static void check_names(struct survey *s)
{
    _cleanup_(freep) struct order_name *names = calloc(s->n_nodes + 1, sizeof(*names));
    size_t n = 0;

    if (!names)
        return;
    for (size_t i = 0; i < s->n_nodes; i++) {
        memcpy(names[i].name, s->nodes[i].name, sizeof(names[i].name));
        names[i].address = s->nodes[i].address;
    }
    ask_names(s, names, s->n_nodes, take_name);
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct preflight_node *node = &s->nodes[i];

        if (can_be_asked(node))
            names[n++] = (struct order_name){.address = node->address};
        else if (node->present && node->facts.hostname[0] != '\0')
            (void)snprintf(node->host_name_wrong, sizeof(node->host_name_wrong),
                "is no name that others are told");
        if (can_be_asked(node))
            memcpy(names[n - 1].name, node->facts.hostname, strlen(node->facts.hostname) + 1);
    }
    if (n > 0)
        ask_names(s, names, n, take_host_name);
}

/*
 * Has the members open the tunnels of all pairs. WireGuard repeats a lost handshake after five
 * seconds. All pairs begin together, so that this wait is over for all of them at the same time.
 * Only one member of each pair begins.
 */
static void warm_up(struct survey *s)
{
    _cleanup_(freep) struct order *orders = calloc(s->n_nodes + 1, sizeof(*orders));
    _cleanup_(freep) struct ip_addr *present = calloc(s->n_nodes + 1, sizeof(*present));
    size_t n = 0;

    if (!orders || !present)
        return;
    /* From the last to the first, so that the first @n addresses in @present are always those of
     * the members after this one. */
    for (size_t i = s->n_nodes; i-- > 0;) {
        if (!coordinator_has(&s->coordinator, i))
            continue;
        if (n > 0)
            orders[i] = (struct order){.kind = ORDER_WARM, .addrs = present, .n_addrs = n};
        present[n++] = s->nodes[i].address;
    }
    ask(s, orders, WARM_TIME);
}

/* Asks each member how many pings it has heard from whom. This tells packets that pass in one
 * direction only from those that pass in none. */
static void ask_heard(struct survey *s)
{
    _cleanup_(freep) struct order *orders = calloc(s->n_nodes + 1, sizeof(*orders));

    for (size_t i = 0; orders && i < s->n_nodes; i++)
        orders[i].kind = ORDER_HEARD;
    if (orders)
        ask(s, orders, FACTS_TIME);
    for (size_t i = 0; i < s->n_pairs; i++) {
        struct preflight_pair *p = &s->pairs[i];
        const size_t ends[2] = {p->a, p->b};

        for (unsigned way = 0; way < 2; way++) {
            char from[IP_ADDR_TEXT_MAX];
            json_t *heard = json_object_get(s->coordinator.items[ends[1 - way]].answer, "heard");
            json_int_t n = json_integer_value(
                json_object_get(heard, ip_addr_format(&s->nodes[ends[way]].address, from)));

            p->heard[way] = n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
        }
    }
}

static bool looks_bad(const struct preflight_pair *p)
{
    return preflight_loses(p) || (p->has_idle[0] && !is_fit(p));
}

/* Measures once more what looks bad of the pair. */
static void ask_again(struct survey *s, const struct survey_plan *plan, struct preflight_pair *p)
{
    struct rounds_pair pair = {.a = p->a, .b = p->b};

    if (!is_fit(p) || (preflight_loses(p) && !(p->has_loss[0] && p->has_loss[1])))
        ask_idle(s, plan, &pair, 1);
    if (preflight_loses(p) && plan->datagrams > 0 && !s->skipped_bulk)
        ask_loss(s, plan, &pair, 1);
}

/*
 * On a busy machine a pair may look bad by chance, so pairs that look bad are measured again, and
 * no other pair meanwhile. When a second measurement has confirmed this for two pairs of a member,
 * that member's other pairs are not measured again.
 */
static void look_again(struct survey *s, const struct survey_plan *plan)
{
    _cleanup_(freep) unsigned *confirmed = calloc(s->n_nodes + 1, sizeof(*confirmed));
    nsec_t until = clock_now() + RETRY_BUDGET;
    uint64_t median = preflight_median_rate(s->pairs, s->n_pairs);

    for (size_t i = 0; confirmed && i < s->n_pairs && clock_now() < until; i++) {
        struct preflight_pair *p = &s->pairs[i];
        struct rounds_pair pair = {.a = p->a, .b = p->b};

        if (confirmed[p->a] >= 2 || confirmed[p->b] >= 2 ||
            !(looks_bad(p) || preflight_is_slow(p, median)))
            continue;
        if (looks_bad(p))
            ask_again(s, plan, p);
        if (plan->ms > 0 && !s->skipped_bulk && is_fit(p) &&
            (preflight_is_slow(p, median) || !p->has_bulk))
            ask_bulk(s, plan, &pair, 1);
        if (looks_bad(p) || preflight_is_slow(p, median)) {
            confirmed[p->a]++;
            confirmed[p->b]++;
        }
    }
}

int survey_run(struct survey *s, const struct survey_plan *plan)
{
    _cleanup_(freep) struct rounds_pair *pairs = calloc(s->n_nodes / 2 + 1, sizeof(*pairs));

    if (!pairs)
        return -ENOMEM;
    tell(plan, "names");
    check_names(s);
    tell(plan, "tunnels");
    warm_up(s);
    tell(plan, "reachability, RTT, loss, sizes");
    for (size_t round = 0; round < rounds_count(s->n_nodes); round++)
        ask_idle(s, plan, pairs, rounds_get(s->n_nodes, round, pairs));
    ask_heard(s);
    s->skipped_bulk = plan->ms > 0 && s->is_live && !plan->force;
    if (plan->ms > 0 && !s->skipped_bulk) {
        tell(plan, "throughput");
        for (size_t round = 0; round < survey_rounds(s, plan); round++)
            ask_bulk(s, plan, pairs, survey_round(s, plan, round, pairs));
    }
    if (plan->datagrams > 0 && !s->skipped_bulk) {
        tell(plan, "loss");
        for (size_t round = 0; round < rounds_count(s->n_nodes); round++)
            ask_loss(s, plan, pairs, rounds_get(s->n_nodes, round, pairs));
    }
    tell(plan, "doubtful pairs once more");
    look_again(s, plan);
    return 0;
}

static void take_way(
    const struct survey *s, struct matrix_link *l, const struct preflight_pair *p, bool is_out)
{
    const struct flow *one = is_out ? &p->one.out : &p->one.in;
    const struct flow *many = is_out ? &p->many.out : &p->many.in;
    const char *congestion = p->idle[is_out ? 0 : 1].congestion;

    if (!p->has_idle[0] || !p->has_bulk)
        return;
    l->rtt = p->idle[0].rtt_median_us / 1e6;
    l->restarts = preflight_restarts(p, &s->nodes[p->a], &s->nodes[p->b]);
    l->kept = result_window_kept(congestion, l->restarts);
    l->one_bps = (double)one->bits_per_s;
    l->many_bps = (double)(many->bits_per_s > one->bits_per_s ? many : one)->bits_per_s;
}

int survey_matrix(const struct survey *s, struct matrix *ret)
{
    struct matrix m;
    int r = matrix_new(&m, s->n_nodes);

    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_nodes; i++)
        memcpy(m.nodes[i].name, s->nodes[i].name, sizeof(m.nodes[i].name));
    for (size_t i = 0; i < s->n_pairs; i++) {
        const struct preflight_pair *p = &s->pairs[i];

        take_way(s, &m.links[p->a * m.n + p->b], p, true);
        take_way(s, &m.links[p->b * m.n + p->a], p, false);
    }
    *ret = m;
    return 0;
}
