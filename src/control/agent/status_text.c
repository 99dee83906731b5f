/* status_text.c - see status_text.h. */
#include "agent/status_text.h"

#include <stdio.h>
#include <string.h>

#include "agent/hublink/hub_link.h"
#include "base/text.h"
#include "base/traffic.h"
#include "cost/ledger.h"
#include "health/finding.h"
#include "path/path.h"

/* The line with the rates names at most so many peers. */
#define NAMED_MAX 10
/* Most findings that are shown beside the peers. */
#define FINDINGS_SHOWN 20

/* ---- fields --------------------------------------------------------------------------------- */

/* A field may be missing or of another type, where the agent is of another version. */

#define CELL_MAX 32 /* with the NUL */

static const char *text_of(const json_t *obj, const char *field, const char *instead)
{
    const char *text = json_string_value(json_object_get(obj, field));

    return text && text[0] != '\0' ? text : instead;
}

static long long number_of(const json_t *obj, const char *field)
{
    return (long long)json_integer_value(json_object_get(obj, field));
}

static bool is_set(const json_t *obj, const char *field)
{
    return json_is_true(json_object_get(obj, field));
}

/* A line with that text, as @fmt has it, if there is one. */
__attribute__((format(printf, 2, 0))) static void add_line(
    struct str *out, const char *fmt, const json_t *obj, const char *field)
{
    const char *text = text_of(obj, field, NULL);

    if (text)
        str_addf(out, fmt, text);
}

/* How long ago: "12 s ago", "never". */
static const char *format_age(const json_t *obj, const char *field, char buf[static CELL_MAX])
{
    if (!json_is_integer(json_object_get(obj, field)))
        return "never";
    (void)snprintf(buf, CELL_MAX, "%lld s ago", number_of(obj, field));
    return buf;
}

