/* status_text.c - see status_text.h. */
#include "agent/status_text.h"

#include <stdio.h>
#include <string.h>

#include "agent/hublink/hub_link.h"
#include "agent/status_cells.h"
#include "agent/status_cluster.h"
#include "agent/status_jobs.h"
#include "agent/status_rates.h"
#include "agent/status_reach.h"
#include "agent/status_routes.h"
#include "base/str.h"
#include "base/table.h"

/* An alarm names at most so many peers. */
#define ALARM_NAMES 10

static void add_peer(struct table *t, const json_t *peer)
{
    char path[STATUS_REACH_PATH_MAX];
    char buf[STATUS_CELL_MAX];

    table_add(t, "%s", status_cells_text(peer, "name", "?"));
    table_add(t, "%s", status_cells_text(peer, "address4", "?"));
    table_add(t, "%s", status_reach_path(peer, path));
    table_add(t, "%s", status_cells_real(peer, "rttMs", 1, "ms", buf));
    table_add(t, "%s", status_cells_real(peer, "loss", 100, "%", buf));
    table_add(t, "%lld", (long long)json_integer_value(json_object_get(peer, "mtu")));
    table_add(t, "%s", status_cells_time(peer, "sinceSeconds", buf));
    table_add(t, "%s", status_cells_age(peer, buf));
    table_add(t, "%s", status_cells_bytes(peer, "rxBytes", buf));
    table_add(t, "%s", status_cells_bytes(peer, "txBytes", buf));
}

static void format_peers(const json_t *peers, struct str *out)
{
    static const char *const head[] = {
        "PEER", "ADDRESS", "PATH", "RTT", "LOSS", "MTU", "SINCE", "HANDSHAKE", "RECEIVED", "SENT"};
    struct table t;
    size_t index;
    json_t *peer;

    table_init(&t, sizeof(head) / sizeof(*head));
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(peers, index, peer)
        add_peer(&t, peer);
    table_format(&t, out);
    table_deinit(&t);
}

/* Has one of the first @before peers the same reason as @peer? */
static bool is_said(const json_t *peers, size_t before, const json_t *peer)
{
    for (size_t i = 0; i < before; i++) {
        const json_t *other = json_array_get(peers, i);

        if (json_equal(json_object_get(other, "why"), json_object_get(peer, "why")) &&
            json_equal(json_object_get(other, "path"), json_object_get(peer, "path")))
            return true;
    }
    return false;
}

/* Prints each reason once, because many peers have the same one. */
static void format_reasons(const json_t *peers, struct str *out)
{
    size_t index;
    json_t *peer;

    json_array_foreach(peers, index, peer) {
        const char *why = status_cells_text(peer, "why", NULL);

        if (why && !is_said(peers, index, peer))
            str_addf(out, "%s: %s\n", status_cells_text(peer, "path", "?"), why);
    }
}

/* "keepalive 21 s: the NAT forgets a silent UDP mapping after about 28 s, seen 3 min ago" */
static void format_keepalive(const json_t *keepalive, struct str *out)
{
    bool is_fixed = strcmp(status_cells_text(keepalive, "from", ""), "network") == 0;
    const char *found = status_cells_text(keepalive, "found", NULL);
    char buf[STATUS_CELL_MAX];

    if (!keepalive)
        return;
    str_addf(out, "keepalive %lld s%s",
        (long long)json_integer_value(json_object_get(keepalive, "seconds")),
        is_fixed ? ", which the network says" : "");
    if (found)
        str_addf(out, ": %s, seen %s ago\n", found,
            status_cells_time(keepalive, "measuredSecondsAgo", buf));
    else
        str_addf(out, "; not measured yet: %s\n",
            status_cells_text(keepalive, "why", "no reason is known"));
}

