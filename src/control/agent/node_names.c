/* node_names.c - see node_names.h. */
#include "agent/node_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/hosts_helper.h"
#include "agent/name_check.h"
#include "agent/resolver.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/names/hosts.h"
#include "mesh/snapshot/snapshot.h"
#include "os/hosts_file.h"
#include "os/statefile.h"

#define PERIOD         (10 * NSEC_PER_SEC)
#define PENDING_PERIOD (NSEC_PER_SEC / 4) /* while the resolver is being asked */

/* Most names that the status lists. */
#define TOLD_MAX 64

static const char *owner_of(
    const struct node_names *nn, const struct snapshot *s, char buf[static HOSTS_OWNER_MAX])
{
    return hosts_owner(nn->opt.born ? nn->opt.born : s, buf);
}

/* The names that are not in the file, for `weft status`. This node's own are not listed, because
 * this machine's names lead to it anyway. */
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

/* Logs each name once, when it begins to be left out. */
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

/* The names besides the qualified ones, each with its verdict. NULL: none, or no memory. */
static struct hosts_extra *choose_extras(
    const char *name, const struct snapshot *s, const char *owner, size_t *ret_n)
{
    _cleanup_(freep) struct hosts_extra *extras = hosts_list_extras(s, ret_n);
    _cleanup_(freep) char *file = NULL;
    size_t len = 0;

    /* A file that cannot be read now cannot be written either, which is logged then. */
    if (extras && statefile_read(name, HOSTS_FILE_MAX, &file, &len, NULL) == 0 &&
        !hosts_mark_taken(extras, *ret_n, file, len, owner))
        *ret_n = 0;
    return TAKE_PTR(extras);
}

/* Is the resolver to be asked for that name? Not for this machine's own, which lead to it anyway.
 */
static bool is_checked(const struct snapshot *s, const struct hosts_extra *x)
{
    return x->verdict == HOSTS_KEPT &&
           strcmp(s->nodes.items[x->node]->node.meta.name, s->self) != 0;
}

/* Has the resolver asked for those names that nothing else speaks against. */
static void want_extras(struct node_names *nn, const struct snapshot *s,
    const struct hosts_extra *extras, size_t n_extras)
{
    _cleanup_(freep) struct name_query *queries = calloc(n_extras + 1, sizeof(*queries));
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
        (void)name_check_want(nn->check, queries, n);
}

/* Fills in the verdicts of the resolver. Return: true while some name is still being asked for. */
static bool check_extras(struct node_names *nn, const struct snapshot *s,
    struct hosts_extra *extras, size_t n_extras, nsec_t now)
{
    bool is_pending = false;
    struct err e = ERR_NULL;

    if (n_extras > 0 && !nn->check && name_check_new(&nn->check, nn->opt.lookup, &e) < 0)
        log_limited(
            &nn->limit, now, LOG_LEVEL_WARNING, "only qualified names are given: %s", err_text(&e));
    if (nn->check)
        want_extras(nn, s, extras, n_extras);
    for (size_t i = 0; i < n_extras; i++) {
        enum name_verdict verdict = NAME_VERDICT_PENDING;

        if (!is_checked(s, &extras[i]))
            continue;
        if (nn->check)
            verdict = name_check_ask(nn->check, extras[i].name, now, &extras[i].elsewhere);
        if (verdict == NAME_VERDICT_ELSEWHERE)
            extras[i].verdict = HOSTS_ELSEWHERE;
        if (verdict == NAME_VERDICT_PENDING)
            extras[i].verdict = HOSTS_PENDING;
        is_pending |= verdict == NAME_VERDICT_PENDING;
    }
    return is_pending;
}

static void tell(struct node_names *nn, const struct snapshot *s, const struct hosts_extra *extras,
    size_t n_extras)
{
    json_t *left_out = encode_left_out(s, extras, n_extras);

    log_left_out(nn->left_out, left_out);
    json_decref(nn->left_out);
    nn->left_out = left_out;
}

