/* missing.c - see missing.h. */
#include "train/job/missing.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "base/parse.h"
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

/* Names that are put into a list, and how many there are. */
struct names {
    struct str text;
    size_t n;
};

#define NAMES_NULL                                                                                 \
    {                                                                                              \
        STR_NULL, 0                                                                                \
    }

/* The other job that a node is in, by the hub's list of all; NULL: none is known. */
static const char *other_job(const json_t *jobs, const char *own, const char *node)
{
    const json_t *job;
    size_t i;

    json_array_foreach(json_object_get(jobs, "jobs"), i, job) {
        const char *name = json_string_value(json_object_get(job, "job"));

        if (name && strcmp(name, own) != 0 && parse_name(name, "job", NULL) == 0 &&
            has_name(json_object_get(job, "present"), node))
            return name;
    }
    return NULL;
}

/* The peers that have not come: in no job that is known of, and those that are in another one. */
static void list_missing(
    const struct missing_facts *f, struct names *ret_idle, struct names *ret_elsewhere)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(f->status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));
        const char *job;
        char text[2 * NAME_MAX_LEN + sizeof(" is in the job ")];

        if (!members_peer_takes_part(peer) || has_name(f->present, name))
            continue;
        job = other_job(f->jobs, f->job, name);
        if (!job) {
            add_name(&ret_idle->text, &ret_idle->n, name);
            continue;
        }
        (void)snprintf(
            text, sizeof(text), "%.*s is in the job %.*s", NAME_MAX_LEN, name, NAME_MAX_LEN, job);
        add_name(&ret_elsewhere->text, &ret_elsewhere->n, text);
    }
}

void missing_format(const struct missing_facts *f, struct str *out)
{
    struct names idle = NAMES_NULL;
    struct names elsewhere = NAMES_NULL;

    list_missing(f, &idle, &elsewhere);
    if (idle.n > 0)
        str_addf(out, "%s: start the same command there", str_text(&idle.text));
    if (elsewhere.n > 0)
        str_addf(out, "%s%s: give all the same --job", idle.n > 0 ? "; " : "",
            str_text(&elsewhere.text));
    if (idle.n + elsewhere.n == 0)
        str_add(out, "no other node of the network: are there enough?");
    str_deinit(&idle.text);
    str_deinit(&elsewhere.text);
}

void missing_format_unmet(const struct missing_facts *f, struct str *out)
{
    struct names started = NAMES_NULL;
    struct names idle = NAMES_NULL;
    struct names elsewhere = NAMES_NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(f->present, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), f->self) != 0)
            add_name(&started.text, &started.n, json_string_value(item));
    if (json_array_size(f->present) < f->min_nodes)
        list_missing(f, &idle, &elsewhere);
    if (started.n > 0)
        str_addf(out, "%s %s started it, too, and %s not met", str_text(&started.text),
            started.n == 1 ? "has" : "have", started.n == 1 ? "was" : "were");
    if (idle.n > 0)
        str_addf(out, "%s%s %s not started it", started.n > 0 ? "; " : "", str_text(&idle.text),
            idle.n == 1 ? "has" : "have");
    if (elsewhere.n > 0)
        str_addf(out, "%s%s", started.n + idle.n > 0 ? "; " : "", str_text(&elsewhere.text));
    if (started.n + idle.n + elsewhere.n == 0)
        str_add(out, "the network has no other node");
    str_deinit(&started.text);
    str_deinit(&idle.text);
    str_deinit(&elsewhere.text);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Asks the hub and the agent; @present: borrowed. False: the agent does not answer. What jobs there
 * are is of use, and no more. */
static bool gather(struct missing_facts *f, const struct run *run, json_t *present)
{
    *f = (struct missing_facts){
        .present = present, .job = run->job, .self = run->node.name, .min_nodes = run->min_nodes};
    if (agent_ask(run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &f->status, NULL) != 0)
        return false;
    (void)agent_ask(run->socket_path, "GET", "/v1/jobs", ASK_TIMEOUT_MS, &f->jobs, NULL);
    return true;
}

static void release(struct missing_facts *f)
{
    json_decref(f->status);
    json_decref(f->jobs);
}

static void tell(const struct run *run, const struct missing_facts *f)
{
    struct names here = NAMES_NULL;
    struct str missing = STR_NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(f->present, i, item)
        add_name(&here.text, &here.n, json_is_string(item) ? json_string_value(item) : "?");
    missing_format(f, &missing);
    (void)fprintf(stderr,
        "weft run: still waiting: %zu of %u nodes %s come to the job %s (%s); not yet: %s\n",
        json_array_size(f->present), run->min_nodes, here.n == 1 ? "has" : "have", run->meeting.id,
        str_text(&here.text), str_text(&missing));
    str_deinit(&here.text);
    str_deinit(&missing);
}

unsigned missing_report(const struct run *run)
{
    json_auto_t *present = rendezvous_members(run->socket_path, run->job, run->meeting.id);
    bool waits = present && json_array_size(present) < run->min_nodes;
    struct missing_facts f = {0};

    if (waits && gather(&f, run, present))
        tell(run, &f);
    release(&f);
    return waits ? AGAIN_MS : 0;
}

bool missing_unmet(const struct run *run, struct str *out)
{
    json_auto_t *present = rendezvous_members(run->socket_path, run->job, run->meeting.id);
    struct missing_facts f = {0};

    if (present && gather(&f, run, present))
        missing_format_unmet(&f, out);
    release(&f);
    return present && json_array_size(present) >= run->min_nodes;
}
