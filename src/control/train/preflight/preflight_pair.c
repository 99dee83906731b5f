/* preflight_pair.c - see preflight.h: what is wrong between two members. */
#include <stdio.h>
#include <stdlib.h>

#include "base/containers.h"
#include "base/err.h"
#include "train/preflight/preflight.h"
#include "train/preflight/preflight_internal.h"

/* A pair is slow when its rate is below the median pair's rate divided by this. */
#define PREFLIGHT_SLOW_PART 8

#define MTU_MIN      1280 /* bytes; the least that IPv6 needs (RFC 8200, section 5) */
#define USEC_PER_SEC 1000000.0

/* ---- reach --------------------------------------------------------------------------------- */

static const char *name_of(const struct preflight_input *in, size_t node)
{
    return in->nodes[node].name;
}

static void say_one_way(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, bool from_a)
{
    size_t from = from_a ? p->a : p->b;
    size_t to = from_a ? p->b : p->a;
    struct preflight_finding *f = preflight__add(r, PREFLIGHT_ONE_WAY, PREFLIGHT_NO, p->a, p->b);

    preflight__say(f->text, "packets from %s do not reach %s, though those of %s reach %s",
        name_of(in, from), name_of(in, to), name_of(in, to), name_of(in, from));
    preflight__say(f->fix,
        "look for a packet filter on %s that drops what comes in on %s from %s "
        "(nft list ruleset), or on %s what goes out",
        name_of(in, to), in->nodes[to].facts.interface, name_of(in, from), name_of(in, from));
}

/* Pings of one of them come to nothing, and those of the other one are answered. */
static void say_unanswered(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, unsigned way)
{
    size_t from = way == 0 ? p->a : p->b;
    size_t to = way == 0 ? p->b : p->a;
    struct preflight_finding *f = preflight__add(r, PREFLIGHT_ONE_WAY, PREFLIGHT_NO, p->a, p->b);

    preflight__say(f->text, "%s does not answer %s, though %s answers %s", name_of(in, to),
        name_of(in, from), name_of(in, from), name_of(in, to));
    preflight__say(f->fix,
        "look for a packet filter on %s that lets in on %s only answers to what it has asked "
        "(nft list ruleset)",
        name_of(in, to), in->nodes[to].facts.interface);
}

/* Returns true when the members do not reach each other, so that nothing else can be judged. */
static bool assess_reach(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p)
{
    struct preflight_finding *f;

    if (p->idle[0].back > 0 || p->idle[1].back > 0)
        return false;
    if ((p->heard[0] > 0) != (p->heard[1] > 0)) {
        say_one_way(r, in, p, p->heard[0] == 0);
        return true;
    }
    f = preflight__add(r, PREFLIGHT_UNREACHABLE, PREFLIGHT_NO, p->a, p->b);
    preflight__say(f->text, "%s and %s do not reach each other over the overlay (path: %s)",
        name_of(in, p->a), name_of(in, p->b), p->idle[0].path[0] ? p->idle[0].path : "none");
    preflight__say(f->fix,
        "weft status on %s says why; an edge that is off is set with weft edge set "
        "%s %s --path auto, on the hub",
        name_of(in, p->a), name_of(in, p->a), name_of(in, p->b));
    return true;
}

/* ---- answers and sizes
 * ---------------------------------------------------------------------------------- */

