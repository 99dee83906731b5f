/* networks.c - see networks.h. */
#include "networks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/audit/audit.h"
#include "hub/model/ipam.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks_internal.h"
#include "hub/networks/publics.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/statefile.h"

/* How often a commit that conflicts is made again. */
#define TRIES 8

void networks_interface(const char *prefix, const char *name, char ret[static 16])
{
    char whole[128];
    int n = snprintf(whole, sizeof(whole), "%s-%s", prefix, name);

    if (n < 16) {
        memcpy(ret, whole, (size_t)n + 1);
        return;
    }
    /* A fixed seed: the name has to be the same after every start. */
    (void)snprintf(
        ret, 16, "%.10s-%04x", whole, (unsigned)(hash_bytes(0, name, strlen(name)) & 0xffff));
}

void networks_init(struct networks *n, struct disk_works *disk, struct model *model,
    const struct publics *publics, const char *state_dir, const struct rng *rng)
{
    *n = (struct networks){
        .disk = disk, .model = model, .publics = publics, .state_dir = state_dir, .rng = *rng};
}

void networks_deinit(struct networks *n)
{
    json_decref(n->held_keys);
    n->held_keys = NULL;
}

/* ---- key files ------------------------------------------------------------------------------ */

const char *networks__key_path(
    const struct networks *n, char buf[static NETWORKS__PATH_ROOM], const char *name)
{
    (void)snprintf(buf, NETWORKS__PATH_ROOM, "%s/keys/%s.key", n->state_dir, name);
    return buf;
}

int networks_key(const struct networks *n, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    struct x25519_secret secret = {{0}};
    struct x25519_public derived;
    char path[NETWORKS__PATH_ROOM];
    char *text = NULL;
    int r = statefile_read(networks__key_path(n, path, name), 256, &text, NULL, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT,
            "\"%s\", the key of hub \"%s\" in network \"%s\", is missing: put a copy in its place, "
            "or, "
            "if that is another hub, give this one another name (--name)",
            path, n->model->self, name);
    if (r != 0)
        return r;
    text[strcspn(text, "\n")] = '\0';
    if (x25519_secret_parse(&secret, text, NULL) != 0 || !x25519_derive_public(&secret, &derived) ||
        !x25519_public_equal(&derived, public))
        r = err_set(e, -EUCLEAN,
            "\"%s\" is not the key of hub \"%s\" in network \"%s\" as the database knows it; it is "
            "left as it is: put a copy in its place, or, if that is another hub, give this one "
            "another name (--name)",
            path, n->model->self, name);
    else
        *ret = secret;
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, strlen(text));
    free(text);
    return r;
}

int networks__make_key(
    const struct networks *n, const char *name, struct x25519_public *ret_public, struct err *e)
{
    struct x25519_secret secret;
    char text[X25519_BASE64_MAX];
    char path[NETWORKS__PATH_ROOM];
    int r;

    x25519_secret_make(&secret, &n->rng);
    x25519_secret_write(&secret, text);
    if (!x25519_derive_public(&secret, ret_public))
        r = err_set(e, -ENOMEM, "no memory for a key");
    else
        r = statefile_replace(networks__key_path(n, path, name), text, strlen(text), 0600, e);
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, sizeof(text));
    return r;
}

void networks_forget(struct networks *n, const char *name)
{
    char path[NETWORKS__PATH_ROOM];

    if (n->held_keys)
        json_array_append_new(n->held_keys, json_string(name));
    else
        /* If it cannot be removed, no harm is done: a network of that name gets a new key. */
        (void)unlink(networks__key_path(n, path, name));
}

void networks_hold_keys(struct networks *n, bool hold)
{
    json_t *held = n->held_keys;
    const json_t *name;
    size_t i;

    n->held_keys = hold ? json_array() : NULL;
    json_array_foreach(held, i, name) {
        /* The file stays if a network of that name was made meanwhile: it is that one's now. */
        if (!hold && !model_find_network(n->model, json_string_value(name)) &&
            strcmp(n->adding, json_string_value(name)) != 0)
            networks_forget(n, json_string_value(name));
    }
    json_decref(held);
}

/* ---- the hub's own node --------------------------------------------------------------------- */

void networks__fill_hub(const struct networks *n, struct node_hub *nh)
{
    *nh = (struct node_hub){.api_port = n->api_port, .has_tls_pin = n->tls_pin != NULL};
    if (n->tls_pin)
        nh->tls_pin = *n->tls_pin;
    hub_places_tell(nh, &n->publics->here, &n->publics->next);
}

struct node networks__own_node(const struct networks *n, const struct network *net,
    const struct x25519_public *key, uint32_t number, struct node_hub *nh)
{
    struct node node = {.key = *key,
        .address4 = ipam_address(&net->cidr4, number),
        .address6 = ipam_address(&net->cidr6, number),
        .hub = nh};

    memcpy(node.meta.name, n->model->self, sizeof(node.meta.name));
    memcpy(node.meta.network, net->meta.name, sizeof(node.meta.network));
    return node;
}

