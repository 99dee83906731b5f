/* tune.c - see tune.h: the rules, setting by setting. */
#include "tune/tune.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "measure/result.h"
#include "packet/merging.h"
#include "plan/matrix.h"

const char *const tune_names[] = {
#define X(id, name) name,
    TUNE_SETTINGS(X)
#undef X
};

const char *const tune_knob_names[] = {
#define X(id, name) name,
    TUNE_KNOBS(X)
#undef X
};

_Static_assert(sizeof(tune_names) / sizeof(*tune_names) == TUNE_SETTING_N, "a name each");
_Static_assert(sizeof(tune_knob_names) / sizeof(*tune_knob_names) == TUNE_KNOB_N, "a name each");

#define MIB (1ull << 20)
/* Of a socket's buffers; the kernel takes them for numbers of 31 bits. */
#define BUFFER_MAX (1024 * MIB)
/* Packets that wait for a processor, for so long and of so many bytes each. */
#define BACKLOG_S      0.01
#define BACKLOG_PACKET 1500
#define BACKLOG_MIN    1000
#define BACKLOG_MAX    65000
/* Packets that a ring holds while nobody looks at it, for so long. */
#define RING_S 0.002
/* A loss matters to TCP from so much on, over a longer round trip than this. */
#define LOSS_MIN     0.001
#define LOSS_RTT_MIN 0.005

/* ---- what was measured ---------------------------------------------------------------------- */

static void take_rate(struct tune_facts *f, const struct matrix_link *l, const char *peer)
{
    double bps = fmax(l->one_bps, l->many_bps);

    if (bps * l->rtt <= f->rate_bps * f->rtt_s)
        return;
    f->rate_bps = bps;
    f->rtt_s = l->rtt;
    (void)snprintf(f->source, sizeof(f->source), "as measured with %s", peer);
}

static void take_rates(struct tune_facts *f, const json_t *json, const char *own)
{
    struct matrix m = MATRIX_NULL;

    if (matrix_decode(&m, json, NULL) != 0)
        return;
    for (size_t a = 0; a < m.n; a++) {
        if (strcmp(m.nodes[a].name, own) != 0)
            continue;
        for (size_t b = 0; b < m.n; b++) {
            if (a == b)
                continue;
            take_rate(f, matrix_link(&m, a, b), m.nodes[b].name);
            take_rate(f, matrix_link(&m, b, a), m.nodes[b].name);
        }
    }
    matrix_deinit(&m);
}

/* Of what this machine sends to the other one of the pair; BBR and fq are the sender's. */
static void take_loss(struct tune_facts *f, const json_t *pair, const char *own)
{
    const json_t *nodes = json_object_get(pair, "nodes");
    const char *a = json_string_value(json_array_get(nodes, 0));
    const char *b = json_string_value(json_array_get(nodes, 1));
    bool is_second = b && strcmp(b, own) == 0;
    const char *peer = is_second ? a : b;
    const json_t *loss = json_object_get(pair, is_second ? "lossBToA" : "lossAToB");
    const char *by = json_string_value(json_object_get(loss, "by"));
    const json_t *way = json_array_get(json_object_get(pair, "ways"), is_second);
    double share = json_number_value(json_object_get(loss, "ppm")) / 1e6;
    double rtt = json_number_value(json_object_get(way, "rttMedianUs")) / 1e6;

    if (!a || !b || !(is_second || strcmp(a, own) == 0) || !by || strcmp(by, "datagrams") != 0 ||
        parse_name(peer, "name", NULL) != 0)
        return;
    if (share <= f->loss || share > 1 || share < LOSS_MIN || rtt <= LOSS_RTT_MIN || rtt > 600)
        return;
    f->loss = share;
    f->loss_rtt = rtt;
    (void)snprintf(f->loss_peer, sizeof(f->loss_peer), "%s", peer);
}

void tune_take_measured(struct tune_facts *f, const json_t *json, const char *own)
{
    const json_t *pair;
    size_t i;

    take_rates(f, json, own);
    json_array_foreach(json_object_get(json, "pairs"), i, pair)
        take_loss(f, pair, own);
}

void tune_take_merging(struct tune_facts *f, const json_t *self)
{
    const json_t *merging = json_object_get(self, "merging");
    const char *device = json_string_value(json_object_get(merging, "device"));
    json_int_t percent = json_integer_value(json_object_get(merging, "percent"));
    json_int_t age_s = json_integer_value(json_object_get(merging, "ageSeconds"));

    if (!device || strlen(device) >= sizeof(f->merging_device) || strpbrk(device, "/ ") ||
        percent < 0 || percent > 100 || age_s < 0 || age_s > UINT32_MAX)
        return;
    (void)snprintf(f->merging_device, sizeof(f->merging_device), "%s", device);
    f->merging_percent = (unsigned)percent;
    f->merging_age_s = (unsigned)age_s;
}

