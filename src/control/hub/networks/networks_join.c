/*
 * networks_join.c - networks_join() of networks.h: this hub becomes a node of a network that
 * another one has made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/model/ipam.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks_internal.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/statefile.h"

/* A network that another hub has made, and that this hub joins. */
struct joining {
    struct networks *networks; /* pins */
    char name[NAME_MAX_LEN + 1];
    struct x25519_public public; /* of the key that this hub has in it */
    int r;                       /* of finding or making that key */
    struct err failure;          /* of that */
};

/* The next call tries again, but not at once. What is wrong is said once. */
static void fail_joining(struct networks *n, const struct err *e)
{
    bool is_said = n->join_failure.code != 0 && strcmp(n->join_failure.text, e->text) == 0;

    n->join_at = clock_now() + NETWORKS_JOIN_EACH;
    n->join_failure = *e;
    if (n->is_serving && !is_said)
        log_error("%s", err_text(e));
}

static void on_joined(void *ctx, const struct store_answer *a)
{
    struct joining *x = ctx;
    struct networks *n = x->networks;
    struct model_network *net = model_find_network(n->model, x->name);

    n->adding[0] = '\0';
    if (a->r == 0 && net && net->own) {
        n->join_failure = (struct err)ERR_NULL;
        log_info("hub \"%s\" has joined network \"%s\"", n->model->self, x->name);
    } else if (a->r < 0) {
        fail_joining(n, a->e);
    }
    /* After a conflict, somebody has taken the address or the network: the next call looks again.
     */
    free(x);
}

static unsigned count_hubs(const struct model_network *net)
{
    unsigned n = 0;

    for (size_t i = 0; i < net->nodes.n; i++)
        n += model_node_at(net, i)->pub.spec.hub != NULL;
    return n;
}

/* May this hub join the network with that key? 0 or negative errno with words. */
static int check_joining(const struct networks *n, const struct model_network *net,
    const struct x25519_public *key, struct err *e)
{
    const char *name = net->pub.spec.meta.name;
    const char *self = n->model->self;
    const struct model_node *holder = key ? model_find_key(net, key) : NULL;

    if (model_find_node(net, self))
        return err_set(e, -EEXIST,
            "network \"%s\" has a node \"%s\" already, with another key than this hub has: give "
            "this hub a name of its own (--name), or, if that node is gone, \"weft node rm %s\" on "
            "another hub makes room",
            name, self, self);
    if (holder)
        return err_set(e, -EEXIST,
            "this hub's key in network \"%s\" is that of node \"%s\": start it with --name %s, as "
            "before",
            name, holder->pub.spec.meta.name, holder->pub.spec.meta.name);
    if (count_hubs(net) >= NETWORKS_HUBS_MAX)
        return err_set(
            e, -ENOSPC, "network \"%s\" has %d hubs, and no more fit", name, NETWORKS_HUBS_MAX);
    return 0;
}

/* The host number of this hub's own node; 0: none is free. The hub that made the network has the
 * first one, also when it comes back after it was removed. */
static uint32_t own_number(const struct networks *n, const struct model_network *net)
{
    struct ip_addr first = ipam_address(&net->pub.spec.cidr4, IPAM_HUB);

    if (strcmp(net->maker.name, n->model->self) == 0 && !model_find_address(net, &first))
        return IPAM_HUB;
    return model_next_number(net);
}

