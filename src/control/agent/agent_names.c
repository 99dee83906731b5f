/*
 * agent_names.c - the nodes of the network by name, in the machine's hosts file (docs/NAMES.md).
 *
 * Follows the snapshot, a little later than the interface does, so that many
 * nodes that come at once are written once; and looks whether the block is
 * still there when nothing changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/hosts_helper.h"
#include "agent/name_check.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/hosts.h"
#include "os/clock.h"
#include "os/hosts_file.h"
#include "os/statefile.h"

#define LOOK_PERIOD    (10 * NSEC_PER_SEC)
#define PENDING_PERIOD (NSEC_PER_SEC / 4) /* while the resolver is being asked */

/* Names that a status tells of; the rest is counted by whoever reads the file. */
#define TOLD_MAX 64

/* What is left out, for `weft status`; this node's own names lead to it anyway. */
static json_t *encode_left_out(
    const struct snapshot *s, const struct hosts_extra *extras, size_t n_extras)
{
    json_t *list = json_array();
    char why[128];

    for (size_t i = 0; list && i < n_extras && json_array_size(list) < TOLD_MAX; i++) {
        const struct node *node = &s->nodes.items[extras[i].node]->node;

        if (extras[i].verdict == HOSTS_KEPT || extras[i].verdict == HOSTS_PENDING ||
            strcmp(node->meta.name, s->self) == 0)
            continue;
        if (json_array_append_new(
                list, json_pack("{s:s, s:s, s:s}", "name", extras[i].name, "node", node->meta.name,
                          "why", hosts_describe(&extras[i], why))) < 0)
            list = (json_decref(list), NULL);
    }
    return list;
}

/* Said once when it begins, for each name. */
static void log_left_out(const json_t *before, const json_t *now)
{
    const json_t *item;
    size_t i;

    json_array_foreach(now, i, item) {
        const json_t *old = NULL;
        bool is_old = false;
        size_t j;

        json_array_foreach(before, j, old)
            is_old |= json_equal(old, item) != 0;
        if (!is_old)
            log_info("the name \"%s\" of node %s is not in " HOSTS_FILE_DEFAULT ": %s",
                json_string_value(json_object_get(item, "name")),
                json_string_value(json_object_get(item, "node")),
                json_string_value(json_object_get(item, "why")));
    }
}

/* The names besides the qualified ones, and what speaks against them. NULL: none, or no memory. */
static struct hosts_extra *choose_extras(struct agent *a, const char *owner, size_t *ret_n)
{
    _cleanup_(freep) struct hosts_extra *extras = hosts_list_extras(&a->snapshot, ret_n);
    _cleanup_(freep) char *file = NULL;
    size_t len = 0;

    /* A file that cannot be read now is none to be written, which is said then. */
    if (extras && statefile_read(HOSTS_FILE_DEFAULT, HOSTS_FILE_MAX, &file, &len, NULL) == 0 &&
        !hosts_mark_taken(extras, *ret_n, file, len, owner))
        *ret_n = 0;
    return TAKE_PTR(extras);
}

/* This machine's own names lead to it, whoever answers. */
static bool is_checked(const struct snapshot *s, const struct hosts_extra *x)
{
    return x->verdict == HOSTS_KEPT &&
           strcmp(s->nodes.items[x->node]->node.meta.name, s->self) != 0;
}

/* Have the resolver asked for those that nothing speaks against so far. */
static void want_extras(struct agent *a, const struct hosts_extra *extras, size_t n_extras)
{
    _cleanup_(freep) struct name_query *queries = calloc(n_extras + 1, sizeof(*queries));
    const struct snapshot *s = &a->snapshot;
    size_t n = 0;

    for (size_t i = 0; queries && i < n_extras; i++) {
        const struct node *node = &s->nodes.items[extras[i].node]->node;

        if (is_checked(s, &extras[i]))
            queries[n++] = (struct name_query){.name = extras[i].name,
                .address4 = node->address4,
                .address6 = node->address6,
                .ours = {s->network.cidr4, s->network.cidr6}};
    }
    if (queries)
        (void)name_check_want(a->names, queries, n);
}

/* Take in what the resolver has said; true while it is being asked. */
static bool check_extras(struct agent *a, struct hosts_extra *extras, size_t n_extras, nsec_t now)
{
    bool is_pending = false;
    struct err e = ERR_NULL;

    if (n_extras > 0 && !a->names && name_check_new(&a->names, name_lookup, &e) < 0)
        log_limited(&a->names_limit, now, LOG_LEVEL_WARNING, "only qualified names are given: %s",
            err_text(&e));
    if (a->names)
        want_extras(a, extras, n_extras);
    for (size_t i = 0; i < n_extras; i++) {
        enum name_verdict verdict = NAME_VERDICT_PENDING;

        if (!is_checked(&a->snapshot, &extras[i]))
            continue;
        if (a->names)
            verdict = name_check_ask(a->names, extras[i].name, now, &extras[i].elsewhere);
        if (verdict == NAME_VERDICT_ELSEWHERE)
            extras[i].verdict = HOSTS_ELSEWHERE;
        if (verdict == NAME_VERDICT_PENDING)
            extras[i].verdict = HOSTS_PENDING;
        is_pending |= verdict == NAME_VERDICT_PENDING;
    }
    return is_pending;
}

static void tell(struct agent *a, const struct hosts_extra *extras, size_t n_extras)
{
    json_t *left_out = encode_left_out(&a->snapshot, extras, n_extras);

    log_left_out(a->names_left_out, left_out);
    json_decref(a->names_left_out);
    a->names_left_out = left_out;
}

/* An agent that was root once has a helper for it. */
static int put(
    const struct agent *a, const char *owner, const char *block, bool *ret_changed, struct err *e)
{
    if (a->config->hosts)
        return hosts_helper_put(a->config->hosts, owner, block, ret_changed, e);
    return hosts_file_put(HOSTS_FILE_DEFAULT, owner, block, ret_changed, e);
}

void agent__name_nodes(struct agent *a)
{
    _cleanup_(str_deinit) struct str block = STR_NULL;
    _cleanup_(freep) struct hosts_extra *extras = NULL;
    char owner[HOSTS_OWNER_MAX];
    struct err e = ERR_NULL;
    nsec_t now = clock_now();
    bool is_pending;
    bool changed = false;
    size_t n_extras = 0;
    int r;

    a->due.names = NSEC_NEVER;
    if (!a->state.keeps_hosts)
        return;
    extras = choose_extras(a, hosts_owner(&a->snapshot, owner), &n_extras);
    is_pending = check_extras(a, extras, n_extras, now);
    hosts_add_block(&block, &a->snapshot, extras, n_extras, !a->reconcile.lacks_v6);
    r = block.failed ? err_set(&e, -ENOMEM, "no memory for %zu names", a->snapshot.nodes.n)
                     : put(a, owner, str_text(&block), &changed, &e);
    if (r < 0)
        log_limited(&a->names_limit, now, LOG_LEVEL_WARNING,
            "the nodes' names are not kept, trying again: %s", err_text(&e));
    else if (changed)
        log_info("%zu names are in " HOSTS_FILE_DEFAULT, a->snapshot.nodes.n);
    if (r == 0)
        tell(a, extras, n_extras);
    agent__schedule(a, &a->due.names, now + (is_pending ? PENDING_PERIOD : LOOK_PERIOD));
}

int agent__forget_names(const struct agent *a, struct err *e)
{
    char owner[HOSTS_OWNER_MAX];
    bool changed;

    if (!a->state.keeps_hosts)
        return 0;
    return put(a, hosts_owner(&a->snapshot, owner), NULL, &changed, e);
}
