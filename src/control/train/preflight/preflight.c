/* preflight.c - see preflight.h: gathers the findings, merges them and draws the verdicts. */
#include "train/preflight/preflight.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "train/names/ifname.h"

/*
 * Microseconds by which a member's clock may differ from the others'. From PREFLIGHT_CLOCK_NO_US on
 * elastic rendezvous fails, because it compares the times of heartbeats of different machines.
 */
#define PREFLIGHT_CLOCK_NO_US   5000000
#define PREFLIGHT_CLOCK_WARN_US 500000
/* When so many percent of a train's pings are lost, or more, the finding has that level. */
#define PREFLIGHT_LOSS_WARN 5
#define PREFLIGHT_LOSS_NO   20
/* A pair is slow when its rate is below the median pair's rate divided by this. */
#define PREFLIGHT_SLOW_PART 8
/* Open files that a rank needs in any case, and the further ones that it needs for each member. */
#define PREFLIGHT_FILES_BASE 1024
#define PREFLIGHT_FILES_EACH 64

/* ==== the list of findings =================================================================== */

/* Adds a finding about @a and @b, or PREFLIGHT_NOBODY; lent until the next call. Never NULL: when
 * memory runs out, the report remembers that in @failed. */
static struct preflight_finding *add_finding(struct preflight_report *r, enum preflight_fault fault,
    enum preflight_level level, size_t a, size_t b)
{
    /* Takes the place of a finding for which there was no memory. Nobody reads it, because
     * preflight_assess() then fails. */
    static _Thread_local struct preflight_finding lost;
    struct preflight_finding *items = sorted_open(r->items, r->n, sizeof(*items), r->n, &r->cap);

    if (!items) {
        r->failed = true;
        return &lost;
    }
    r->items = items;
    r->items[r->n] = (struct preflight_finding){.fault = fault, .level = level, .a = a, .b = b};
    return &r->items[r->n++];
}

/* Writes a finding's text, or its fix. */
static __attribute__((format(printf, 2, 3))) void say(char text[static 256], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, 256, fmt, args);
    va_end(args);
}

/* ==== two members ============================================================================ */

#define MTU_MIN      1280 /* bytes; the least that IPv6 needs (RFC 8200, section 5) */
#define LOSS_MIN     3    /* losing fewer pings than this counts as chance, whatever their share */
#define RATE_TEXT    32
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
    struct preflight_finding *f = add_finding(r, PREFLIGHT_ONE_WAY, PREFLIGHT_NO, p->a, p->b);

    say(f->text, "packets from %s do not reach %s, though those of %s reach %s", name_of(in, from),
        name_of(in, to), name_of(in, to), name_of(in, from));
    say(f->fix,
        "look for a packet filter on %s that drops what comes in on %s from %s "
        "(nft list ruleset), or on %s what goes out",
        name_of(in, to), in->nodes[to].facts.interface, name_of(in, from), name_of(in, from));
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
    f = add_finding(r, PREFLIGHT_UNREACHABLE, PREFLIGHT_NO, p->a, p->b);
    say(f->text, "%s and %s do not reach each other over the overlay (path: %s)", name_of(in, p->a),
        name_of(in, p->b), p->idle[0].path[0] ? p->idle[0].path : "none");
    say(f->fix,
        "weft status on %s says why; an edge that is off is set with weft edge set "
        "%s %s --path auto, on the hub",
        name_of(in, p->a), name_of(in, p->a), name_of(in, p->b));
    return true;
}

/* ---- size ---------------------------------------------------------------------------------- */

