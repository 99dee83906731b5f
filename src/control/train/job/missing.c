/* missing.c - see missing.h. */
#include "train/job/missing.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "base/str.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"
#include "train/names/members.h"

/* Milliseconds between later reports. */
#define AGAIN_MS 60000

#define ASK_TIMEOUT_MS 3000

#define NAMES_MAX 8 /* at most so many nodes are named in a list */

static bool has_name(const json_t *names, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(names, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

static void add_name(struct str *out, size_t *n, const char *name)
{
    if (*n < NAMES_MAX)
        str_addf(out, "%s%s", *n == 0 ? "" : ", ", name);
    else if (*n == NAMES_MAX)
        str_add(out, ", ...");
    (*n)++;
}

/* Appends the names of the peers that have not come. Return: the number of these peers. */
static size_t list_missing(struct str *out, const json_t *status, const json_t *present)
{
    const json_t *peer;
    size_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));

        if (members_peer_takes_part(peer) && !has_name(present, name))
            add_name(out, &n, name);
    }
    return n;
}

static void tell(const struct run *run, const json_t *present, const json_t *status)
{
    struct str here = STR_NULL;
    struct str missing = STR_NULL;
    const json_t *item;
    size_t n = 0;
    size_t i;

    json_array_foreach(present, i, item)
        add_name(&here, &n, json_is_string(item) ? json_string_value(item) : "?");
    if (list_missing(&missing, status, present) > 0)
        str_add(&missing, ": start the same command there");
    else
        str_add(&missing, "no other node of the network: are there enough?");
    (void)fprintf(stderr,
        "weft run: still waiting: %zu of %u nodes %s come to the job %s (%s); not yet: %s\n",
        json_array_size(present), run->min_nodes, n == 1 ? "has" : "have", run->meeting.id,
        str_text(&here), str_text(&missing));
    str_deinit(&here);
    str_deinit(&missing);
}

unsigned missing_report(const struct run *run)
{
    json_t *present = rendezvous_members(run->socket_path, run->job, run->meeting.id);
    json_t *status = NULL;
    bool waits = present && json_array_size(present) < run->min_nodes;

    if (waits &&
        agent_ask(run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0)
        tell(run, present, status);
    json_decref(status);
    json_decref(present);
    return waits ? AGAIN_MS : 0;
}