static void assess_way(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, unsigned way)
{
    const struct idle_test *l = &p->idle[way];
    size_t from = way == 0 ? p->a : p->b;
    size_t to = way == 0 ? p->b : p->a;
    struct preflight_finding *f;

    if (l->back == 0) {
        say_unanswered(r, in, p, way);
        return;
    }
    if (l->route_mtu > 0 && l->packet_max < l->route_mtu) {
        f = preflight__add(r, PREFLIGHT_MTU, PREFLIGHT_NO, p->a, p->b);
        preflight__say(f->text,
            "packets of more than %u bytes from %s do not reach %s, and %s sends up "
            "to %u (MSS %u)",
            l->packet_max, name_of(in, from), name_of(in, to), name_of(in, from), l->route_mtu,
            l->mss);
        if (l->packet_max >= MTU_MIN)
            preflight__say(f->fix,
                "set the network's mtu to %u (spec.mtu of the Network, weft apply), "
                "or find what drops larger packets between them",
                l->packet_max);
        else
            preflight__say(f->fix,
                "find what drops packets over %u bytes between them: no overlay can "
                "be below %u, which IPv6 needs",
                l->packet_max, (unsigned)MTU_MIN);
        return;
    }
    if (l->transferred || preflight__has_fatal_loss(p))
        return;
    f = preflight__add(r, PREFLIGHT_TCP, PREFLIGHT_NO, p->a, p->b);
    preflight__say(f->text, "pings from %s to %s are answered, but a TCP connection %s: %s",
        name_of(in, from), name_of(in, to),
        l->connected ? "carries no full-size segments" : "does not come about", l->why);
    preflight__say(f->fix,
        "look for a packet filter on %s or %s that treats TCP differently "
        "(nft list ruleset)",
        name_of(in, from), name_of(in, to));
}

/* ---- a pause ------------------------------------------------------------------------------- */

static bool end_restarts(
    const struct preflight_pair *p, unsigned way, const struct preflight_node *n)
{
    if (p->has_idle[way] && p->idle[way].congestion[0] != '\0')
        return p->idle[way].restarts;
    return !n->present || n->facts.tcp_restarts;
}

bool preflight_restarts(
    const struct preflight_pair *p, const struct preflight_node *a, const struct preflight_node *b)
{
    return end_restarts(p, 0, a) || end_restarts(p, 1, b);
}

/* Reach, sizes and loss. */
static void assess_idle(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p)
{
    /* Two that are present and could not test each other do not reach each other. */
    if ((!p->has_idle[0] && !p->has_idle[1] &&
            !(in->nodes[p->a].present && in->nodes[p->b].present)) ||
        assess_reach(r, in, p))
        return;
    for (unsigned way = 0; way < 2; way++) {
        size_t before = r->n;

        if (!p->has_idle[way])
            continue;
        assess_way(r, in, p, way);
        /* A finding for one direction is enough. */
        if (r->n > before)
            break;
    }
    preflight__assess_loss(r, in, p);
}

/* ---- rate ---------------------------------------------------------------------------------- */

/* The rate of the slower direction, in bits per second. */
static uint64_t slower(const struct bulk *b)
{
    return b->out.bits_per_s < b->in.bits_per_s ? b->out.bits_per_s : b->in.bits_per_s;
}

/* The rate of a pair in bits per second: that of its slower direction, with one stream or with
 * several, whichever was faster. 0 when throughput was not measured. */
static uint64_t pair_rate(const struct preflight_pair *p)
{
    uint64_t one = slower(&p->one);
    uint64_t many = slower(&p->many);

    return !p->has_bulk ? 0 : many > one ? many : one;
}