/* "1.5 KiB" */
static const char *format_bytes(const json_t *obj, const char *field, char buf[static CELL_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)number_of(obj, field);
    unsigned unit = 0;

    for (; v >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        v /= 1024;
    (void)snprintf(buf, CELL_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return buf;
}

/* A field in seconds: "3 min". */
static const char *format_time(const json_t *obj, const char *field, char buf[static CELL_MAX])
{
    long long s = number_of(obj, field);

    if (s < 120)
        (void)snprintf(buf, CELL_MAX, "%lld s", s);
    else if (s < 120 * 60)
        (void)snprintf(buf, CELL_MAX, "%lld min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(buf, CELL_MAX, "%lld h", s / 3600);
    else
        (void)snprintf(buf, CELL_MAX, "%lld d", s / 86400);
    return buf;
}

/* A number, times @factor: "0.4 ms"; "-": it is not known. */
static const char *format_real(const json_t *obj, const char *field, double factor,
    const char *unit, char buf[static CELL_MAX])
{
    const json_t *v = json_object_get(obj, field);

    if (!json_is_number(v))
        return "-";
    (void)snprintf(buf, CELL_MAX, "%.1f %s", json_number_value(v) * factor, unit);
    return buf;
}

#define REACH_TEXT_MAX 128

/* "relay via r1" */
static const char *format_path(const json_t *peer, char buf[static REACH_TEXT_MAX])
{
    const char *relay = text_of(peer, "relay", NULL);

    (void)snprintf(buf, REACH_TEXT_MAX, "%.40s%s%.64s", text_of(peer, "path", "?"),
        relay ? " via " : "", relay ? relay : "");
    return buf;
}

/* The cells of one row. */
typedef void (*row_fn)(struct table *t, const json_t *item);

static void format_table(struct str *out, const char *const head[], unsigned n_columns,
    const json_t *items, row_fn add_row)
{
    const json_t *item;
    struct table t = {.n_columns = n_columns};
    size_t index;

    for (unsigned i = 0; i < n_columns; i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(items, index, item)
        add_row(&t, item);
    table_format(&t, out);
    table_deinit(&t);
}

/* ---- this node ------------------------------------------------------------------------------ */

/* "rates that are kept: all 100Mbit", ", to b 20Mbit" */
static void add_rate(struct str *out, unsigned *n, const char *what, const json_t *rate)
{
    char text[TRAFFIC_RATE_TEXT_MAX];

    if (json_is_integer(rate))
        str_addf(out, "%s%s %s", (*n)++ == 0 ? "rates that are kept: " : ", ", what,
            traffic_rate_format((uint64_t)json_integer_value(rate), text));
}

/* "the uplink is found to carry 20Mbit, ..." */
static void format_uplink(const json_t *status, struct str *out)
{
    const json_t *uplink = json_object_get(json_object_get(status, "self"), "uplink");
    const json_t *found = json_object_get(uplink, "bitsPerSecond");
    const char *why = text_of(uplink, "why", "");
    char rate[TRAFFIC_RATE_TEXT_MAX];

    /* What was not found, or does nothing, is of no use here. */
    if (strcmp(text_of(uplink, "state", ""), "found") != 0 || !json_is_integer(found))
        return;
    (void)traffic_rate_format((uint64_t)json_integer_value(found), rate);
    str_addf(out, "the uplink is found to carry %s%s%s\n", rate,
        why[0] ? ", and is not kept to it: " : "", why);
}

static void format_rates(const json_t *status, struct str *out)
{
    json_t *rates = json_object_get(json_object_get(status, "self"), "rates");
    const char *class;
    unsigned n_peers = 0;
    unsigned n = 0;
    char what[80];
    json_t *peer;
    json_t *rate;
    size_t i;

    add_rate(out, &n, "all", json_object_get(rates, "bitsPerSecond"));
    json_object_foreach(json_object_get(rates, "classes"), class, rate) {
        (void)snprintf(what, sizeof(what), "%.20s", class);
        add_rate(out, &n, what, rate);
    }
    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        rate = json_object_get(peer, "rateBitsPerSecond");
        if (!json_is_integer(rate) || n_peers++ >= NAMED_MAX)
            continue;
        (void)snprintf(what, sizeof(what), "to %.63s", text_of(peer, "name", "?"));
        add_rate(out, &n, what, rate);
    }
    if (n_peers > NAMED_MAX)
        str_addf(out, ", and to %u others", n_peers - NAMED_MAX);
    if (n > 0)
        str_add(out, "\n");
    if (is_set(rates, "showsDscp"))
        str_add(out, "what is sent shows its DSCP outside the tunnel\n");
}

/* Who is in the jobs that run here, and what NCCL took. */
static void format_jobs(const json_t *jobs, struct str *out)
{
    const json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job) {
        const json_t *nccl = json_object_get(job, "nccl");
        const json_t *budget = json_object_get(job, "budget");
        const char *verdict = json_string_value(json_object_get(nccl, "verdict"));
        const char *text = json_string_value(json_object_get(nccl, "text"));
        size_t n = json_array_size(json_object_get(job, "nodes"));

        str_addf(out, "job %s", text_of(job, "job", "?"));
        if (n > 0)
            str_addf(out, ", of %zu node%s", n, n == 1 ? "" : "s");
        if (verdict && text)
            str_addf(out, "; %s%s", strcmp(verdict, "wanted") == 0 ? "" : "look at this: ", text);
        if (json_is_object(budget)) {
            str_add(out, "; budget: ");
            spent_format(out, budget);
        }
        str_add(out, "\n");
    }
}

/* "keepalive 21 s: the NAT forgets a silent UDP mapping after about 28 s, seen 3 min ago" */
static void format_keepalive(const json_t *keepalive, struct str *out)
{
    bool is_fixed = strcmp(text_of(keepalive, "from", ""), "network") == 0;
    const char *found = text_of(keepalive, "found", NULL);
    char buf[CELL_MAX];

    if (!keepalive)
        return;
    str_addf(out, "keepalive %lld s%s", number_of(keepalive, "seconds"),
        is_fixed ? ", which the network says" : "");
    if (found)
        str_addf(
            out, ": %s, seen %s ago\n", found, format_time(keepalive, "measuredSecondsAgo", buf));
    else
        str_addf(out, "; not measured yet: %s\n", text_of(keepalive, "why", "no reason is known"));
}

/* ---- hubs, and the cluster ------------------------------------------------------------------ */

/* A hub that has missed a heartbeat is shown as silent, well before it counts as away. */
static const char *format_presence(const json_t *hub, char buf[static 64])
{
    long long silent = number_of(hub, "silentSeconds");
    const json_t *quiet = json_object_get(hub, "quietSeconds"); /* no older agent says it */
    json_int_t most = quiet ? json_integer_value(quiet) : HUB_LINK_QUIET_MAX / NSEC_PER_SEC;

    if (!is_set(hub, "reachable"))
        return "does not answer";
    if (silent < most)
        return "answers";
    (void)snprintf(buf, 64, "silent for %lld s", silent);
    return buf;
}

/* The hub that serves this node, and a line for each other one. */
static void format_hubs(const json_t *status, struct str *out)
{
    const json_t *hub = json_object_get(status, "hub");
    const char *stream_why = text_of(hub, "why", NULL);
    const json_t *other;
    char presence[64];
    char age[CELL_MAX];
    size_t i;

    /* The endpoint of a stream is its near end, on this machine; @stream_why names the far one. */
    str_addf(out, "hub %s %s%s: %s, last handshake %s\n", text_of(hub, "name", "?"),
        stream_why ? "in TLS" : "at ",
        stream_why ? "" : text_of(hub, "endpoint", "an unknown place"),
        format_presence(hub, presence), format_age(hub, "handshakeAgeSeconds", age));
    json_array_foreach(json_object_get(status, "hubs"), i, other) {
        const char *why = text_of(other, "why", NULL);

        if (!is_set(other, "serves"))
            str_addf(out, "hub %s at %s: %s, last handshake %s\n", text_of(other, "name", "?"),
                text_of(other, "endpoint", "an unknown place"), why ? "away" : "stands by",
                format_age(other, "handshakeAgeSeconds", age));
    }
}

static void format_cluster(const json_t *cluster, struct str *out)
{
    const char *why = text_of(cluster, "why", NULL);
    long long age = number_of(cluster, "sinceSeconds");

    if (!json_is_object(cluster))
        return;
    if (is_set(cluster, "reachable"))
        str_add(out, "cluster: its API says who is in the network\n");
    else if (!why)
        str_addf(out, "cluster: its API has been asked for %lld s and has not answered yet\n", age);
}

/* ---- subnets -------------------------------------------------------------------------------- */

void status_text_format_routes(const json_t *status, struct str *out)
{
    const json_t *routes = json_object_get(status, "routes");
    const char *node = NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(status, "ownRoutes"), i, item) {
        if (!text_of(item, "why", NULL))
            str_addf(out, "this node is the way to %s\n", text_of(item, "route", ""));
    }
    /* One line for each node, with the subnets behind it, which follow each other in @routes. */
    json_array_foreach(routes, i, item) {
        const char *behind = text_of(item, "node", "");

        if (!is_set(item, "used"))
            continue;
        if (node && strcmp(node, behind) == 0)
            str_addf(out, ", %s", text_of(item, "route", ""));
        else
            str_addf(out, "%sthrough %s: %s", node ? "\n" : "", behind, text_of(item, "route", ""));
        node = behind;
    }
    if (node)
        str_add(out, "\n");
    json_array_foreach(routes, i, item)
        if (!is_set(item, "used"))
            str_addf(out, "not through %s: %s, %s\n", text_of(item, "node", ""),
                text_of(item, "route", ""), text_of(item, "why", ""));
}

/* ---- peers ---------------------------------------------------------------------------------- */

/* By the counters, of what it sends, where they tell; else of the agent's probes, both ways. */
static const char *format_loss(const json_t *peer, char buf[static CELL_MAX])
{
    const json_t *share = json_object_get(json_object_get(peer, "lossIn"), "share");
    double percent = json_number_value(share) * 100;

    if (!json_is_number(share))
        return format_real(peer, "loss", 100, "%", buf);
    (void)snprintf(buf, CELL_MAX, percent > 0 && percent < 0.1 ? "%.3f %%" : "%.2f %%", percent);
    return buf;
}

static void add_peer(struct table *t, const json_t *peer)
{
    char path[REACH_TEXT_MAX];
    char buf[CELL_MAX];

    table_add(t, "%s", text_of(peer, "name", "?"));
    table_add(t, "%s", text_of(peer, "address4", "?"));
    /* One that does not answer has nothing that was measured. */
    if (json_is_integer(json_object_get(peer, "silentSeconds")))
        table_add(t, "%s, silent for %s", format_path(peer, path),
            format_time(peer, "silentSeconds", buf));
    else
        table_add(t, "%s", format_path(peer, path));
    table_add(t, "%s", format_real(peer, "rttMs", 1, "ms", buf));
    table_add(t, "%s", format_loss(peer, buf));
    table_add(t, "%lld", number_of(peer, "mtu"));
    table_add(t, "%s", format_time(peer, "sinceSeconds", buf));
    table_add(t, "%s", format_age(peer, "handshakeAgeSeconds", buf));
    table_add(t, "%s", format_bytes(peer, "rxBytes", buf));
    table_add(t, "%s", format_bytes(peer, "txBytes", buf));
}

/* Is something found about this node and that peer? Then it says why. */
static bool is_found(const json_t *status, const json_t *peer)
{
    const char *self = text_of(json_object_get(status, "self"), "name", "?");
    char pair[FINDING_SUBJECT_MAX];
    const json_t *finding;
    size_t i;

    (void)finding_name_pair(pair, self, text_of(peer, "name", "?"));
    json_array_foreach(json_object_get(status, "findings"), i, finding)
        if (strcmp(text_of(finding, "subject", ""), pair) == 0)
            return true;
    return false;
}

/* Has one of those the same reason as @peer? */
static bool is_said(const json_t *said, const json_t *peer)
{
    const json_t *other;
    size_t i;

    json_array_foreach(said, i, other)
        if (json_equal(json_object_get(other, "why"), json_object_get(peer, "why")) &&
            json_equal(json_object_get(other, "path"), json_object_get(peer, "path")))
            return true;
    return false;
}

/* Why paths are not direct: each reason once, because many peers have the same one. */
static void format_reasons(const json_t *status, struct str *out)
{
    json_t *said = json_array();
    json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        const char *why = text_of(peer, "why", NULL);

        if (!why || is_said(said, peer) || is_found(status, peer))
            continue;
        (void)json_array_append(said, peer);
        str_addf(out, "%s: %s\n", text_of(peer, "path", "?"), why);
    }
    json_decref(said);
}

