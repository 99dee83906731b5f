/* probe.c - weft probe: is every member reached? Pings through the tunnel, without the agent. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "os/fd_cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "base/str.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "monitor/ping_monitor.h"
#include "monitor/ping_monitor_text.h"
#include "os/clock.h"
#include "os/end_signals.h"
#include "os/rng_kernel.h"
#include "os/statefile.h"

/* With --once: rounds so far apart, so long; it ends as soon as all have answered so often. */
#define ONCE_PERIOD  (200 * NSEC_PER_MSEC)
#define ONCE_TIME    (5 * NSEC_PER_SEC)
#define ONCE_ANSWERS 3

/* How often the members are read again, and the metrics written. */
#define LOOK_PERIOD (5 * NSEC_PER_SEC)

#define METRICS_MODE 0644

static struct {
    const char *state_dir;
    const char *metrics;
    const char *user;
    nsec_t period;
    bool once;
    bool json;
} arg;

static const struct option options[] = {
    {"--once", NULL, option_flag, &arg.once, NULL,
        "ping for some seconds, print what was found, and end"},
    {"--json", NULL, option_flag, &arg.json, NULL,
        "print JSON; without --once an object for each change, on a line of its own"},
    {"--period", "DURATION", option_duration, &arg.period, "1s", "how often each member is pinged",
        .min = NSEC_PER_SEC, .max = 3600 * NSEC_PER_SEC},
    {"--metrics", "FILE", option_text, &arg.metrics, NULL,
        "keep counters in this file, as Prometheus' node exporter collects them"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "as given to weft join"},
    PRIVILEGES_OPTION(&arg.user),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "probe",
    .summary = "Watch every edge of this node from outside of the agent, by pings.",
    .options = options,
    .notes =
        "Exit status of --once: 0 every member answers over IPv4, 3 one does not, 1 that could\n"
        "not be found out.",
};

/** A process that watches. */
struct probe {
    struct lookout lookout;
    char network[NAME_MAX_LEN + 1];
    char interface[STATE_INTERFACE_MAX];
    nsec_t looked;  /* when the members were read last */
    int signal_fd;  /* owns */
    bool is_silent; /* changes are not told */
};

/* ---- members -------------------------------------------------------------------------------- */

static struct lookout_member *list_members(const struct snapshot *s, size_t *ret_n)
{
    struct lookout_member *members = calloc(s->nodes.n + 1, sizeof(*members));
    size_t n = 0;

    for (size_t i = 0; members && i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (strcmp(node->meta.name, s->self) == 0)
            continue;
        (void)snprintf(
            members[n].name, sizeof(members[n].name), "%.*s", NAME_MAX_LEN, node->meta.name);
        members[n].address[LOOKOUT_V4] = node->address4;
        members[n].address[LOOKOUT_V6] = node->address6;
        n++;
    }
    *ret_n = n;
    return members;
}

/* Who is a member is in the last snapshot that the agent kept, before that in the join's. The key
 * is not looked at. */
static int look(struct probe *p, struct err *e)
{
    _cleanup_(snapshot_deinit) struct snapshot snapshot = SNAPSHOT_NULL;
    _cleanup_(state_public_deinit) struct state_public st = STATE_PUBLIC_NULL;
    struct lookout_member *members;
    size_t n;
    int r = state_check_dir(arg.state_dir, e);

    if (r == 0)
        r = state_read_public(&st, arg.state_dir, e);
    if (r == STATE_E_ABSENT)
        return err_set(
            e, r, "this machine has not joined a network (%s has no public.json)", arg.state_dir);
    if (r == 0)
        r = state_read_snapshot(&snapshot, arg.state_dir, e);
    if (r < 0)
        return r;
    members = list_members(r == STATE_E_ABSENT ? &st.snapshot : &snapshot, &n);
    if (!members)
        return err_set(e, -ENOMEM, "no memory for the members");
    memcpy(p->interface, st.interface, sizeof(p->interface));
    memcpy(p->network, st.snapshot.network.meta.name, sizeof(p->network));
    lookout_set(&p->lookout, members, n);
    return 0;
}

/* ---- what is told --------------------------------------------------------------------------- */

static void tell(
    const struct lookout_member *m, enum lookout_family family, const struct edge *edge, nsec_t now)
{
    json_t *json;

    if (!arg.json && edge->state == EDGE_REACHED)
        log_info("%s is reached over %s, in %.1f ms", m->name, lookout_family_name(family),
            (double)edge->rtt / NSEC_PER_MSEC);
    if (!arg.json && edge->state == EDGE_SILENT)
        log_warning("%s does not answer over %s: %u pings in %llu s", m->name,
            lookout_family_name(family), edge->silent_pings,
            (unsigned long long)((now - edge->silent_since) / NSEC_PER_SEC));
    if (!arg.json)
        return;
    json = json_pack("{s:I, s:s, s:s, s:s, s:o}", "time", (json_int_t)(clock_wall() / NSEC_PER_SEC),
        "node", m->name, "family", lookout_family_name(family), "state",
        edge_state_name(edge->state), "rttMs",
        edge->state == EDGE_REACHED ? json_real((double)edge->rtt / NSEC_PER_MSEC) : json_null());
    (void)json_dumpf(json, stdout, JSON_COMPACT);
    (void)putchar('\n');
    (void)fflush(stdout);
    json_decref(json);
}

static void on_change(
    void *ctx, const struct lookout_member *m, enum lookout_family family, nsec_t now)
{
    const struct probe *p = ctx;

    if (!p->is_silent)
        tell(m, family, &m->edge[family], now);
}