int preflight_compare_rates(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t preflight_median_rate(const struct preflight_pair *pairs, size_t n)
{
    _cleanup_(freep) uint64_t *rates = calloc(n + 1, sizeof(*rates));
    uint64_t median = 0;
    size_t n_rates = 0;

    for (size_t i = 0; rates && i < n; i++)
        if (pairs[i].has_bulk)
            rates[n_rates++] = pair_rate(&pairs[i]);
    if (n_rates > 0) {
        qsort(rates, n_rates, sizeof(*rates), preflight_compare_rates);
        median = rates[n_rates / 2];
    }
    return median;
}

bool preflight_is_slow(const struct preflight_pair *p, uint64_t median)
{
    return p->has_bulk && pair_rate(p) < median / PREFLIGHT_SLOW_PART;
}

static double mbit(uint64_t bits_per_s)
{
    return (double)bits_per_s / 1e6;
}

/*
 * The most bits per second that one TCP connection from the pair's first member to its second can
 * carry: one window for each round trip. The window is what both kernels' buffers allow. UINT64_MAX
 * when the round-trip time is not known.
 */
static uint64_t window_limit(const struct preflight_input *in, const struct preflight_pair *p)
{
    const struct facts *from = &in->nodes[p->a].facts;
    const struct facts *to = &in->nodes[p->b].facts;
    /* With the default tcp_adv_win_scale the kernel keeps half of a receive buffer for itself. */
    uint64_t window = to->tcp_receive_max / 2;
    double rtt_s = p->idle[0].rtt_median_us / USEC_PER_SEC;

    if (from->tcp_send_max < window)
        window = from->tcp_send_max;
    return rtt_s <= 0 ? UINT64_MAX : (uint64_t)((double)window * 8 / rtt_s);
}

static void assess_buffers(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p)
{
    uint64_t limit = window_limit(in, p);
    uint64_t one = slower(&p->one);
    uint64_t many = slower(&p->many);
    uint64_t goal = in->expect_bps > many ? in->expect_bps : many;
    struct preflight_finding *f;

    /* Where no rate is expected, the window is blamed only if one stream reached at least half of
     * that limit, and several streams together were faster than one by at least a half. */
    if (limit >= goal || (in->expect_bps == 0 && (2 * one < limit || 2 * many < 3 * one)))
        return;
    f = preflight__add(r, PREFLIGHT_BUFFERS, PREFLIGHT_WARN, p->a, p->b);
    preflight__say(f->text,
        "with an RTT of %.1f ms the TCP buffers of %s and %s hold one connection at "
        "%.0f Mbit/s, and the line carries %.0f",
        p->idle[0].rtt_median_us / 1000.0, name_of(in, p->a), name_of(in, p->b), mbit(limit),
        mbit(goal));
    preflight__say(f->fix,
        "on both: weft tune --apply, or sysctl -w net.ipv4.tcp_rmem='4096 131072 %.0f' "
        "net.ipv4.tcp_wmem='4096 16384 %.0f'",
        (double)goal / 4 * p->idle[0].rtt_median_us / USEC_PER_SEC,
        (double)goal / 4 * p->idle[0].rtt_median_us / USEC_PER_SEC);
}

/* The throughput between two members. @median: of all pairs, in bits per second. Where a loss is
 * why it is little, that is what is said. */
static void assess_rate(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median)
{
    uint64_t rate = pair_rate(p);
    struct preflight_finding *f;

    if (!p->has_bulk)
        return;
    if (!preflight__has_fatal_loss(p))
        assess_buffers(r, in, p);
    if (in->expect_bps > 0 && rate < in->expect_bps) {
        f = preflight__add(r, PREFLIGHT_SLOW, PREFLIGHT_NO, p->a, p->b);
        preflight__say(f->text, "%s and %s move %.1f Mbit/s, and %.1f were expected",
            name_of(in, p->a), name_of(in, p->b), mbit(rate), mbit(in->expect_bps));
    } else if (in->expect_bps == 0 && preflight_is_slow(p, median) &&
               !preflight__has_fatal_loss(p)) {
        f = preflight__add(r, PREFLIGHT_SLOW, PREFLIGHT_WARN, p->a, p->b);
        preflight__say(f->text, "%s and %s move %.1f Mbit/s, and the median pair %.1f",
            name_of(in, p->a), name_of(in, p->b), mbit(rate), mbit(median));
    } else {
        return;
    }
    preflight__say(f->fix,
        "a job in step waits for its slowest pair: look at their line (path: %s; weft "
        "bench %s), or leave one of them out",
        p->idle[0].path, name_of(in, p->b));
}

void preflight__assess_pair(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median)
{
    assess_idle(r, in, p);
    assess_rate(r, in, p, median);
}
