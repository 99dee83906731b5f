/* machine.c - see machine.h. */
#include "health/machine.h"

#include <inttypes.h>
#include <string.h>

/* Shares are in millionths. */
#define PPM 1000000u

/* From so many and such a share on, a machine loses packets itself. */
#define LOST_MIN 100
#define LOST_PPM 1000
/* Damaged ones say that a cable or a port is bad; there should be none. */
#define DAMAGED_MIN 10
#define DAMAGED_PPM 100
/* Of so many segments such a share is sent again. */
#define SEGMENTS_MIN 1000
#define AGAIN_PPM    (PPM / 100)
/* Cores are full below that share of idle time. */
#define IDLE_PPM (3 * PPM / 100)
/* Held back for such a share of the time. */
#define THROTTLED_PPM (5 * PPM / 100)

#define MIB ((uint64_t)1024 * 1024)
#define GIB (1024 * MIB)

/* ---- what was seen --------------------------------------------------------------------------- */

static const struct machine_port *find_port(
    const struct machine_port *ports, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ports[i].name, name) == 0)
            return &ports[i];
    return NULL;
}

static const struct machine_nic *find_nic(const struct machine_sample *s, const char *name)
{
    for (size_t i = 0; i < s->n_nics; i++)
        if (strcmp(s->nics[i].name, name) == 0)
            return &s->nics[i];
    return NULL;
}

void machine_watch_take(struct machine_watch *w, const struct machine_sample *sample)
{
    w->before = w->now;
    w->now = *sample;
    for (size_t i = 0; i < sample->n_ports; i++) {
        const struct machine_port *port = &sample->ports[i];

        if (port->is_active && w->n_best < MACHINE_PORTS_MAX &&
            !find_port(w->best, w->n_best, port->name))
            w->best[w->n_best++] = *port;
    }
}

/* By how much a count has grown. One that fell was set back: it says nothing. */
static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* True, and by how much @c has grown between the two samples; false: it is not known. */
static bool growth(const struct machine_watch *w, enum machine_counter c, uint64_t *ret)
{
    if (!w->before.has[c] || !w->now.has[c])
        return false;
    *ret = grown(w->before.counters[c], w->now.counters[c]);
    return true;
}

static uint64_t share_ppm(uint64_t part, uint64_t all)
{
    return all == 0 ? 0 : (uint64_t)((double)part * PPM / (double)all);
}

/* Is it enough to be told? */
static bool is_much(uint64_t part, uint64_t all, uint64_t min, uint64_t ppm)
{
    return part >= min && share_ppm(part, all) >= ppm;
}

