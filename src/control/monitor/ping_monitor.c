/* ping_monitor.c - see ping_monitor.h. */
#include "monitor/ping_monitor.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/text.h"
#include "measure/dial.h"
#include "mesh/object/fields.h"
#include "net/address/sockaddr.h"
#include "os/file.h"
#include "wire/ip.h"

/* ---- is it reached? -------------------------------------------------------------------------- */

const char *const reachability_state_names[] = {"unknown", "reached", "silent"};

_Static_assert(
    sizeof(reachability_state_names) / sizeof(*reachability_state_names) == REACHABILITY_STATE_N,
    "a name each");

/* Changes the state; returns false if it was the same already. */
static bool enter_state(struct reachability *r, enum reachability_state state, nsec_t now)
{
    if (r->state == state)
        return false;
    r->state = state;
    r->state_since = now;
    return true;
}

uint16_t reachability_on_ping(struct reachability *r, nsec_t now)
{
    r->seq++;
    r->ring[r->seq % REACHABILITY_WINDOW] = (struct reachability_ping){.sent_at = now};
    if (r->silent_pings == 0)
        r->silent_since = now;
    r->silent_pings++;
    r->n_pings++;
    return r->seq;
}

bool reachability_on_answer(struct reachability *r, uint16_t seq, nsec_t now)
{
    struct reachability_ping *ping = &r->ring[seq % REACHABILITY_WINDOW];

    /* A number from before the window must be refused: its place now belongs to a later ping. */
    if ((uint16_t)(r->seq - seq) >= REACHABILITY_WINDOW || ping->sent_at == 0 || ping->answered)
        return false;
    ping->answered = true;
    r->rtt = nsec_max(now - ping->sent_at, 1);
    r->silent_pings = 0;
    r->silent_since = 0;
    r->n_answers++;
    return enter_state(r, REACHABILITY_REACHED, now);
}

bool reachability_check(struct reachability *r, nsec_t now)
{
    if (r->silent_pings < REACHABILITY_SILENT_PINGS ||
        now - r->silent_since < REACHABILITY_SILENT_FOR)
        return false;
    return enter_state(r, REACHABILITY_SILENT, now);
}

unsigned reachability_loss_permille(const struct reachability *r, nsec_t now)
{
    unsigned n = 0;
    unsigned lost = 0;

    for (unsigned i = 0; i < REACHABILITY_WINDOW; i++) {
        const struct reachability_ping *ping = &r->ring[i];

        if (ping->sent_at == 0 || (!ping->answered && now - ping->sent_at < REACHABILITY_LATE_FOR))
            continue;
        n++;
        lost += !ping->answered;
    }
    return n > 0 ? lost * 1000 / n : 0;
}

/* ---- pings ----------------------------------------------------------------------------------- */

/* Most answers that are read in one call, so that many answers do not delay the pings. */
#define ANSWERS_A_TURN 256

/* Bytes for the longest IPv4 header (60) and an answer. A longer packet is cut off. */
#define ANSWER_CAP (60 + ECHO_LEN)

static int open_v4(void)
{
    struct icmp_filter filter = {.data = ~(1u << ICMP_ECHOREPLY)};
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);

    if (fd < 0)
        return -errno;
    /* A failure does no harm: other kinds of ICMP are then read, too, and echo_decode() refuses
     * them. */
    (void)setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter));
    return fd;
}

static int open_v6(void)
{
    struct icmp6_filter filter;
    int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);

    if (fd < 0)
        return -errno;
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
    (void)setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter));
    return fd;
}

int ping_monitor_open(struct ping_monitor *p, const char *interface, nsec_t period, uint64_t cookie,
    ping_monitor_fn on_change, void *ctx, struct err *e)
{
    int fd = open_v4();

    if (fd < 0)
        return err_set(e, fd, "no socket for pings: %s%s", strerror(-fd),
            fd == -EPERM || fd == -EACCES ? "; it takes root, or CAP_NET_RAW" : "");
    p->fd[PING_MONITOR_V4] = fd;
    fd = open_v6();
    p->fd[PING_MONITOR_V6] = fd < 0 ? -1 : fd;
    (void)snprintf(p->interface, sizeof(p->interface), "%s", interface);
    p->id = (uint16_t)cookie;
    p->cookie = cookie;
    p->period = period;
    p->on_change = on_change;
    p->ctx = ctx;
    return 0;
}