static bool is_same_hub(const struct node_hub *a, const struct node_hub *b)
{
    if (a->n_endpoints != b->n_endpoints || a->n_names != b->n_names || a->api_port != b->api_port)
        return false;
    if (a->has_tls_pin != b->has_tls_pin ||
        memcmp(&a->tls_pin, &b->tls_pin, sizeof(a->tls_pin)) != 0)
        return false;
    for (unsigned i = 0; i < a->n_names; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    for (unsigned i = 0; i < a->n_endpoints; i++)
        if (!endpoint_equal(&a->endpoints[i], &b->endpoints[i]))
            return false;
    return true;
}

static void on_refreshed(void *ctx, const struct store_answer *a)
{
    struct networks *n = ctx;

    if (a->r == 0)
        return;
    /* networks_refresh() returns it, and tries again. */
    n->refresh_failure = *a->e;
    /* A network that was changed or removed meanwhile is no failure. */
    if (n->is_serving && a->r != STORE_E_CONFLICT)
        log_warning("nodes are not told where this hub is now: %s", err_text(a->e));
}

static int refresh_one(struct networks *n, struct model_network *net, nsec_t now, struct err *e)
{
    const char *name = net->pub.spec.meta.name;
    _cleanup_(freep) char *text = NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op;
    struct node_hub nh;
    struct node node;

    if (net->leaving || !net->own)
        return 0;
    networks__fill_hub(n, &nh);
    if (is_same_hub(net->own->pub.spec.hub, &nh))
        return 0;
    /* Labels, and what else an administrator has said of it, stay. */
    node = net->own->pub.spec;
    nh.rendezvous_epoch = node.hub->rendezvous_epoch;
    node.hub = &nh;
    text = record_node_encode(&node, &net->own->token);
    if (!text)
        return err_set(e, -ENOMEM, "no memory for the hub's own node");
    op = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(key, RECORD_NODE, name, n->model->self),
        .value = text,
        .expect = node.meta.resource_version};
    return model_commit(n->model, &op, 1, now, on_refreshed, n, e);
}

int networks_refresh(struct networks *n, nsec_t now, struct err *e)
{
    int r = 0;

    n->refresh_failure = (struct err)ERR_NULL;
    for (size_t i = 0; r == 0 && i < n->model->networks.n; i++)
        r = refresh_one(n, model_network_at(n->model, i), now, e);
    if (r != 0 && e)
        n->refresh_failure = *e;
    return r;
}

/* ---- adding --------------------------------------------------------------------------------- */

/* A block out of fd00::/8 that nobody else is likely to have (RFC 4193 section 3.2). */
static struct ip_prefix random_cidr6(const struct networks *n)
{
    struct ip_prefix p = {.len = 64};

    rng_fill(&n->rng, p.addr.b, 8);
    p.addr.b[0] = 0xfd;
    return p;
}

static struct network spec_of(const struct networks *n, const struct network_request *rq)
{
    struct network spec = {.cidr4 = rq->cidr4,
        .cidr6 = rq->cidr6,
        .topology = rq->topology,
        .mtu = rq->mtu,
        .keepalive = rq->keepalive};

    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "%s", rq->name);
    if (spec.cidr4.len == 0)
        (void)ip_prefix_parse(&spec.cidr4, NETWORKS_CIDR4_DEFAULT, NULL);
    if (spec.cidr6.len == 0)
        spec.cidr6 = random_cidr6(n);
    return spec;
}

static int exists(const char *name, struct err *e)
{
    return err_set(e, NETWORKS_E_EXISTS, "there is a network \"%s\" on this hub already", name);
}

static void on_stored(void *ctx, const struct store_answer *a);

/* A network that is being made. */
struct adding {
    struct networks *networks; /* pins */
    char name[NAME_MAX_LEN + 1];
    struct audit_by by; /* who makes it */
    networks_added_fn done;
    void *ctx; /* pins */
    struct network spec;
    struct x25519_public public;
    unsigned n_tries;   /* commits that have conflicted */
    int r;              /* of making the key */
    struct err failure; /* of that; or why it is taken back */
};