/* ---- items ---------------------------------------------------------------------------------- */

/* The last number of a value, as of "4096 131072 6291456". */
static uint64_t last_number(const char *value)
{
    const char *blank = strrchr(value, ' ');

    return strtoull(blank ? blank + 1 : value, NULL, 10);
}

static __attribute__((format(printf, 2, 3))) void say(struct tune_item *i, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(i->why, sizeof(i->why), fmt, args);
    va_end(args);
}

static __attribute__((format(printf, 2, 3))) void want(struct tune_item *i, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(i->wanted, sizeof(i->wanted), fmt, args);
    va_end(args);
    i->changes = true;
}

static bool is_known(const struct tune_facts *f)
{
    return f->rate_bps > 0 && f->rtt_s > 0;
}

/* Bytes that are under way at once: what the bandwidth-delay product is. */
static double under_way(const struct tune_facts *f)
{
    return f->rate_bps / 8 * f->rtt_s;
}

/* The kernel keeps as much of a buffer for itself as it has for data, with the default
 * tcp_adv_win_scale; so a buffer is twice what is under way, in whole MiB. */
static uint64_t buffer_for(const struct tune_facts *f)
{
    double mib = ceil(2 * under_way(f) / MIB);

    return mib * MIB < BUFFER_MAX ? (uint64_t)mib * MIB : BUFFER_MAX;
}

#define UNKNOWN "no rate and RTT are known: weft preflight measures them, or --rate and --rtt"

static void plan_buffer(struct tune_item *i, const struct tune_facts *f, const char *now)
{
    uint64_t bytes = buffer_for(f);
    const char *blank = strrchr(now, ' ');

    if (!is_known(f)) {
        say(i, UNKNOWN);
        return;
    }
    if (last_number(now) >= bytes) {
        say(i, "enough: %.1f MB are under way at once", under_way(f) / 1e6);
        return;
    }
    want(i, "%.*s%llu", blank ? (int)(blank + 1 - now) : 0, now, (unsigned long long)bytes);
    say(i, "%.1f MB are under way at once, and the kernel's own part is as much",
        under_way(f) / 1e6);
}

static void plan_backlog(struct tune_item *i, const struct tune_facts *f, const char *now)
{
    double packets = ceil(f->rate_bps / 8 / BACKLOG_PACKET * BACKLOG_S / 1000) * 1000;
    uint64_t n = (uint64_t)fmin(fmax(packets, BACKLOG_MIN), BACKLOG_MAX);

    if (f->rate_bps <= 0) {
        say(i, UNKNOWN);
        return;
    }
    if (last_number(now) < n)
        want(i, "%llu", (unsigned long long)n);
    say(i, i->changes ? "so many packets come while a processor is busy for 10 ms"
                      : "enough for 10 ms in which a processor is busy");
}

static bool has_loss(const struct tune_facts *f)
{
    return f->loss >= LOSS_MIN && f->loss_rtt > LOSS_RTT_MIN;
}

/* Is the congestion control BBR, or is it to be? */
static bool will_be_bbr(const struct tune_facts *f)
{
    return result_is_bbr(f->now[TUNE_CONGESTION]) || (has_loss(f) && f->has_bbr);
}

static void plan_restart(struct tune_item *i, const struct tune_facts *f, const char *now)
{
    if (strcmp(now, "0") == 0) {
        say(i, "a pause costs a connection nothing");
    } else if (will_be_bbr(f)) {
        say(i, "BBR keeps its rate over a pause");
    } else {
        want(i, "0");
        say(i, "after each pause between two synchronisations TCP begins with a small window");
    }
}

static void plan_mtu_probing(struct tune_item *i, const char *now)
{
    if (strcmp(now, "0") != 0) {
        say(i, "TCP finds out by itself which packets pass");
        return;
    }
    want(i, "1");
    say(i, "where large packets vanish, TCP tries smaller ones in place of hanging");
}

static void plan_qdisc(struct tune_item *i, const struct tune_facts *f, const char *now)
{
    if (!will_be_bbr(f)) {
        say(i, "fq is for BBR");
    } else if (strcmp(now, "fq") == 0) {
        say(i, "it keeps the pace of BBR");
    } else if (!f->has_fq) {
        say(i, "fq would keep the pace of BBR, and this kernel has none (sch_fq)");
    } else {
        want(i, "fq");
        say(i, "it keeps the pace of BBR, on interfaces that are made from now on");
    }
}