/* 0 or negative errno with words. */
static int write_metrics(const struct probe *p, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int r;

    if (!arg.metrics)
        return 0;
    lookout_format_metrics(&p->lookout, &out);
    r = statefile_replace(arg.metrics, str_text(&out), out.len, METRICS_MODE, e);
    return r < 0 ? err_prefix(e, "the metrics are not written") : 0;
}

/* ---- watching ------------------------------------------------------------------------------- */

/* Until somebody is due or @deadline; true when a signal wants the end. */
static bool wait(struct probe *p, nsec_t deadline)
{
    struct lookout *l = &p->lookout;
    struct pollfd fds[] = {{.fd = l->fd[LOOKOUT_V4], .events = POLLIN},
        {.fd = l->fd[LOOKOUT_V6], .events = POLLIN}, {.fd = p->signal_fd, .events = POLLIN}};
    nsec_t left = nsec_min(lookout_due(l), deadline) - clock_now();
    int n = poll(fds, 3, left > 0 ? (int)(left / NSEC_PER_MSEC) + 1 : 0);

    for (unsigned f = 0; n > 0 && f < LOOKOUT_FAMILY_N; f++)
        if (fds[f].revents)
            lookout_take(l, (enum lookout_family)f, clock_now());
    return n > 0 && fds[2].revents != 0;
}

static bool have_all_answered(const struct lookout *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (unsigned f = 0; f < LOOKOUT_FAMILY_N; f++)
            if (l->fd[f] >= 0 && l->members[i].edge[f].n_answers < ONCE_ANSWERS)
                return false;
    return true;
}

static int print_report(const struct probe *p)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    nsec_t now = clock_now();
    json_t *json;
    int r;

    if (arg.json) {
        json = lookout_encode(&p->lookout, now);
        (void)json_object_set_new(json, "network", json_string(p->network));
        r = admin_print_json(json);
        json_decref(json);
        return r;
    }
    lookout_format(&p->lookout, now, &out);
    if (fputs(str_text(&out), stdout) < 0 || fflush(stdout) < 0)
        return cmd_fail(usage.command, "standard output does not take it");
    return CMD_OK;
}

static int look_once(struct probe *p)
{
    const struct lookout *l = &p->lookout;
    nsec_t end = clock_now() + ONCE_TIME;
    struct err e = ERR_NULL;
    int status;

    p->is_silent = true;
    while (clock_now() < end && !have_all_answered(l)) {
        (void)lookout_run(&p->lookout, clock_now());
        if (wait(p, end))
            return cmd_fail(usage.command, "ended by a signal");
    }
    if (write_metrics(p, &e) < 0)
        return cmd_fail(usage.command, "%s", err_text(&e));
    status = print_report(p);
    for (size_t i = 0; status == CMD_OK && i < l->n; i++)
        if (l->members[i].edge[LOOKOUT_V4].state != EDGE_REACHED)
            status = CMD_VERDICT_NO;
    return status;
}

static int keep_looking(struct probe *p)
{
    struct err e = ERR_NULL;
    nsec_t now = clock_now();

    log_info(
        "watching %zu members of network %s through %s", p->lookout.n, p->network, p->interface);
    do {
        now = clock_now();
        (void)lookout_run(&p->lookout, now);
        if (now - p->looked < LOOK_PERIOD)
            continue;
        p->looked = now;
        /* A disk that is full now may have room the next time. */
        if (write_metrics(p, &e) < 0)
            log_warning("%s", err_text(&e));
        if (look(p, &e) != 0)
            return cmd_fail(usage.command, "%s", err_text(&e));
    } while (!wait(p, p->looked + LOOK_PERIOD));
    return CMD_OK;
}

/* Its sockets are open. What is left to be done with files: the members, and the metrics. */
static int drop_privileges(struct err *e)
{
    struct privileges p = {.kind = SANDBOX_PROBE, .user = arg.user};
    char node[PATH_MAX];
    char snapshot[PATH_MAX];
    char folder[PATH_MAX];

    (void)snprintf(node, sizeof(node), "%.*s/node.json", STATE_DIR_MAX, arg.state_dir);
    (void)snprintf(snapshot, sizeof(snapshot), "%.*s/snapshot.json", STATE_DIR_MAX, arg.state_dir);
    privileges_add(&p, arg.state_dir, PRIVILEGES_READ);
    privileges_add(&p, node, PRIVILEGES_READ);
    if (access(snapshot, F_OK) == 0)
        privileges_add(&p, snapshot, PRIVILEGES_READ);
    privileges_add_folder_of(&p, arg.metrics, folder, PRIVILEGES_WRITE);
    return privileges_drop(&p, e);
}

int cmd_probe(int argc, char **argv)
{
    struct probe p = {.lookout = LOOKOUT_NULL};
    struct rng rng = rng_kernel();
    struct err e = ERR_NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    log_init("probe", LOG_LEVEL_INFO);
    p.signal_fd = end_signals_open();
    if (p.signal_fd < 0)
        return cmd_fail(usage.command, "cannot wait for signals: %s", strerror(-p.signal_fd));
    p.looked = clock_now();
    r = look(&p, &e);
    if (r == 0)
        r = lookout_open(&p.lookout, p.interface, arg.once ? ONCE_PERIOD : arg.period,
            rng_u64(&rng), on_change, &p, &e);
    if (r == 0)
        r = drop_privileges(&e);
    if (r == 0)
        r = write_metrics(&p, &e);
    if (r != 0)
        status = cmd_fail(usage.command, "%s", err_text(&e));
    else
        status = arg.once ? look_once(&p) : keep_looking(&p);
    lookout_close(&p.lookout);
    closep(&p.signal_fd);
    return status;
}