void ping_monitor_close(struct ping_monitor *p)
{
    for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
        closep(&p->fd[f]);
    free(p->members);
    *p = (struct ping_monitor)PING_MONITOR_NULL;
}

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const struct ping_monitor_member *)a)->name,
        ((const struct ping_monitor_member *)b)->name);
}

void ping_monitor_set(struct ping_monitor *p, struct ping_monitor_member *members, size_t n)
{
    for (size_t i = 0; i < n && p->n > 0; i++) {
        const struct ping_monitor_member *was =
            bsearch(&members[i], p->members, p->n, sizeof(*members), compare_members);

        for (unsigned f = 0; was && f < PING_MONITOR_FAMILY_N; f++)
            if (ip_addr_equal(&was->address[f], &members[i].address[f]))
                members[i].reach[f] = was->reach[f];
    }
    free(p->members);
    p->members = members;
    p->n = n;
    if (p->cursor > n)
        p->cursor = n;
}

/* Binds the sockets to the interface again when it was deleted and created again, which changes its
 * index. ifindex is 0 while there is no interface, or binding to it has failed. */
static void follow_interface(struct ping_monitor *p)
{
    unsigned ifindex = if_nametoindex(p->interface);

    if (ifindex == p->ifindex)
        return;
    p->ifindex = ifindex;
    for (unsigned f = 0; ifindex != 0 && f < PING_MONITOR_FAMILY_N; f++)
        if (p->fd[f] >= 0 && dial_bind_device(p->fd[f], p->interface) < 0)
            p->ifindex = 0;
}

static void ping_member(
    struct ping_monitor *p, size_t index, enum ping_monitor_family family, nsec_t now)
{
    struct ping_monitor_member *m = &p->members[index];
    struct reachability *reach = &m->reach[family];
    struct endpoint to = {.addr = m->address[family]};
    struct echo echo = {.id = p->id, .index = (uint32_t)index, .cookie = p->cookie};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &to);
    uint8_t out[ECHO_LEN];

    if (reachability_check(reach, now))
        p->on_change(p->ctx, m, family, now);
    echo.seq = reachability_on_ping(reach, now);
    echo_encode(&echo, family == PING_MONITOR_V4, out);
    /* The ping must not leave by another interface, so without this one it is not sent. A ping that
     * was not sent counts like a lost one. */
    if (p->ifindex != 0)
        (void)sendto(p->fd[family], out, sizeof(out), MSG_DONTWAIT, &sa.any, len);
}

/* How long a round lasts with these members, ns. */
static nsec_t round_length(const struct ping_monitor *p)
{
    return nsec_max(p->period, (nsec_t)p->n * p->pace);
}

static nsec_t member_due(const struct ping_monitor *p, size_t index)
{
    return p->round_since + (nsec_t)((double)round_length(p) * (double)index / (double)p->n);
}

nsec_t ping_monitor_due(const struct ping_monitor *p)
{
    return p->n > 0 ? member_due(p, p->cursor) : NSEC_NEVER;
}

bool ping_monitor_run(struct ping_monitor *p, nsec_t now)
{
    bool begins =
        p->n > 0 && (p->round_since == 0 || (p->cursor == p->n && member_due(p, p->n) <= now));

    if (begins) {
        /* After a suspend of the machine the rounds that it missed are left out. */
        p->round_since =
            now - p->round_since < 2 * round_length(p) ? p->round_since + round_length(p) : now;
        p->cursor = 0;
        follow_interface(p);
    }
    for (; p->cursor < p->n && member_due(p, p->cursor) <= now; p->cursor++)
        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
            if (p->fd[f] >= 0)
                ping_member(p, p->cursor, (enum ping_monitor_family)f, now);
    return begins;
}