static void plan_congestion(struct tune_item *i, const struct tune_facts *f, const char *now)
{
    if (result_is_bbr(now)) {
        say(i, "BBR goes on sending where packets are lost");
    } else if (!has_loss(f)) {
        say(i, "no line of more than 5 ms is known to lose packets, which is where BBR helps");
    } else if (!f->has_bbr) {
        say(i, "to %s %.2f %% are lost; BBR would help, and this kernel has none (tcp_bbr)",
            f->loss_peer, f->loss * 100);
    } else {
        want(i, "bbr");
        say(i, "to %s %.2f %% are lost with an RTT of %.1f ms, which slows down BBR less",
            f->loss_peer, f->loss * 100, f->loss_rtt * 1e3);
    }
}

static void plan_item(struct tune_item *i, const struct tune_facts *f, enum tune_setting setting)
{
    const char *now = f->now[setting];

    switch (setting) {
    case TUNE_RMEM_MAX:
    case TUNE_WMEM_MAX:
    case TUNE_TCP_RMEM:
    case TUNE_TCP_WMEM:
        plan_buffer(i, f, now);
        break;
    case TUNE_BACKLOG:
        plan_backlog(i, f, now);
        break;
    case TUNE_RESTART:
        plan_restart(i, f, now);
        break;
    case TUNE_MTU_PROBING:
        plan_mtu_probing(i, now);
        break;
    case TUNE_QDISC:
        plan_qdisc(i, f, now);
        break;
    case TUNE_CONGESTION:
        plan_congestion(i, f, now);
        break;
    case TUNE_SETTING_N:
        break;
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

/* A power of two, which some devices want, or the most that the device has. */
static void plan_ring(
    struct tune_item *i, const struct tune_facts *f, const char *now, uint32_t max)
{
    double packets = f->rate_bps / 8 / BACKLOG_PACKET * RING_S;
    uint64_t n = 1;

    if (f->rate_bps <= 0) {
        say(i, UNKNOWN);
        return;
    }
    while (n < max && (double)n < packets)
        n *= 2;
    n = n < max ? n : max;
    if (last_number(now) < n)
        want(i, "%llu", (unsigned long long)n);
    say(i, i->changes ? "so many packets come in 2 ms; the line stops for a moment when it is set"
                      : "enough for the packets of 2 ms, or all that there is");
}

/* What was seen before it was changed says nothing of the change: so it is said when. */
static void plan_gro_forwarding(
    struct tune_item *i, const struct tune_facts *f, const struct tune_device *d)
{
    bool is_seen = strcmp(d->name, f->merging_device) == 0;

    if (!f->is_userspace) {
        say(i, "it is for the userspace engine");
        return;
    }
    if (!is_seen) {
        say(i, "too few datagrams came at once to see whether they arrive merged: weft bench");
        return;
    }
    say(i, "of datagrams right behind one of their flow %u %% came merged, %u s ago",
        f->merging_percent, f->merging_age_s);
    if (f->merging_percent >= MERGING_PERCENT_LEAST ||
        strcmp(d->now[TUNE_GRO_FORWARDING], "on") == 0)
        return;
    if (d->has_gro)
        want(i, "on");
    else
        say(i, "none come merged: gro is off (ethtool -K %s gro on), or of another device",
            d->name);
}

static void plan_device(struct tune_plan *p, const struct tune_facts *f, size_t device)
{
    const struct tune_device *d = &f->devices[device];

    for (unsigned k = 0; k < TUNE_KNOB_N; k++) {
        struct tune_item *i = &p->devices[device][k];

        (void)snprintf(i->wanted, sizeof(i->wanted), "%s", d->now[k]);
        if (d->now[k][0] == '\0')
            continue;
        if (k == TUNE_GRO_FORWARDING)
            plan_gro_forwarding(i, f, d);
        else
            plan_ring(i, f, d->now[k], d->max[k]);
        p->n_changes += i->changes;
        p->n_device_changes += i->changes;
    }
}

void tune_plan_make(struct tune_plan *ret, const struct tune_facts *f)
{
    *ret = (struct tune_plan){.n_changes = 0};
    for (unsigned s = 0; s < TUNE_SETTING_N; s++) {
        struct tune_item *i = &ret->items[s];

        (void)snprintf(i->wanted, sizeof(i->wanted), "%s", f->now[s]);
        if (f->now[s][0] == '\0') {
            say(i, "the whole machine's, and not in this network namespace");
            continue;
        }
        plan_item(i, f, (enum tune_setting)s);
        if (i->changes && f->is_fixed[s]) {
            say(i, "%s would be better; it is the whole machine's, and cannot be set in here",
                i->wanted);
            (void)snprintf(i->wanted, sizeof(i->wanted), "%s", f->now[s]);
            i->changes = false;
        }
        ret->n_changes += i->changes;
    }
    for (size_t d = 0; d < f->n_devices; d++)
        plan_device(ret, f, d);
}