static void assess_size(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, unsigned way)
{
    const struct idle_test *l = &p->idle[way];
    size_t from = way == 0 ? p->a : p->b;
    size_t to = way == 0 ? p->b : p->a;
    struct preflight_finding *f;

    if (l->route_mtu > 0 && l->packet_max < l->route_mtu) {
        f = add_finding(r, PREFLIGHT_MTU, PREFLIGHT_NO, p->a, p->b);
        say(f->text,
            "packets of more than %u bytes from %s do not reach %s, and %s sends up "
            "to %u (MSS %u)",
            l->packet_max, name_of(in, from), name_of(in, to), name_of(in, from), l->route_mtu,
            l->mss);
        if (l->packet_max >= MTU_MIN)
            say(f->fix,
                "set the network's mtu to %u (spec.mtu of the Network, weft apply), "
                "or find what drops larger packets between them",
                l->packet_max);
        else
            say(f->fix,
                "find what drops packets over %u bytes between them: no overlay can "
                "be below %u, which IPv6 needs",
                l->packet_max, (unsigned)MTU_MIN);
        return;
    }
    if (l->transferred || l->back == 0)
        return;
    f = add_finding(r, PREFLIGHT_TCP, PREFLIGHT_NO, p->a, p->b);
    say(f->text, "pings from %s to %s are answered, but a TCP connection %s: %s", name_of(in, from),
        name_of(in, to), l->connected ? "carries no full-size segments" : "does not come about",
        l->why);
    say(f->fix,
        "look for a packet filter on %s or %s that treats TCP differently "
        "(nft list ruleset)",
        name_of(in, from), name_of(in, to));
}

/* ---- loss ---------------------------------------------------------------------------------- */

static unsigned lost_percent(uint32_t of, uint32_t came)
{
    return of > 0 && came < of ? (unsigned)(100 * (uint64_t)(of - came) / of) : 0;
}

/* Of @of pings that were sent @came arrived. Is that more loss than chance explains? */
static bool is_loss(uint32_t of, uint32_t came)
{
    return of >= came + LOSS_MIN && lost_percent(of, came) >= PREFLIGHT_LOSS_WARN;
}

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

bool preflight_loses(const struct preflight_pair *p)
{
    for (unsigned way = 0; way < 2; way++)
        if (p->has_idle[way] && p->idle[way].back > 0 &&
            is_loss(p->idle[way].sent, p->idle[way].heard))
            return true;
    return false;
}

/* Each direction by itself, by the pings that its receiver heard: no pong counts. */
static void assess_loss(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, unsigned way)
{
    const struct idle_test *l = &p->idle[way];
    size_t from = way == 0 ? p->a : p->b;
    size_t to = way == 0 ? p->b : p->a;
    unsigned percent = lost_percent(l->sent, l->heard);
    struct preflight_finding *f;

    if (l->back == 0 || !is_loss(l->sent, l->heard))
        return;
    f = add_finding(r, PREFLIGHT_LOSS, percent >= PREFLIGHT_LOSS_NO ? PREFLIGHT_NO : PREFLIGHT_WARN,
        p->a, p->b);
    say(f->text, "%u %% of %u small packets from %s to %s were lost", percent, l->sent,
        name_of(in, from), name_of(in, to));
    say(f->fix, "look at the line between them (path: %s); weft bench %s shows it under load",
        l->path, name_of(in, to));
}

static void assess_pair(
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
        assess_size(r, in, p, way);
        assess_loss(r, in, p, way);
        /* A finding for one direction is enough. */
        if (r->n > before)
            break;
    }
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
    f = add_finding(r, PREFLIGHT_BUFFERS, PREFLIGHT_WARN, p->a, p->b);
    say(f->text,
        "with an RTT of %.1f ms the TCP buffers of %s and %s hold one connection at "
        "%.0f Mbit/s, and the line carries %.0f",
        p->idle[0].rtt_median_us / 1000.0, name_of(in, p->a), name_of(in, p->b), mbit(limit),
        mbit(goal));
    say(f->fix,
        "on both: sysctl -w net.ipv4.tcp_rmem='4096 131072 %.0f' "
        "net.ipv4.tcp_wmem='4096 16384 %.0f'",
        (double)goal / 4 * p->idle[0].rtt_median_us / USEC_PER_SEC,
        (double)goal / 4 * p->idle[0].rtt_median_us / USEC_PER_SEC);
}