/* ---- findings ------------------------------------------------------------------------------- */

void status_text_format_findings(const json_t *findings, size_t most, struct str *out)
{
    const json_t *finding;
    char span[CELL_MAX];
    size_t i;

    if (json_array_size(findings) > 0)
        str_add(out, "FINDINGS\n");
    json_array_foreach(findings, i, finding) {
        if (i == most) {
            str_addf(out, "and %zu more: weft status --json\n", json_array_size(findings) - most);
            return;
        }
        str_addf(out, "%-8s  %s  %s, for %s: %s\n          %s\n", text_of(finding, "severity", "?"),
            text_of(finding, "code", "?"), text_of(finding, "subject", "?"),
            format_time(finding, "forSeconds", span), text_of(finding, "text", "?"),
            text_of(finding, "fix", "?"));
    }
}

/* An agent of a version before findings has none in its status, whatever is wrong. */
static void format_findings(const json_t *status, struct str *out)
{
    const json_t *findings = json_object_get(status, "findings");

    if (json_array_size(findings) > 0)
        str_add(out, "\n");
    status_text_format_findings(findings, FINDINGS_SHOWN, out);
    if (!json_is_array(findings))
        str_add(out,
            "what is wrong is not shown: the agent is of an older version than this command; "
            "systemctl restart weft-agent\n");
}