/* Commit this hub's own node, with an address out of the network's record, as for any node. */
static int store_self(struct joining *x, const struct model_network *net, struct err *e)
{
    static const struct token_hash none;
    const struct networks *n = x->networks;
    const struct ipam *ipam = &net->ipam;
    const char *name = net->pub.spec.meta.name;
    uint32_t number = own_number(n, net);
    _cleanup_(freep) char *cursor = NULL;
    _cleanup_(freep) char *text = NULL;
    char keys[3][RECORD_KEY_MAX];
    struct store_op ops[3];
    struct node_hub nh;
    struct node node;

    if (number == 0)
        return err_set(
            e, -ENOSPC, "network \"%s\" has no address left for hub \"%s\"", name, n->model->self);
    networks__fill_hub(n, &nh);
    node = networks__own_node(n, &net->pub.spec, &x->public, number, &nh);
    text = record_node_encode(&node, &none);
    cursor = record_ipam_encode(
        number < ipam->next ? ipam->next : number + 1, number > ipam->high ? number : ipam->high);
    if (!text || !cursor)
        return err_set(e, -ENOMEM, "no memory for the hub's own node");
    ops[0] = (struct store_op){.kind = STORE_OP_CHECK,
        .key = record_key(keys[0], RECORD_NETWORK, name, ""),
        .expect = net->pub.spec.meta.resource_version};
    ops[1] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[1], RECORD_IPAM, name, ""),
        .value = cursor,
        .expect = net->ipam_revision};
    /* Its own record may be there, and damaged. */
    ops[2] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[2], RECORD_NODE, name, n->model->self),
        .value = text,
        .expect = model_revision(n->model, keys[2])};
    return model_commit(n->model, ops, 3, clock_now(), on_joined, x, e);
}

/* Find the key that this hub has had in the network before, or make one. */
static void run_own_key(void *arg)
{
    struct joining *x = arg;
    struct x25519_secret secret = {{0}};
    char path[NETWORKS__PATH_ROOM];
    char *text = NULL;
    int r = statefile_read(
        networks__key_path(x->networks, path, x->name), 256, &text, NULL, &x->failure);

    if (r == STATEFILE_E_ABSENT) {
        x->r = networks__make_key(x->networks, x->name, &x->public, &x->failure);
        return;
    }
    x->r = r;
    if (r != 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    if (x25519_secret_parse(&secret, text, NULL) != 0 || !x25519_derive_public(&secret, &x->public))
        x->r = err_set(&x->failure, -EUCLEAN,
            "\"%s\", the key of hub \"%s\" in network \"%s\", is no key: put a copy in its place, "
            "or "
            "remove it, and the hub makes another one",
            path, x->networks->model->self, x->name);
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, strlen(text));
    free(text);
}

static void on_own_key(void *arg)
{
    struct joining *x = arg;
    struct networks *n = x->networks;
    const struct model_network *net = model_find_network(n->model, x->name);

    if (net && x->r == 0 && !net->leaving && !net->own) {
        x->r = check_joining(n, net, &x->public, &x->failure);
        if (x->r == 0)
            x->r = store_self(x, net, &x->failure);
        if (x->r == 0)
            return;
    }
    n->adding[0] = '\0';
    if (x->r != 0)
        fail_joining(n, &x->failure);
    free(x);
}

/* The first network that is to be joined; NULL: there is none. */
static struct model_network *find_unjoined(const struct networks *n)
{
    for (size_t i = 0; i < n->model->networks.n; i++) {
        struct model_network *net = model_network_at(n->model, i);

        if (!net->own && !net->leaving && !net->is_retired)
            return net;
    }
    return NULL;
}

bool networks_join(struct networks *n, nsec_t now)
{
    struct model_network *net = find_unjoined(n);
    struct err e = ERR_NULL;
    struct joining *x;

    if (!net || n->adding[0] || (n->is_serving && now < n->join_at))
        return false;
    if (check_joining(n, net, NULL, &e) != 0) {
        fail_joining(n, &e);
        return false;
    }
    x = calloc(1, sizeof(*x));
    if (!x)
        return false;
    x->networks = n;
    (void)snprintf(x->name, sizeof(x->name), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    memcpy(n->adding, x->name, sizeof(n->adding));
    if (!n->is_serving) {
        /* Nobody is served yet. */
        run_own_key(x);
        on_own_key(x);
    } else if (disk_work(n->disk, run_own_key, on_own_key, x) != 0) {
        n->adding[0] = '\0';
        free(x);
        return false;
    }
    return n->adding[0] != '\0';
}