void ping_monitor_take(struct ping_monitor *p, enum ping_monitor_family family, nsec_t now)
{
    for (unsigned i = 0; i < ANSWERS_A_TURN; i++) {
        uint8_t buf[ANSWER_CAP];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct endpoint from;
        struct echo echo;
        ssize_t n = recvfrom(p->fd[family], buf, sizeof(buf), MSG_DONTWAIT, &sa.any, &sa_len);
        /* A raw IPv4 socket puts the IP header before the message; a raw IPv6 socket does not. */
        size_t off = family == PING_MONITOR_V4 && n > 0 ? (buf[0] & 0x0fu) * 4u : 0;

        if (n < 0)
            return;
        if ((size_t)n < off || !sockaddr_to_endpoint(&sa, &from) ||
            !echo_decode(&echo, family == PING_MONITOR_V4, buf + off, (size_t)n - off) ||
            !(echo.id == p->id && echo.cookie == p->cookie && echo.index < p->n &&
                ip_addr_equal(&p->members[echo.index].address[family], &from.addr)))
            continue;
        if (reachability_on_answer(&p->members[echo.index].reach[family], echo.seq, now))
            p->on_change(p->ctx, &p->members[echo.index], family, now);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *const ping_monitor_family_names[] = {"ipv4", "ipv6"};

_Static_assert(
    sizeof(ping_monitor_family_names) / sizeof(*ping_monitor_family_names) == PING_MONITOR_FAMILY_N,
    "a name each");

/* ---- for people ----------------------------------------------------------------------------- */

static void add_reachability(struct table *t, const struct reachability *r, nsec_t now)
{
    if (r->state == REACHABILITY_REACHED)
        table_add(t, "%.1f ms", (double)r->rtt / NSEC_PER_MSEC);
    else
        table_add(t, "%s", r->state == REACHABILITY_SILENT ? "no answer" : "-");
    table_add(t, "%.1f %%", reachability_loss_permille(r, now) / 10.0);
}

void ping_monitor_format(const struct ping_monitor *p, nsec_t now, struct str *out)
{
    bool v6 = p->fd[PING_MONITOR_V6] >= 0;
    struct table t = {.n_columns = v6 ? 5 : 3};

    table_add(&t, "NODE");
    table_add(&t, "IPV4");
    table_add(&t, "LOSS");
    if (v6) {
        table_add(&t, "IPV6");
        table_add(&t, "LOSS");
    }
    for (size_t i = 0; i < p->n; i++) {
        table_add(&t, "%s", p->members[i].name);
        add_reachability(&t, &p->members[i].reach[PING_MONITOR_V4], now);
        if (v6)
            add_reachability(&t, &p->members[i].reach[PING_MONITOR_V6], now);
    }
    table_format(&t, out);
    table_deinit(&t);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *encode_reachability(
    const struct ping_monitor_member *m, enum ping_monitor_family f, nsec_t now)
{
    const struct reachability *r = &m->reach[f];
    char address[IP_ADDR_TEXT_MAX];

    return json_pack("{s:s, s:s, s:o, s:f, s:I, s:I, s:o}", "address",
        ip_addr_format(&m->address[f], address), "state", reachability_state_names[r->state],
        "rttMs", r->rtt > 0 ? json_real((double)r->rtt / NSEC_PER_MSEC) : json_null(), "loss",
        reachability_loss_permille(r, now) / 1000.0, "pings", (json_int_t)r->n_pings, "answers",
        (json_int_t)r->n_answers, "stateAgeSeconds",
        r->state_since > 0 ? json_integer((now - r->state_since) / NSEC_PER_SEC) : json_null());
}

json_t *ping_monitor_encode(const struct ping_monitor *p, nsec_t now)
{
    json_t *members = json_array();

    for (size_t i = 0; members && i < p->n; i++) {
        const struct ping_monitor_member *m = &p->members[i];
        json_t *json = json_pack("{s:s}", "name", m->name);

        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++)
            (void)json_object_set_new(json, ping_monitor_family_names[f],
                p->fd[f] >= 0 ? encode_reachability(m, (enum ping_monitor_family)f, now)
                              : json_null());
        fields_append(&members, json);
    }
    return json_pack("{s:s, s:o}", "interface", p->interface, "members", members);
}

/* ---- metrics -------------------------------------------------------------------------------- */

void ping_monitor_add_metrics(const struct ping_monitor *p, struct metrics *m)
{
    for (size_t i = 0; i < p->n; i++)
        for (unsigned f = 0; f < PING_MONITOR_FAMILY_N; f++) {
            const char *const *labels =
                METRIC_LABELS(p->members[i].name, ping_monitor_family_names[f]);
            const struct reachability *r = &p->members[i].reach[f];

            if (p->fd[f] < 0)
                continue;
            /* There is no line for a value that is not known, or not true any more. */
            if (r->state != REACHABILITY_UNKNOWN)
                metrics_add_labelled(
                    m, METRIC_PROBE_REACHED, labels, r->state == REACHABILITY_REACHED);
            if (r->rtt != 0 && r->state == REACHABILITY_REACHED)
                metrics_add_labelled(
                    m, METRIC_PROBE_RTT_SECONDS, labels, (double)r->rtt / NSEC_PER_SEC);
            metrics_add_labelled(m, METRIC_PROBE_PINGS, labels, (double)r->n_pings);
            metrics_add_labelled(m, METRIC_PROBE_ANSWERS, labels, (double)r->n_answers);
        }
}