void status_text_format(const json_t *status, struct str *out)
{
    static const char *const head[] = {
        "PEER", "ADDRESS", "PATH", "RTT", "LOSS", "MTU", "SINCE", "HANDSHAKE", "RECEIVED", "SENT"};
    const json_t *self = json_object_get(status, "self");
    const json_t *peers = json_object_get(status, "peers");

    str_addf(out, "%s in the network %s: %s, %s\n", text_of(self, "name", "?"),
        text_of(self, "network", "?"), text_of(self, "address4", "?"),
        text_of(self, "address6", "?"));
    str_addf(out, "interface %s (%s), MTU %lld\n", text_of(self, "interface", "?"),
        text_of(self, "engine", "no engine"), number_of(self, "mtu"));
    format_rates(status, out);
    format_uplink(status, out);
    format_jobs(json_object_get(status, "jobs"), out);
    format_hubs(status, out);
    format_cluster(json_object_get(status, "cluster"), out);
    format_keepalive(json_object_get(status, "keepalive"), out);
    status_text_format_routes(status, out);
    format_findings(status, out);
    str_add(out, "\n");
    if (json_array_size(peers) == 0) {
        str_add(out, "no other node yet\n");
        return;
    }
    format_table(out, head, sizeof(head) / sizeof(*head), peers, add_peer);
    str_add(out, "\n");
    format_reasons(status, out);
}