static int store_network(struct adding *x, struct err *e)
{
    static const struct token_hash none;
    const char *name = x->spec.meta.name;
    char keys[3][RECORD_KEY_MAX];
    struct network_maker maker = {.key = x->public};
    struct node_hub nh;
    struct node self = networks__own_node(x->networks, &x->spec, &x->public, IPAM_HUB, &nh);
    _cleanup_(freep) char *network = NULL;
    _cleanup_(freep) char *ipam = record_ipam_encode(IPAM_HUB + 1, IPAM_HUB);
    _cleanup_(freep) char *node = NULL;
    struct store_op ops[3];

    memcpy(maker.name, self.meta.name, sizeof(maker.name));
    network = record_network_encode(&x->spec, &maker);
    networks__fill_hub(x->networks, &nh);
    node = record_node_encode(&self, &none);
    if (!network || !ipam || !node)
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", name);
    ops[0] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[0], RECORD_NETWORK, name, ""),
        .value = network,
        .expect = STORE_EXPECT_ABSENT};
    ops[1] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[1], RECORD_IPAM, name, ""),
        .value = ipam,
        .expect = STORE_EXPECT_ANY};
    ops[2] = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(keys[2], RECORD_NODE, name, self.meta.name),
        .value = node,
        .expect = STORE_EXPECT_ANY};
    return model_commit(x->networks->model, ops, 3, clock_now(), on_stored, x, e);
}

/* A network that cannot be served was removed again: tell who wanted it why. */
static void on_taken_back(void *ctx, int r, const struct err *e)
{
    struct adding *x = ctx;

    if (r != 0)
        x->done(x->ctx, r, NULL, e);
    else
        x->done(x->ctx, x->failure.code, NULL, &x->failure);
    free(x);
}

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct adding *x = ctx;
    struct networks *n = x->networks;
    struct model_network *net = model_find_network(n->model, x->name);
    struct err e = *a->e;
    int r = a->r;

    /* Another hub may have written an entry of the audit log with the same ID. */
    if (r == STORE_E_CONFLICT && !net && x->n_tries++ < TRIES) {
        audit_act(n->model->audit, x->by.actor, &x->by.from);
        r = store_network(x, &e);
        audit_act_hub(n->model->audit);
        if (r == 0)
            return;
    }
    n->adding[0] = '\0';
    if (r == STORE_E_CONFLICT)
        r = exists(x->name, &e);
    else if (r > 0)
        r = err_set(
            &e, -EIO, "whether network \"%s\" was made is not known: look, and try again", x->name);
    else if (r != 0)
        networks_forget(n, x->name);
    if (r == 0 && !net)
        r = err_set(&e, -EIO, "network \"%s\" was stored but cannot be read", x->name);
    if (r == 0 && n->is_serving && !net->is_up) {
        x->failure = net->failure;
        audit_act(n->model->audit, x->by.actor, &x->by.from);
        r = networks_remove(n, net, on_taken_back, x, &e);
        audit_act_hub(n->model->audit);
        if (r == 0)
            return;
    }
    x->done(x->ctx, r, r == 0 ? net : NULL, &e);
    free(x);
}

static struct adding *new_adding(
    struct networks *n, const char *name, networks_added_fn done, void *ctx)
{
    struct adding *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->networks = n;
    x->by = n->model->audit->by;
    x->done = done;
    x->ctx = ctx;
    (void)snprintf(x->name, sizeof(x->name), "%s", name);
    return x;
}

static void run_make_key(void *arg)
{
    struct adding *x = arg;

    x->r = networks__make_key(x->networks, x->name, &x->public, &x->failure);
}

/* The key file is written: now commit the network's record. */
static void on_key(void *arg)
{
    struct adding *x = arg;
    struct networks *n = x->networks;

    if (x->r == 0) {
        audit_act(n->model->audit, x->by.actor, &x->by.from);
        x->r = store_network(x, &x->failure);
        audit_act_hub(n->model->audit);
        if (x->r == 0)
            return;
    }
    n->adding[0] = '\0';
    networks_forget(n, x->name);
    x->done(x->ctx, x->r, NULL, &x->failure);
    free(x);
}

int networks_add(struct networks *n, const struct network_request *rq, networks_added_fn done,
    void *ctx, struct err *e)
{
    struct adding *x;

    if (model_find_network(n->model, rq->name))
        return exists(rq->name, e);
    /* Checked before anything is made: the damaged network still has its key file. */
    if (model_is_damaged(n->model, RECORD_NETWORK, rq->name, ""))
        return err_set(e, NETWORKS_E_EXISTS,
            "there is a network \"%s\" on this hub already, whose record is damaged and set aside",
            rq->name);
    /* One at a time: each has a key file, of which the record has to know. */
    if (n->adding[0])
        return err_set(e, -EAGAIN, "network \"%s\" is being made just now: try again", n->adding);
    x = new_adding(n, rq->name, done, ctx);
    if (!x)
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", rq->name);
    x->spec = spec_of(n, rq);
    (void)snprintf(n->adding, sizeof(n->adding), "%s", rq->name);
    if (!n->is_serving) {
        /* Nobody is served yet. */
        run_make_key(x);
        on_key(x);
    } else if (disk_work(n->disk, run_make_key, on_key, x) != 0) {
        n->adding[0] = '\0';
        free(x);
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", rq->name);
    }
    return 0;
}