static double percent(uint64_t part, uint64_t all)
{
    return all == 0 ? 0 : 100.0 * (double)part / (double)all;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct look {
    const struct machine_watch *watch;
    const char *name; /* the node's */
    struct findings *set;
    int64_t at;
    int64_t seconds; /* between the two samples */
};

static void look_at_nics(const struct look *l)
{
    const struct machine_sample *now = &l->watch->now;

    for (size_t i = 0; i < now->n_nics; i++) {
        const struct machine_nic *nic = &now->nics[i];
        const struct machine_nic *old = find_nic(&l->watch->before, nic->name);
        uint64_t dropped = old ? grown(old->dropped, nic->dropped) : 0;
        uint64_t errors = old ? grown(old->errors, nic->errors) : 0;
        uint64_t all = old ? grown(old->packets, nic->packets) + dropped + errors : 0;

        if (is_much(dropped, all, LOST_MIN, LOST_PPM))
            (void)findings_add(l->set, FINDING_NIC_DROPS, l->name, l->at,
                "The network card %s of %s has dropped %" PRIu64 " of %" PRIu64
                " packets in %" PRId64 " s (%.2f %%), for want of room.",
                nic->name, l->name, dropped, all, l->seconds, percent(dropped, all));
        if (is_much(errors, all, DAMAGED_MIN, DAMAGED_PPM))
            (void)findings_add(l->set, FINDING_NIC_ERRORS, l->name, l->at,
                "The network card %s of %s has got %" PRIu64 " damaged packets of %" PRIu64
                " in %" PRId64 " s (%.3f %%).",
                nic->name, l->name, errors, all, l->seconds, percent(errors, all));
    }
}

static void look_at_kernel(const struct look *l)
{
    uint64_t part;
    uint64_t all;

    if (growth(l->watch, MACHINE_BACKLOG_DROPS, &part) && part > 0)
        (void)findings_add(l->set, FINDING_BACKLOG_FULL, l->name, l->at,
            "The kernel of %s has thrown away %" PRIu64 " packets in %" PRId64
            " s, because the backlog of a core was full.",
            l->name, part, l->seconds);
    if (growth(l->watch, MACHINE_UDP_DROPS, &part) && growth(l->watch, MACHINE_UDP_IN, &all) &&
        is_much(part, all + part, LOST_MIN, LOST_PPM))
        (void)findings_add(l->set, FINDING_UDP_BUFFER_FULL, l->name, l->at,
            "%s has thrown away %" PRIu64 " of %" PRIu64 " datagrams in %" PRId64
            " s (%.2f %%), because programs did not read them in time.",
            l->name, part, all + part, l->seconds, percent(part, all + part));
    if (growth(l->watch, MACHINE_TCP_AGAIN, &part) && growth(l->watch, MACHINE_TCP_OUT, &all) &&
        all >= SEGMENTS_MIN && share_ppm(part, all) >= AGAIN_PPM)
        (void)findings_add(l->set, FINDING_TCP_AGAIN, l->name, l->at,
            "TCP on %s has sent %" PRIu64 " of %" PRIu64 " segments again in %" PRId64
            " s (%.1f %%).",
            l->name, part, all, l->seconds, percent(part, all));
}

int machine_cpu_percent(const struct machine_watch *w)
{
    uint64_t all;
    uint64_t idle;

    if (!w || !growth(w, MACHINE_CPU_TICKS, &all) || !growth(w, MACHINE_CPU_IDLE, &idle) ||
        all == 0 || idle > all)
        return -1;
    return (int)((double)(all - idle) * 100 / (double)all + 0.5);
}

static void look_at_cores(const struct look *l)
{
    uint64_t all;
    uint64_t part;

    if (growth(l->watch, MACHINE_CPU_TICKS, &all) && growth(l->watch, MACHINE_CPU_IDLE, &part) &&
        all > 0 && share_ppm(part, all) < IDLE_PPM)
        (void)findings_add(l->set, FINDING_CPU_FULL, l->name, l->at,
            "The cores of %s were idle for %.1f %% of the last %" PRId64 " s.", l->name,
            percent(part, all), l->seconds);
    if (growth(l->watch, MACHINE_THROTTLED_US, &part) &&
        share_ppm(part, (uint64_t)l->seconds * PPM) >= THROTTLED_PPM)
        (void)findings_add(l->set, FINDING_CPU_HELD_BACK, l->name, l->at,
            "Weft's control group on %s was held back for %.1f of the last %" PRId64
            " s: it has a quota of processor time.",
            l->name, (double)part / PPM, l->seconds);
    if (growth(l->watch, MACHINE_HOT_EVENTS, &part) && part > 0)
        (void)findings_add(l->set, FINDING_CPU_HOT, l->name, l->at,
            "Cores of %s were slowed down %" PRIu64 " times in %" PRId64
            " s, because they were hot.",
            l->name, part, l->seconds);
}

static void look_at_disk(const struct look *l)
{
    const struct machine_sample *s = &l->watch->now;
    bool is_full = s->disk_free < MIB || (s->has_files && s->files_free == 0);

    if (s->disk_all == 0)
        return;
    if (is_full)
        (void)findings_add(l->set, FINDING_DISK_FULL, l->name, l->at,
            s->disk_free < MIB ? "The disk of %s that has Weft's state has no room left."
                               : "The disk of %s that has Weft's state takes no more files.",
            l->name);
    else if (s->disk_free < GIB && share_ppm(s->disk_free, s->disk_all) < 5 * PPM / 100)
        (void)findings_add(l->set, FINDING_DISK_LOW, l->name, l->at,
            "The disk of %s that has Weft's state has %" PRIu64 " of %" PRIu64 " MiB left.",
            l->name, s->disk_free / MIB, s->disk_all / MIB);
}

static void look_at_fabric(const struct look *l)
{
    const struct machine_watch *w = l->watch;

    for (size_t i = 0; i < w->n_best; i++) {
        const char *name = w->best[i].name;
        const struct machine_port *now = find_port(w->now.ports, w->now.n_ports, name);
        const struct machine_port *old = find_port(w->before.ports, w->before.n_ports, name);
        uint64_t errors = now && old ? grown(old->errors, now->errors) : 0;
        uint64_t downed = now && old ? grown(old->downed, now->downed) : 0;

        if (!now)
            (void)findings_add(l->set, FINDING_FABRIC_GONE, l->name, l->at,
                "The fabric device %s of %s is gone: it was there when the agent began.", name,
                l->name);
        else if (!now->is_active)
            (void)findings_add(l->set, FINDING_FABRIC_DOWN, l->name, l->at,
                "The port %s of %s is not active any more.", name, l->name);
        else if (errors > 0 || downed > 0)
            (void)findings_add(l->set, FINDING_FABRIC_ERRORS, l->name, l->at,
                "The port %s of %s has counted %" PRIu64 " errors in %" PRId64
                " s, and its link went down %" PRIu64 " times.",
                name, l->name, errors, l->seconds, downed);
    }
}

void machine_find(const struct machine_watch *w, const char *name, struct findings *set, int64_t at)
{
    nsec_t apart = w->now.at - w->before.at;
    struct look l = {w, name, set, at, (int64_t)(apart / NSEC_PER_SEC)};

    if (w->now.at == 0)
        return;
    look_at_disk(&l);
    if (w->before.at == 0 || apart < MACHINE_APART_MIN || apart > MACHINE_APART_MAX)
        return;
    look_at_nics(&l);
    look_at_kernel(&l);
    look_at_cores(&l);
    look_at_fabric(&l);
}