/* The throughput between two members. @median: of all pairs, in bits per second. */
static void assess_rate(struct preflight_report *r, const struct preflight_input *in,
    const struct preflight_pair *p, uint64_t median)
{
    uint64_t rate = pair_rate(p);
    struct preflight_finding *f;

    if (!p->has_bulk)
        return;
    assess_buffers(r, in, p);
    if (in->expect_bps > 0 && rate < in->expect_bps) {
        f = add_finding(r, PREFLIGHT_SLOW, PREFLIGHT_NO, p->a, p->b);
        say(f->text, "%s and %s move %.1f Mbit/s, and %.1f were expected", name_of(in, p->a),
            name_of(in, p->b), mbit(rate), mbit(in->expect_bps));
    } else if (in->expect_bps == 0 && preflight_is_slow(p, median)) {
        f = add_finding(r, PREFLIGHT_SLOW, PREFLIGHT_WARN, p->a, p->b);
        say(f->text, "%s and %s move %.1f Mbit/s, and the median pair %.1f", name_of(in, p->a),
            name_of(in, p->b), mbit(rate), mbit(median));
    } else {
        return;
    }
    say(f->fix,
        "a job in step waits for its slowest pair: look at their line (path: %s; weft "
        "bench %s), or leave one of them out",
        p->idle[0].path, name_of(in, p->b));
}

/* ==== one member ============================================================================= */

/* ---- clock --------------------------------------------------------------------------------- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/*
 * Returns by how many microseconds the member's clock is ahead of the others': the median over the
 * pairs in which it measured. *@ret_error is the largest error of these measurements, also in
 * microseconds.
 */
static int64_t clock_ahead(const struct preflight_input *in, size_t node, uint32_t *ret_error)
{
    _cleanup_(freep) int64_t *ahead = calloc(in->n_nodes + 1, sizeof(*ahead));
    int64_t median = 0;
    size_t n = 0;

    *ret_error = 0;
    for (size_t i = 0; ahead && i < in->n_pairs && n < in->n_nodes; i++) {
        const struct preflight_pair *p = &in->pairs[i];
        unsigned way = p->a == node ? 0 : 1;

        if ((p->a != node && p->b != node) || !p->has_idle[way] || p->idle[way].back == 0)
            continue;
        ahead[n++] = -p->idle[way].clock_us;
        if (p->idle[way].clock_error_us > *ret_error)
            *ret_error = p->idle[way].clock_error_us;
    }
    if (n > 0) {
        qsort(ahead, n, sizeof(*ahead), compare_i64);
        median = ahead[n / 2];
    }
    return median;
}