/* "ALARM: no direct path to b, c and 2 more, though only direct paths are wanted" */
static void format_alarm(const json_t *peers, struct str *out)
{
    size_t n = 0;
    size_t index;
    json_t *peer;

    json_array_foreach(peers, index, peer) {
        if (!json_is_true(json_object_get(peer, "alarm")))
            continue;
        if (n < ALARM_NAMES)
            str_addf(out, "%s%s", n == 0 ? "ALARM: no direct path to " : ", ",
                status_cells_text(peer, "name", "?"));
        n++;
    }
    if (n > ALARM_NAMES)
        str_addf(out, " and %zu more", n - ALARM_NAMES);
    if (n > 0)
        str_add(out, ", though only direct paths are wanted\n");
}

/* A line for each offload that is off, with the reason. */
static void format_offloads(const json_t *offloads, struct str *out)
{
    const json_t *offload;
    size_t index;

    json_array_foreach(offloads, index, offload)
        if (!json_is_true(json_object_get(offload, "on")))
            str_addf(out, "the offload %s is off: %s\n", status_cells_text(offload, "name", "?"),
                status_cells_text(offload, "why", "?"));
}

static void format_names(const json_t *status, struct str *out)
{
    const json_t *names = json_object_get(status, "namesLeftOut");
    const char *failure = status_cells_text(status, "namesFailure", NULL);
    const json_t *item;
    size_t i;

    if (failure)
        str_addf(out,
            "the nodes' names are not written to the hosts file, which is tried again and again: "
            "%s\n",
            failure);

    json_array_foreach(names, i, item)
        str_addf(out, "the name \"%s\" of node %s is left out of the hosts file: %s\n",
            status_cells_text(item, "name", "?"), status_cells_text(item, "node", "?"),
            status_cells_text(item, "why", "?"));
}

/* Why containers do not get the names from this node; nothing where they do. */
static void format_dns(const json_t *dns, struct str *out)
{
    const char *why = status_cells_text(dns, "why", "");

    if (why[0] != '\0')
        str_addf(out, "the nodes' names are not answered by DNS: %s\n", why);
}

/* A hub that has missed a heartbeat is shown as silent, well before it counts as away. */
static const char *format_presence(const json_t *hub, char buf[static 64])
{
    json_int_t silent = json_integer_value(json_object_get(hub, "silentSeconds"));
    const json_t *quiet = json_object_get(hub, "quietSeconds"); /* no older agent says it */
    json_int_t most = quiet ? json_integer_value(quiet) : HUB_LINK_QUIET_MAX / NSEC_PER_SEC;
    bool is_heard = json_is_true(json_object_get(hub, "reachable"));

    if (is_heard && silent < most)
        return "answers";
    if (is_heard)
        (void)snprintf(buf, 64, "silent for %lld s", (long long)silent);
    else
        (void)snprintf(buf, 64, "does not answer");
    return buf;
}

static void format_fault(const json_t *self, struct str *out)
{
    const json_t *retry = json_object_get(self, "retry");
    long long n = (long long)json_integer_value(json_object_get(retry, "failures"));

    if (status_cells_text(self, "fault", "")[0] == '\0')
        return;
    str_addf(out, "the interface is not as it should be, and nobody is reached until it is: %s\n",
        status_cells_text(self, "fault", ""));
    if (n > 0)
        str_addf(out, "it was tried %lld time%s, and is tried again in %.1f s\n", n,
            n == 1 ? "" : "s", json_number_value(json_object_get(retry, "inSeconds")));
}

/* Null, or not there with an older agent: none was removed. */
static void format_foreign(const json_t *foreign, struct str *out)
{
    long long n = (long long)json_integer_value(json_object_get(foreign, "removed"));
    long long age = (long long)json_integer_value(json_object_get(foreign, "ageSeconds"));

    if (n > 0)
        str_addf(out,
            "peers that somebody else had added to the interface and that were removed: %lld, the "
            "last %lld s ago with the public key %s\n",
            n, age, status_cells_text(foreign, "last", "?"));
}

