/* status_paths.c - see status_paths.h. */
#include "agent/status_paths.h"

#include <string.h>

#include "agent/paths/edge/path_driver.h"
#include "agent/paths/edge/reach.h"
#include "agent/status_cells.h"
#include "agent/status_rates.h"
#include "agent/status_reach.h"
#include "base/str.h"
#include "base/table.h"
#include "mesh/object/node.h"
#include "mesh/object/path_report.h"

json_t *status_paths_encode(const struct status_paths *in)
{
    const char *name = in->node->meta.name;
    json_t *pairs = path_driver_encode_pairs(in->paths, name, in->now);
    struct path_view view = {.n_frames = 0};
    json_t *json;

    (void)path_driver_view(in->paths, name, &view, in->now);
    json = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name", name, "framesSent",
        (json_int_t)view.n_frames, "guessesSent", (json_int_t)view.n_guesses, "self",
        path_report_encode_facts(path_driver_self(in->paths)), "peer",
        in->node->side ? path_report_encode_facts(in->node->side) : json_null(), "candidates",
        pairs ? pairs : json_array(), "relays", path_driver_encode_relays(in->paths, name));
    if (json_object_update_new(json, status_reach_encode(in->peer, in->rate, in->now)) < 0)
        json = (json_decref(json), NULL);
    return json;
}

static void add_pair(struct table *t, const json_t *pair)
{
    const json_t *tried = json_object_get(pair, "triedSecondsAgo");
    char buf[STATUS_CELL_MAX];

    table_add(t, "%s", status_cells_text(pair, "endpoint", "?"));
    table_add(t, "%s%s", status_cells_text(pair, "type", "?"),
        json_is_true(json_object_get(pair, "ownSocket")) ? ", own socket" : "");
    table_add(t, "%s", status_cells_text(pair, "verdict", "?"));
    table_add(t, "%s", status_cells_real(pair, "rttMs", 1, "ms", buf));
    table_add(t, "%lld/%lld", (long long)json_integer_value(json_object_get(pair, "pongs")),
        (long long)json_integer_value(json_object_get(pair, "pings")));
    if (json_is_integer(tried))
        table_add(t, "%lld s ago", (long long)json_integer_value(tried));
    else
        table_add(t, "never");
}

static void format_pairs(const json_t *pairs, struct str *out)
{
    static const char *const head[] = {"ENDPOINT", "FOUND", "VERDICT", "RTT", "ANSWERED", "TRIED"};
    struct table t;
    size_t index;
    json_t *pair;

    table_init(&t, sizeof(head) / sizeof(*head));
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        table_add(&t, "%s", head[i]);
    json_array_foreach(pairs, index, pair)
        add_pair(&t, pair);
    table_format(&t, out);
    table_deinit(&t);
}

static const char *describe_relay(const json_t *relay)
{
    const char *verdict = status_cells_text(relay, "verdict", "?");

    if (strcmp(verdict, path_verdict_name(PATH_VERDICT_SILENT)) == 0)
        return "not reached there";
    return verdict;
}

/* The relays through which the peer may be reached. The best has the smallest sum of both round
 * trips. */
static void format_relays(const json_t *relays, struct str *out)
{
    struct table t;
    size_t index;
    json_t *relay;

    str_add(out, "\n");
    table_init(&t, 4);
    table_add(&t, "RELAY");
    table_add(&t, "VERDICT");
    table_add(&t, "RTT HERE");
    table_add(&t, "RTT THERE");
    json_array_foreach(relays, index, relay) {
        char buf[STATUS_CELL_MAX];

        table_add(&t, "%s", status_cells_text(relay, "name", "?"));
        table_add(&t, "%s", describe_relay(relay));
        table_add(&t, "%s", status_cells_real(relay, "rttMs", 1, "ms", buf));
        table_add(&t, "%s", status_cells_real(relay, "peerRttMs", 1, "ms", buf));
    }
    table_format(&t, out);
    table_deinit(&t);
}

/* "endpoint-independent mapping, natted" */
static void format_nat(const char *whose, const json_t *nat, struct str *out)
{
    str_addf(out, "%s: %s mapping, %s%s\n", whose, status_cells_text(nat, "mapping", "unknown"),
        json_is_true(json_object_get(nat, "natted")) ? "behind a NAT" : "no NAT seen",
        json_is_true(json_object_get(nat, "blocked")) ? ", UDP blocked" : "");
}

void status_paths_format(const json_t *paths, struct str *out)
{
    const json_t *pairs = json_object_get(paths, "candidates");
    const json_t *relays = json_object_get(paths, "relays");
    const char *why = status_cells_text(paths, "why", NULL);
    char path[STATUS_REACH_PATH_MAX];
    char buf[STATUS_CELL_MAX];

    str_addf(out, "%s is reached by %s for %s, RTT %s\n", status_cells_text(paths, "name", "?"),
        status_reach_path(paths, path), status_cells_time(paths, "sinceSeconds", buf),
        status_cells_real(paths, "rttMs", 1, "ms", (char[STATUS_CELL_MAX]){0}));
    if (why)
        str_addf(out, "%s\n", why);
    status_rates_format_path(paths, out);
    format_nat("here", json_object_get(paths, "self"), out);
    format_nat("there", json_object_get(paths, "peer"), out);
    str_addf(out, "%lld path frames were sent, %lld of them guesses at ports\n\n",
        (long long)json_integer_value(json_object_get(paths, "framesSent")),
        (long long)json_integer_value(json_object_get(paths, "guessesSent")));
    if (json_array_size(pairs) == 0)
        str_add(out, "nothing has been tried yet\n");
    else
        format_pairs(pairs, out);
    if (json_array_size(relays) > 0)
        format_relays(relays, out);
}