static void assess_clock(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    uint32_t error;
    int64_t ahead = clock_ahead(in, node, &error);
    int64_t off = llabs(ahead) - (int64_t)error;
    struct preflight_finding *f;

    if (off < PREFLIGHT_CLOCK_WARN_US)
        return;
    f = add_finding(r, PREFLIGHT_CLOCK,
        off >= PREFLIGHT_CLOCK_NO_US ? PREFLIGHT_NO : PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
    say(f->text, "the clock of %s is %.1f s %s the others'%s", in->nodes[node].name,
        (double)llabs(ahead) / 1e6, ahead > 0 ? "ahead of" : "behind",
        off >= PREFLIGHT_CLOCK_NO_US ? "; torchrun's rendezvous takes a node for dead whose "
                                       "heartbeat looks old"
                                     : "");
    say(f->fix, "let it follow a time server: systemctl enable --now systemd-timesyncd, or "
                "chronyc makestep");
}

/* ---- interfaces ---------------------------------------------------------------------------- */

static bool is_set(const char *value)
{
    return value && value[0] != '\0';
}

static void assess_nccl(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    const struct preflight_environment *env = &in->env;
    char own[IFNAMSIZ + 1];
    const char *list = env->nccl_ifname;
    const char *source = "NCCL_SOCKET_IFNAME is";
    struct ifname_choice choice;
    struct preflight_finding *f;
    char names[128];

    (void)snprintf(own, sizeof(own), "=%s", facts->interface);
    if (!is_set(list) && !env->plain) {
        list = own;
    } else if (!is_set(list)) {
        list = facts->nccl_ifname;
        source = is_set(list) ? "nccl.conf says" : "NCCL_SOCKET_IFNAME is";
    }
    choice =
        ifname_nccl(facts, list, is_set(env->nccl_family) ? env->nccl_family : facts->nccl_family);
    if (ifname_is_only(&choice, facts->interface))
        return;
    f = add_finding(r, PREFLIGHT_NCCL_INTERFACE, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    say(f->text, "on %s NCCL would take %s and not only %s (%s \"%.60s\")", in->nodes[node].name,
        ifname_format(&choice, names), facts->interface, source, is_set(list) ? list : "");
    say(f->fix, "NCCL_SOCKET_IFNAME==%s, which weft run sets where it is not set",
        facts->interface);
}

static void assess_gloo(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    const char *list = in->env.gloo_ifname;
    struct ifname_choice choice;
    struct preflight_finding *f;
    char names[128];

    if (!is_set(list) && !in->env.plain)
        list = facts->interface;
    choice = ifname_gloo(facts, list);
    if (ifname_is_only(&choice, facts->interface))
        return;
    f = add_finding(r, PREFLIGHT_GLOO_INTERFACE, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    if (is_set(list))
        say(f->text,
            "on %s Gloo would take %s and not %s (GLOO_SOCKET_IFNAME is \"%.60s\", "
            "and Gloo takes plain whole names)",
            in->nodes[node].name, ifname_format(&choice, names), facts->interface, list);
    else
        say(f->text,
            "on %s Gloo would take %s and not %s: that is where the machine's own "
            "name leads",
            in->nodes[node].name, ifname_format(&choice, names), facts->interface);
    say(f->fix, "GLOO_SOCKET_IFNAME=%s, which weft run sets where it is not set", facts->interface);
}

/* ---- limits and names ---------------------------------------------------------------------- */

static void assess_limits(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    uint64_t need = PREFLIGHT_FILES_BASE + PREFLIGHT_FILES_EACH * (uint64_t)in->n_nodes;
    struct preflight_finding *f;

    if (facts->nofile_hard < need) {
        f = add_finding(r, PREFLIGHT_FILES, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
        say(f->text,
            "on %s a program may have %llu files open, and %llu are needed with %zu "
            "members",
            in->nodes[node].name, (unsigned long long)facts->nofile_hard, (unsigned long long)need,
            in->n_nodes);
        say(f->fix, "raise the hard limit: LimitNOFILE=1048576 in the service's unit, or "
                    "\"* hard nofile 1048576\" in /etc/security/limits.conf, and start anew");
    }
    if (facts->has_rdma && facts->memlock_hard < FACTS_UNLIMITED) {
        f = add_finding(r, PREFLIGHT_MEMLOCK, PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
        say(f->text,
            "on %s a program may lock %llu bytes of memory, and its RDMA device needs "
            "all that it registers",
            in->nodes[node].name, (unsigned long long)facts->memlock_hard);
        say(f->fix, "LimitMEMLOCK=infinity in the service's unit, docker run --ulimit "
                    "memlock=-1, or limits.conf");
    }
}

static void assess_names(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    struct preflight_finding *f;

    if (n->names_wrong[0] != '\0') {
        f = add_finding(r, PREFLIGHT_NAMES, PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
        say(f->text, "on %s %s, which is not its overlay address", n->name, n->names_wrong);
        say(f->fix, "remove the older entry from /etc/hosts or the name server, or name "
                    "members by their overlay addresses");
    } else if (n->names_missing > 0) {
        f = add_finding(r, PREFLIGHT_NAMES, PREFLIGHT_NOTE, node, PREFLIGHT_NOBODY);
        say(f->text, "on %s %u of the members' names lead nowhere; weft run uses addresses",
            n->name, n->names_missing);
    }
}

/*
 * torchrun of torch 1.x always has rank 0 announce its host name. Later versions announce the
 * address that weft run sets, and the host name only where weft run is not used.
 */
static void assess_host_name(
    struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    const char *torch = n->facts.versions.torch;
    struct preflight_finding *f;

    if (n->host_name_wrong[0] == '\0' || torch[0] == '\0' || !in->env.keeps_host_name ||
        (strncmp(torch, "1.", 2) != 0 && !in->env.plain))
        return;
    f = add_finding(r, PREFLIGHT_HOST_NAME, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    say(f->text, "torch %.20s has rank 0 announce its host name, and that of %s, \"%.64s\", %s",
        torch, n->name, n->facts.hostname, n->host_name_wrong);
    say(f->fix,
        "run the job as root with weft run, which has it announce the node's name; "
        "or call the machine as its node (hostname %s); or use torch 2",
        n->name);
}

/* Where this machine has no way to a member, nothing is known of the agent there. */
static void assess_absent(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    struct preflight_finding *f =
        add_finding(r, PREFLIGHT_ABSENT, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);

    if (n->no_path[0] != '\0')
        say(f->text, "%s cannot be asked: no way leads to it: %s", n->name, n->no_path);
    else
        say(f->text, "%s cannot be asked: %s", n->name, n->why);
    if (n->no_path[0] != '\0')
        say(f->fix, "%s; or leave it out with --nodes",
            !in->hub_away ? "look at weft status here, and there, where its agent may be down"
                          : "see to the hub first");
    else if (n->is_stock)
        say(f->fix, "leave it out of --nodes: it is a stock WireGuard, without an agent");
    else
        say(f->fix, "start its agent (systemctl start weft-agent; weft agent "
                    "--background), look at weft "
                    "status there, or leave it out with --nodes");
}

static void assess_node(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];

    if (!n->present) {
        assess_absent(r, in, node);
        return;
    }
    assess_clock(r, in, node);
    assess_nccl(r, in, node);
    assess_gloo(r, in, node);
    assess_names(r, in, node);
    assess_host_name(r, in, node);
    assess_limits(r, in, node);
}

/* ---- versions ------------------------------------------------------------------------------ */

/* Which versions are compared, and how bad a difference is. */
static const struct {
    const char *what; /* the software, for the text of the finding */
    size_t offset;    /* of the version in struct facts_versions, bytes */
    unsigned parts; /* how many numbers of a version such as 2.8.0 must agree; 0: the whole text */
    enum preflight_level level;
    const char *why; /* why it should be the same everywhere; "" where there is no advice */
} compared[] = {
    {"NCCL", offsetof(struct facts_versions, nccl), 3, PREFLIGHT_NO,
        "NCCL refuses to talk to another version of itself"},
    {"torch", offsetof(struct facts_versions, torch), 2, PREFLIGHT_WARN,
        "rendezvous and collectives are only tested between equals"},
    {"python", offsetof(struct facts_versions, python), 2, PREFLIGHT_WARN,
        "pickled objects and checkpoints may not load"},
    {"weft", offsetof(struct facts_versions, weft), 0, PREFLIGHT_WARN, "upgrade the older ones"},
    {"kernel", offsetof(struct facts_versions, kernel), 0, PREFLIGHT_NOTE, ""},
};

/* The length in bytes of the first @parts numbers of a version: that of "2.8" in "2.8.0+cu128" for
 * two. With @parts 0 it is that of the whole text. */
static size_t part_length(const char *version, unsigned parts)
{
    size_t len = 0;

    if (parts == 0)
        return strlen(version);
    for (unsigned i = 0; i < parts; i++) {
        len += strspn(version + len, "0123456789");
        if (i + 1 < parts && version[len] == '.')
            len++;
    }
    return len;
}

static bool versions_agree(const char *a, const char *b, unsigned parts)
{
    size_t len = part_length(a, parts);

    return len == part_length(b, parts) && strncmp(a, b, len) == 0;
}

static const char *version_of(const struct preflight_node *n, size_t offset)
{
    return (const char *)&n->facts.versions + offset;
}

/* Finds a member with the most common version; the first one if several versions are equally
 * common, PREFLIGHT_NOBODY if no member has told a version. */
static size_t find_usual(const struct preflight_input *in, size_t offset, unsigned parts)
{
    size_t best = PREFLIGHT_NOBODY;
    size_t best_n = 0;

    for (size_t i = 0; i < in->n_nodes; i++) {
        size_t n = 0;

        if (!in->nodes[i].present || version_of(&in->nodes[i], offset)[0] == '\0')
            continue;
        for (size_t k = 0; k < in->n_nodes; k++)
            n += in->nodes[k].present && versions_agree(version_of(&in->nodes[i], offset),
                                             version_of(&in->nodes[k], offset), parts);
        if (n > best_n) {
            best = i;
            best_n = n;
        }
    }
    return best;
}

static void assess_versions(struct preflight_report *r, const struct preflight_input *in)
{
    for (size_t c = 0; c < sizeof(compared) / sizeof(*compared); c++) {
        size_t usual = find_usual(in, compared[c].offset, compared[c].parts);

        for (size_t i = 0; i < in->n_nodes && usual != PREFLIGHT_NOBODY; i++) {
            const char *have = version_of(&in->nodes[i], compared[c].offset);
            const char *want = version_of(&in->nodes[usual], compared[c].offset);
            struct preflight_finding *f;

            if (!in->nodes[i].present || versions_agree(have, want, compared[c].parts))
                continue;
            /* If none was found, it may still be installed in a virtual environment, where the
             * member does not look. That is why this is only a note. */
            f = add_finding(r, PREFLIGHT_VERSIONS, have[0] ? compared[c].level : PREFLIGHT_NOTE, i,
                PREFLIGHT_NOBODY);
            say(f->text, "%s has %s %s, and %s has %s", in->nodes[i].name, compared[c].what,
                have[0] ? have : "(none found)", in->nodes[usual].name, want);
            if (f->level > PREFLIGHT_NOTE)
                say(f->fix, "install the same %s everywhere: %s", compared[c].what,
                    compared[c].why);
        }
    }
}

/* ==== the report ============================================================================= */

/* ---- one member's fault, told once --------------------------------------------------------- */

/* Counts, for one kind of fault, in how many of the pairs that have it each member is. */
struct tally {
    size_t *in;       /* owns; pairs with the fault, by index of the member */
    size_t n_present; /* how many members could be asked */
};

static void count_fault(
    const struct preflight_report *r, enum preflight_fault fault, struct tally *t, size_t n_nodes)
{
    memset(t->in, 0, n_nodes * sizeof(*t->in));
    for (size_t i = 0; i < r->n; i++) {
        const struct preflight_finding *f = &r->items[i];

        if (f->fault != fault || f->b == PREFLIGHT_NOBODY)
            continue;
        t->in[f->a]++;
        t->in[f->b]++;
    }
}

/*
 * Merges the member's findings of that fault about a pair: the first becomes a finding about the
 * member alone, with the gravest level of them all, and the others are dropped.
 */
static void merge_one(struct preflight_report *r, const struct preflight_input *in,
    enum preflight_fault fault, size_t node, size_t n_others)
{
    size_t kept = SIZE_MAX;
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct preflight_finding f = r->items[i];
        bool is_one = f.fault == fault && f.b != PREFLIGHT_NOBODY && (f.a == node || f.b == node);

        if (is_one && kept != SIZE_MAX) {
            if (f.level > r->items[kept].level)
                r->items[kept].level = f.level;
            continue;
        }
        if (is_one) {
            size_t other = f.a == node ? f.b : f.a;
            char text[sizeof(f.text)];

            kept = n;
            f.a = node;
            f.b = PREFLIGHT_NOBODY;
            memcpy(text, f.text, sizeof(text));
            say(f.text, "with %zu other members, as with %s: %.180s", n_others,
                in->nodes[other].name, text);
        }
        r->items[n++] = f;
    }
    r->n = n;
}

/*
 * When a member has the same fault with at least two others, and with at least three quarters of
 * them, the fault is taken for that member's. The member with the most such pairs is dealt with
 * first, so that its pairs are no longer counted for the other members.
 */
static void merge_fault(struct preflight_report *r, const struct preflight_input *in,
    enum preflight_fault fault, struct tally *t)
{
    for (;;) {
        size_t worst = 0;

        count_fault(r, fault, t, in->n_nodes);
        for (size_t i = 1; i < in->n_nodes; i++)
            if (t->in[i] > t->in[worst])
                worst = i;
        if (t->in[worst] < 2 || 4 * t->in[worst] < 3 * (t->n_present - 1))
            return;
        merge_one(r, in, fault, worst, t->in[worst]);
    }
}

static int merge(struct preflight_report *r, const struct preflight_input *in)
{
    struct tally t = {.in = calloc(in->n_nodes + 1, sizeof(*t.in))};

    if (!t.in)
        return -ENOMEM;
    for (size_t i = 0; i < in->n_nodes; i++)
        t.n_present += in->nodes[i].present;
    for (unsigned f = 0; f < PREFLIGHT_FAULT_N; f++)
        merge_fault(r, in, (enum preflight_fault)f, &t);
    free(t.in);
    return 0;
}

/* ---- verdicts ------------------------------------------------------------------------------ */

/*
 * Gives the job and each pair the level of their gravest finding. A finding about one member counts
 * for each of its pairs.
 */
static void spread(struct preflight_report *r, const struct preflight_input *in)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct preflight_finding *f = &r->items[i];

        if (f->level > r->level)
            r->level = f->level;
        for (size_t p = 0; p < in->n_pairs; p++) {
            const struct preflight_pair *pair = &in->pairs[p];
            bool is_about = f->b == PREFLIGHT_NOBODY ? pair->a == f->a || pair->b == f->a
                                                     : pair->a == f->a && pair->b == f->b;

            if (is_about && f->level > r->pair_levels[p])
                r->pair_levels[p] = f->level;
        }
    }
}

static int compare_findings(const void *x, const void *y)
{
    const struct preflight_finding *a = x;
    const struct preflight_finding *b = y;

    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    if (a->fault != b->fault)
        return a->fault < b->fault ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return (a->b > b->b) - (a->b < b->b);
}

/* Without its interface nobody is reached, and without the hub members do not meet. */
static void assess_own(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;

    if (in->own_fault) {
        f = add_finding(r, PREFLIGHT_INTERFACE, PREFLIGHT_NO, 0, PREFLIGHT_NOBODY);
        say(f->text, "the interface of %s is not as it should be: %s", in->nodes[0].name,
            in->own_fault);
        say(f->fix,
            "mend that here; the agent goes on trying, and weft status says when it is well");
    }
    if (in->hub_away) {
        f = add_finding(r, PREFLIGHT_HUB, in->env.plain ? PREFLIGHT_WARN : PREFLIGHT_NO,
            PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
        say(f->text, "the hub %s, at which weft run has members meet, does not answer %s",
            in->hub_away, in->nodes[0].name);
        say(f->fix, "see that it runs and is reached from here (weft status)");
    }
}

static void assess_live(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;

    if (!in->skipped_bulk)
        return;
    f = add_finding(r, PREFLIGHT_LIVE, PREFLIGHT_NOTE, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    for (size_t i = 0; i < in->n_nodes; i++) {
        const struct facts *facts = &in->nodes[i].facts;

        if (!in->nodes[i].present || (facts->jobs == 0 && facts->traffic < PREFLIGHT_LIVE_RATE))
            continue;
        say(f->text, "%s has %s, so throughput was not measured; --force does it all the same",
            in->nodes[i].name, facts->jobs > 0 ? "a job of weft run" : "traffic on the overlay");
        return;
    }
}

static void assess_paths(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;
    size_t n = 0;

    for (size_t i = 0; i < in->n_pairs; i++) {
        const char *path = in->pairs[i].idle[0].path;

        n += strcmp(path, "relay") == 0 || strcmp(path, "stream") == 0;
    }
    if (n == 0)
        return;
    f = add_finding(r, PREFLIGHT_PATH, PREFLIGHT_NOTE, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    say(f->text, "%zu of %zu pairs talk through a hub; weft status says why", n, in->n_pairs);
}

int preflight_assess(struct preflight_report *ret, const struct preflight_input *in)
{
    struct preflight_report r = {.pair_levels = calloc(in->n_pairs + 1, sizeof(*r.pair_levels))};
    uint64_t median = preflight_median_rate(in->pairs, in->n_pairs);

    if (!r.pair_levels)
        return -ENOMEM;
    assess_own(&r, in);
    for (size_t i = 0; i < in->n_nodes; i++)
        assess_node(&r, in, i);
    assess_versions(&r, in);
    for (size_t i = 0; i < in->n_pairs; i++) {
        assess_pair(&r, in, &in->pairs[i]);
        assess_rate(&r, in, &in->pairs[i], median);
    }
    assess_live(&r, in);
    assess_paths(&r, in);
    if (merge(&r, in) < 0 || r.failed) {
        preflight_report_deinit(&r);
        return -ENOMEM;
    }
    spread(&r, in);
    if (r.n > 1)
        qsort(r.items, r.n, sizeof(*r.items), compare_findings);
    *ret = r;
    return 0;
}

void preflight_report_deinit(struct preflight_report *r)
{
    free(r->items);
    free(r->pair_levels);
    *r = (struct preflight_report)PREFLIGHT_REPORT_NULL;
}
