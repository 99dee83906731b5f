/* networks_remove.c - networks_remove() of networks.h: a network goes, in pieces. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/networks/networks.h"
#include "hub/traffic/traffic_key.h"
#include "os/clock.h"
#include "store/store.h"

/* How often a commit that conflicts is made again. */
#define TRIES 8

/* Most records that one commit removes. */
#define DELETIONS_MAX 1024

/* The kinds of record that belong to a network, in the order of their removal. The nodes of hubs
 * are removed together with the network. */
static const enum record_kind kinds[] = {RECORD_NODE, RECORD_REPORT, RECORD_EDGE};
#define KINDS_N (sizeof(kinds) / sizeof(*kinds))

/* The prefix of list number @i: of one of @kinds, then of each other kind of object, then of what
 * nodes have moved; NULL: there are no more. */
static const char *list_prefix(size_t i)
{
    if (i < KINDS_N)
        return record_prefix(kinds[i]);
    i -= KINDS_N;
    for (unsigned k = 0; object_kinds[k]; k++)
        if (record_kind_of(object_kinds[k]) == RECORD_OBJECT && i-- == 0)
            return object_kinds[k]->prefix;
    return i == 0 ? TRAFFIC_KEY_PREFIX : NULL;
}

/*
 * A network that is being removed: in pieces, for a large one does not fit a commit. It goes last
 * itself, so what a crash in between leaves is a smaller network. Meanwhile nobody enrols in it
 * (model_network.leaving), and what was on its way when that began is found by the lists, which
 * come behind it.
 */
struct removing {
    struct networks *networks; /* pins */
    char name[NAME_MAX_LEN + 1];
    struct audit_by by; /* who removes it */
    size_t kind;        /* list_prefix() of the list that is being read; NULL: the network goes */
    unsigned n_tries;   /* commits that have conflicted, since one did not */
    networks_removed_fn done;
    void *ctx; /* pins */
};

static void end_removal(struct removing *x, int r, const struct err *e)
{
    struct model_network *net = model_find_network(x->networks->model, x->name);

    if (net)
        net->leaving = NULL;
    x->done(x->ctx, r, e);
    free(x);
}

static void go_on(struct removing *x);

static void on_deleted(void *ctx, const struct store_answer *a)
{
    struct removing *x = ctx;
    struct err e = *a->e;

    x->n_tries = a->r == STORE_E_CONFLICT ? x->n_tries + 1 : 0;
    if (x->n_tries > 0 && x->n_tries < TRIES)
        go_on(x);
    else if (a->r != 0)
        end_removal(x,
            a->r < 0 ? a->r
                     : err_set(&e, -EIO, "network \"%s\" is not removed: %s", x->name,
                           a->e->text[0] ? a->e->text : "others change it"),
            &e);
    else if (!list_prefix(x->kind))
        end_removal(x, 0, a->e);
    else
        go_on(x);
}

/* Commit @ops, in the name of who removes the network. */
static void delete (struct removing *x, const struct store_op *ops, size_t n)
{
    struct audit *audit = x->networks->model->audit;
    struct audit_by before = audit->by;
    struct err e = ERR_NULL;
    int r;

    audit_act(audit, x->by.actor, &x->by.from);
    r = model_commit(x->networks->model, ops, n, clock_now(), on_deleted, x, &e);
    audit_act(audit, before.actor, &before.from);
    if (r != 0)
        end_removal(x, r, &e);
}

/* The network first: a hub that hears of its own node's removal before has been retired. */
static void delete_network(struct removing *x)
{
    static const enum record_kind first[] = {RECORD_NETWORK, RECORD_IPAM};
    const struct model_network *net = model_find_network(x->networks->model, x->name);
    char keys[2 + NETWORKS_HUBS_MAX][RECORD_KEY_MAX];
    struct store_op ops[2 + NETWORKS_HUBS_MAX];
    size_t n = 0;

    for (; n < 2; n++)
        (void)record_key(keys[n], first[n], x->name, "");
    for (size_t i = 0; net && i < net->nodes.n && n < 2 + NETWORKS_HUBS_MAX; i++) {
        const struct node *node = &model_node_at(net, i)->pub.spec;

        if (node->hub)
            (void)record_key(keys[n++], RECORD_NODE, x->name, node->meta.name);
    }
    for (size_t i = 0; i < n; i++)
        ops[i] =
            (struct store_op){.kind = STORE_OP_DELETE, .key = keys[i], .expect = STORE_EXPECT_ANY};
    delete (x, ops, n);
}

/* Is it the node of a hub, which goes together with the network? */
static bool is_hub(const struct removing *x, const struct record_key *k)
{
    const struct model_network *net = model_find_network(x->networks->model, x->name);
    const struct model_node *node =
        net && k->kind == RECORD_NODE ? model_find_node(net, k->name) : NULL;

    return node && node->pub.spec.hub;
}

/* Remove all records of the page that was read; an empty page ends the list. */
static void on_page(void *ctx, const struct store_answer *a)
{
    struct store_op ops[DELETIONS_MAX];
    struct removing *x = ctx;
    size_t n = 0;

    if (a->r != 0) {
        end_removal(x, a->r, a->e);
        return;
    }
    for (size_t i = 0; i < a->n_items; i++) {
        struct record_key k = record_key_parse(a->items[i].key);

        /* The key as it is: a damaged one may have other parts than are expected. */
        if (!is_hub(x, &k))
            ops[n++] = (struct store_op){
                .kind = STORE_OP_DELETE, .key = a->items[i].key, .expect = STORE_EXPECT_ANY};
    }
    if (n > 0) {
        delete (x, ops, n);
        return;
    }
    x->kind++;
    go_on(x);
}

/* From the store and not from the model, which knows nothing of what is damaged. */
static void go_on(struct removing *x)
{
    char prefix[RECORD_KEY_MAX];
    struct store_range range = {.prefix = prefix, .limit = DELETIONS_MAX};
    struct err e = ERR_NULL;
    int r;

    if (!list_prefix(x->kind)) {
        delete_network(x);
        return;
    }
    (void)snprintf(prefix, sizeof(prefix), "%s%s/", list_prefix(x->kind), x->name);
    r = store_list(x->networks->model->store, &range, on_page, x, &e);
    if (r != 0)
        end_removal(x, r, &e);
}

int networks_remove(struct networks *n, struct model_network *net, networks_removed_fn done,
    void *ctx, struct err *e)
{
    struct removing *x;

    if (net->leaving)
        return err_set(
            e, -EAGAIN, "network \"%s\" is being removed already", net->pub.spec.meta.name);
    x = calloc(1, sizeof(*x));
    if (!x)
        return err_set(e, -ENOMEM, "no memory to remove network \"%s\"", net->pub.spec.meta.name);
    *x = (struct removing){.networks = n, .by = n->model->audit->by, .done = done, .ctx = ctx};
    (void)snprintf(x->name, sizeof(x->name), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    net->leaving = "its network was removed";
    go_on(x);
    return 0;
}