/* An agent that gave up being root has a helper that writes the file. */
static int put(const struct node_names *nn, const char *owner, const char *block, bool *ret_changed,
    struct err *e)
{
    if (nn->opt.helper)
        return hosts_helper_put(nn->opt.helper, owner, block, ret_changed, e);
    return hosts_file_put(nn->opt.file, owner, block, ret_changed, e);
}

/* The resolver answers by the lines that the file has, or would have. */
static void set_resolver(
    struct node_names *nn, const struct snapshot *s, bool lacks_v6, const char *lines)
{
    const struct node *self = snapshot_self(s);
    struct resolver_place place = {.network = s->network.meta.name,
        .blocks = {s->network.cidr4, s->network.cidr6},
        .address4 = self->address4};

    if (!lacks_v6)
        place.address6 = self->address6;
    (void)resolver_set(nn->opt.resolver, &place, lines);
    /* Root's side believes only what the interface has, and that it listens says so. */
    if (nn->opt.link_file && resolver_is_listening(nn->opt.resolver))
        resolved_link_write(nn->opt.link_file, nn->opt.interface, &place, &nn->told);
}

void node_names_init(struct node_names *nn, const struct node_names_options *opt)
{
    *nn = (struct node_names){.opt = *opt, .due_at = NSEC_NEVER};
}

void node_names_deinit(struct node_names *nn)
{
    json_decref(nn->left_out);
    nn->left_out = NULL;
    nn->check = name_check_free(nn->check);
}

void node_names_request(struct node_names *nn, nsec_t at)
{
    nn->due_at = nsec_min(nn->due_at, at);
}

void node_names_update(struct node_names *nn, const struct snapshot *s, bool lacks_v6, nsec_t now)
{
    _cleanup_(str_deinit) struct str block = STR_NULL;
    _cleanup_(freep) struct hosts_extra *extras = NULL;
    char owner[HOSTS_OWNER_MAX];
    struct err e = ERR_NULL;
    bool is_pending;
    bool changed = false;
    size_t n_extras = 0;
    int r;

    nn->due_at = NSEC_NEVER;
    if (!nn->opt.is_on && !nn->opt.resolver)
        return;
    extras = choose_extras(nn->opt.file, s, owner_of(nn, s, owner), &n_extras);
    is_pending = check_extras(nn, s, extras, n_extras, now);
    hosts_add_block(&block, s, extras, n_extras, !lacks_v6);
    r = block.failed ? err_set(&e, -ENOMEM, "no memory for %zu names", s->nodes.n) : 0;
    if (r == 0 && nn->opt.resolver)
        set_resolver(nn, s, lacks_v6, str_text(&block));
    if (r == 0 && nn->opt.is_on)
        r = put(nn, owner, str_text(&block), &changed, &e);
    if (r < 0)
        log_limited(&nn->limit, now, LOG_LEVEL_WARNING,
            "the nodes' names are not kept, trying again: %s", err_text(&e));
    else if (changed)
        log_info("%zu names are in " HOSTS_FILE_DEFAULT, s->nodes.n);
    if (r == 0)
        tell(nn, s, extras, n_extras);
    nn->failure = r < 0 ? e : (struct err)ERR_NULL;
    nn->is_settled = r < 0 || !is_pending;
    nn->due_at = now + (is_pending ? PENDING_PERIOD : PERIOD);
}

bool node_names_is_pending(const struct node_names *nn)
{
    return nn->opt.is_on && !nn->is_settled;
}

int node_names_remove(const struct node_names *nn, const struct snapshot *s, struct err *e)
{
    char owner[HOSTS_OWNER_MAX];
    bool changed;

    /* What systemd-resolved was told goes with the interface. */
    if (nn->opt.link_file)
        (void)unlink(nn->opt.link_file);
    if (!nn->opt.is_on)
        return 0;
    return put(nn, owner_of(nn, s, owner), NULL, &changed, e);
}
