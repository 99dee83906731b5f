/* node_daily.c - see node_daily.h. */
#include "agent/node_daily.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/paths/edge/reach.h"
#include "base/err.h"
#include "mesh/object/fields.h"
#include "mesh/object/node.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"
#include "os/process.h"

/* The first look comes so long after the start, and up to twice as much later. */
#define FIRST_AFTER (1800 * NSEC_PER_SEC)
/* From one pair to the next, and to the next look where there was nobody. */
#define PAIR_EACH (120 * NSEC_PER_SEC)
#define LOOK_EACH (1800 * NSEC_PER_SEC)
/* One that could not be measured is tried again after so long. */
#define RETRY_EACH (7200 * NSEC_PER_SEC)
/* The command takes some seconds. */
#define COMMAND_MAX (150 * NSEC_PER_SEC)

void node_daily_init(struct node_daily *nd, uint64_t random, nsec_t now)
{
    *nd = (struct node_daily){
        .due_at = now + FIRST_AFTER + (nsec_t)(random % (uint64_t)(2 * FIRST_AFTER))};
}

static struct node_daily_peer *find(struct node_daily *nd, const char *name)
{
    for (size_t i = 0; i < nd->n; i++)
        if (strcmp(nd->peers[i].name, name) == 0)
            return &nd->peers[i];
    return NULL;
}

/* NULL: there is no room. Whoever is no peer any more gives way. */
static struct node_daily_peer *open_peer(
    struct node_daily *nd, const struct snapshot *s, const char *name)
{
    struct node_daily_peer *p = find(nd, name);

    if (p)
        return p;
    for (size_t i = 0; nd->n == DAILY_PEERS_MAX && i < nd->n; i++)
        if (!snapshot_find_node(s, nd->peers[i].name))
            nd->peers[i] = nd->peers[--nd->n];
    if (nd->n == DAILY_PEERS_MAX)
        return NULL;
    p = &nd->peers[nd->n++];
    *p = (struct node_daily_peer){.sample = {.day = DAILY_NONE}};
    (void)snprintf(p->name, sizeof(p->name), "%s", name);
    return p;
}

static bool is_measured_here(const struct node_daily_facts *facts, const struct reach_peer *path)
{
    const struct node *node = snapshot_find_node(facts->snapshot, path->node);

    return strcmp(facts->snapshot->self, path->node) < 0 && node && node_has_agent(node) &&
           (path->kind == PATH_KIND_LAN || path->kind == PATH_KIND_DIRECT) &&
           path->silent_since == 0;
}

/* Who has waited longest for it. */
static struct node_daily_peer *choose(struct node_daily *nd, const struct node_daily_facts *facts)
{
    struct node_daily_peer *best = NULL;

    /* First, since it may move others. */
    for (size_t i = 0; i < facts->reach->n; i++)
        if (is_measured_here(facts, &facts->reach->items[i]))
            (void)open_peer(nd, facts->snapshot, facts->reach->items[i].node);
    for (size_t i = 0; i < facts->reach->n; i++) {
        const struct reach_peer *path = &facts->reach->items[i];
        struct node_daily_peer *p = is_measured_here(facts, path) ? find(nd, path->node) : NULL;

        if (!p || p->sample.day == facts->day ||
            (p->tried_at != 0 && facts->now - p->tried_at < RETRY_EACH))
            continue;
        if (!best || p->tried_at < best->tried_at)
            best = p;
    }
    return best;
}

const char *node_daily_next(struct node_daily *nd, const struct node_daily_facts *facts)
{
    struct node_daily_peer *p;

    if (nd->due_at == 0 || facts->now < nd->due_at)
        return NULL;
    p = facts->is_busy ? NULL : choose(nd, facts);
    nd->due_at = facts->now + (p ? PAIR_EACH : LOOK_EACH);
    if (!p)
        return NULL;
    p->tried_at = facts->now;
    return p->name;
}

void node_daily_poll(
    struct node_daily *nd, const struct node_daily_facts *facts, const char *socket_path)
{
    const char *argv[] = {
        "/proc/self/exe", "bench", NULL, "--sample", "--json", "--socket", socket_path, NULL};
    struct err e = ERR_NULL;

    if (nd->pid != 0 && process_has_ended(nd->pid))
        nd->pid = 0;
    if (nd->pid != 0 && facts->now - nd->started_at > COMMAND_MAX)
        (void)kill(nd->pid, SIGKILL);
    if (nd->pid != 0)
        return;
    argv[2] = node_daily_next(nd, facts);
    if (!argv[2])
        return;
    nd->started_at = facts->now;
    if (process_detach(argv, "/dev/null", &nd->pid, &e) == 0)
        return;
    nd->pid = 0;
    log_warning("what the line to %s carries is not measured today: %s", argv[2], err_text(&e));
}

int node_daily_take(
    struct node_daily *nd, const struct snapshot *s, const json_t *body, struct err *e)
{
    struct fields f = fields_make(body, "what was measured", e);
    const json_t *json = fields_array(&f, "sample", FIELDS_REQUIRED, 0, SIZE_MAX);
    char name[NAME_MAX_LEN + 1] = "";
    struct daily_sample sample;
    struct node_daily_peer *p;
    int r;

    fields_name(&f, "peer", FIELDS_REQUIRED, name);
    r = fields_end(&f);
    if (r == 0)
        r = daily_sample_decode(&sample, json, "what was measured", e);
    if (r != 0)
        return r;
    if (!snapshot_find_node(s, name) || strcmp(name, s->self) == 0)
        return err_set(e, -EINVAL, "\"%s\" is no other node of this network", name);
    p = open_peer(nd, s, name);
    if (!p)
        return err_set(e, -ENOSPC, "a sample of \"%s\" has no room beside those of %d others", name,
            DAILY_PEERS_MAX);
    p->sample = sample;
    p->seq = ++nd->seq;
    return 0;
}

json_t *node_daily_encode(const struct node_daily *nd, uint64_t seq, uint64_t *ret_seq)
{
    struct daily d = DAILY_NULL;
    json_t *json;

    *ret_seq = nd->seq;
    if (nd->seq <= seq)
        return NULL;
    for (size_t i = 0; i < nd->n; i++)
        if (nd->peers[i].seq > seq)
            (void)daily_put(&d, nd->peers[i].name, &nd->peers[i].sample);
    json = daily_encode(&d, SIZE_MAX);
    daily_deinit(&d);
    return json;
}