/* A line for each hub that does not serve this node. */
static void format_hubs(const json_t *hubs, struct str *out)
{
    const json_t *hub;
    char age[STATUS_CELL_MAX];
    size_t i;

    json_array_foreach(hubs, i, hub) {
        const char *why = status_cells_text(hub, "why", NULL);

        if (json_is_true(json_object_get(hub, "serves")))
            continue;
        str_addf(out, "hub %s at %s: %s%s, last handshake %s\n",
            status_cells_text(hub, "name", "?"),
            status_cells_text(hub, "endpoint", "an unknown place"), why ? "away: " : "stands by",
            why ? why : "", status_cells_age(hub, age));
    }
}

/* What other hubs, or people in the cluster, have changed is then not known here. */
static void format_store(const json_t *hub, struct str *out)
{
    long long behind = (long long)json_integer_value(json_object_get(hub, "storeBehindSeconds"));

    if (behind > 0)
        str_addf(out,
            "hub: its store has not said for %lld s what has changed; what was changed elsewhere "
            "since then is not known here\n",
            behind);
}

void status_text_format(const json_t *status, struct str *out)
{
    const json_t *self = json_object_get(status, "self");
    const json_t *hub = json_object_get(status, "hub");
    const json_t *peers = json_object_get(status, "peers");
    const char *stream_why = status_cells_text(hub, "why", NULL);
    char presence[64];
    char age[STATUS_CELL_MAX];

    str_addf(out, "%s in the network %s: %s, %s\n", status_cells_text(self, "name", "?"),
        status_cells_text(self, "network", "?"), status_cells_text(self, "address4", "?"),
        status_cells_text(self, "address6", "?"));
    str_addf(out, "interface %s (%s), MTU %lld\n", status_cells_text(self, "interface", "?"),
        status_cells_text(self, "engine", "no engine"),
        (long long)json_integer_value(json_object_get(self, "mtu")));
    format_offloads(json_object_get(self, "offloads"), out);
    status_rates_format(status, out);
    status_jobs_format(json_object_get(status, "jobs"), out);
    format_fault(self, out);
    if (status_cells_text(status, "copied", NULL))
        str_addf(out, "COPIED: %s\n", status_cells_text(status, "copied", NULL));
    if (status_cells_text(status, "clock", NULL))
        str_addf(out, "CLOCK: %s\n", status_cells_text(status, "clock", NULL));
    format_foreign(json_object_get(self, "foreignPeers"), out);
    /* The endpoint of a stream is its near end, on this machine; @stream_why names the far one. */
    str_addf(out, "hub %s %s%s: %s, last handshake %s\n", status_cells_text(hub, "name", "?"),
        stream_why ? "in TLS" : "at ",
        stream_why ? "" : status_cells_text(hub, "endpoint", "an unknown place"),
        format_presence(hub, presence), status_cells_age(hub, age));
    format_hubs(json_object_get(status, "hubs"), out);
    format_store(hub, out);
    if (status_cells_text(hub, "refused", NULL))
        str_addf(out,
            "hub: its events are refused, what was known before them stays, and its administrator "
            "has to look into it: %s\n",
            status_cells_text(hub, "refused", NULL));
    if (stream_why)
        str_addf(out, "hub: %s\n", stream_why);
    if (status_cells_text(hub, "tlsFailure", NULL))
        str_addf(out, "hub: UDP to it fails, and so does TLS: %s\n",
            status_cells_text(hub, "tlsFailure", NULL));
    status_cluster_format(json_object_get(status, "cluster"), out);
    format_keepalive(json_object_get(status, "keepalive"), out);
    format_names(status, out);
    format_dns(json_object_get(json_object_get(status, "self"), "dns"), out);
    status_routes_format(status, out);
    str_add(out, "\n");
    if (json_array_size(peers) == 0) {
        str_add(out, "no other node yet\n");
        return;
    }
    format_peers(peers, out);
    str_add(out, "\n");
    format_alarm(peers, out);
    format_reasons(peers, out);
}