/* ---- the paths to one node ------------------------------------------------------------------ */

static void add_pair(struct table *t, const json_t *pair)
{
    char buf[CELL_MAX];

    table_add(t, "%s", text_of(pair, "endpoint", "?"));
    table_add(
        t, "%s%s", text_of(pair, "type", "?"), is_set(pair, "ownSocket") ? ", own socket" : "");
    table_add(t, "%s", text_of(pair, "verdict", "?"));
    table_add(t, "%s", format_real(pair, "rttMs", 1, "ms", buf));
    table_add(t, "%lld/%lld", number_of(pair, "pongs"), number_of(pair, "pings"));
    table_add(t, "%s", format_age(pair, "triedSecondsAgo", buf));
}

static void add_relay(struct table *t, const json_t *relay)
{
    const char *verdict = text_of(relay, "verdict", "?");
    bool is_silent = strcmp(verdict, path_verdict_names[PATH_VERDICT_SILENT]) == 0;
    char buf[CELL_MAX];

    table_add(t, "%s", text_of(relay, "name", "?"));
    table_add(t, "%s", is_silent ? "not reached there" : verdict);
    table_add(t, "%s", format_real(relay, "rttMs", 1, "ms", buf));
    table_add(t, "%s", format_real(relay, "peerRttMs", 1, "ms", buf));
}

/* "here: endpoint-independent mapping, behind a NAT" */
static void format_nat(const char *whose, const json_t *nat, struct str *out)
{
    str_addf(out, "%s: %s mapping, %s%s\n", whose, text_of(nat, "mapping", "unknown"),
        is_set(nat, "natted") ? "behind a NAT" : "no NAT seen",
        is_set(nat, "blocked") ? ", UDP blocked" : "");
}

void status_text_format_paths(const json_t *paths, struct str *out)
{
    static const char *const pair_head[] = {
        "ENDPOINT", "FOUND", "VERDICT", "RTT", "ANSWERED", "TRIED"};
    /* The best relay has the smallest sum of both round trips. */
    static const char *const relay_head[] = {"RELAY", "VERDICT", "RTT HERE", "RTT THERE"};
    const json_t *pairs = json_object_get(paths, "candidates");
    const json_t *relays = json_object_get(paths, "relays");
    const json_t *rate = json_object_get(paths, "rateBitsPerSecond");
    char rate_text[TRAFFIC_RATE_TEXT_MAX];
    char path[REACH_TEXT_MAX];
    char since[CELL_MAX];
    char rtt[CELL_MAX];

    str_addf(out, "%s is reached by %s for %s, RTT %s\n", text_of(paths, "name", "?"),
        format_path(paths, path), format_time(paths, "sinceSeconds", since),
        format_real(paths, "rttMs", 1, "ms", rtt));
    if (json_is_integer(json_object_get(paths, "silentSeconds")))
        str_addf(out, "what was sent to it for %s has had no answer\n",
            format_time(paths, "silentSeconds", since));
    add_line(out, "%s\n", paths, "why");
    if (json_is_integer(rate))
        str_addf(out, "what is sent to it is kept to %s\n",
            traffic_rate_format((uint64_t)json_integer_value(rate), rate_text));
    format_nat("here", json_object_get(paths, "self"), out);
    format_nat("there", json_object_get(paths, "peer"), out);
    str_addf(out, "%lld path frames were sent, %lld of them guesses at ports\n\n",
        number_of(paths, "framesSent"), number_of(paths, "guessesSent"));
    if (json_array_size(pairs) == 0)
        str_add(out, "nothing has been tried yet\n");
    else
        format_table(out, pair_head, sizeof(pair_head) / sizeof(*pair_head), pairs, add_pair);
    if (json_array_size(relays) == 0)
        return;
    str_add(out, "\n");
    format_table(out, relay_head, sizeof(relay_head) / sizeof(*relay_head), relays, add_relay);
}
