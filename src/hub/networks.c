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
#include "hub/hub_internal.h"
#include "sys/statefile.h"

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

/* ---- key files ------------------------------------------------------------------------------ */

int networks_key(struct hub *hub, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    struct x25519_secret secret = {{0}};
    struct x25519_public derived;
    char path[512];
    char *text = NULL;
    int r = statefile_read(hub__path(hub, path, "keys/%s.key", name), 256, &text, NULL, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT,
            "\"%s\", the key of network \"%s\", is missing: put a copy in its place", path, name);
    if (r != 0)
        return r;
    text[strcspn(text, "\n")] = '\0';
    if (x25519_secret_parse(&secret, text, NULL) != 0 || !x25519_derive_public(&secret, &derived) ||
        !x25519_public_equal(&derived, public))
        r = err_set(e, -EUCLEAN,
            "\"%s\" is not the key of network \"%s\" as the database knows it; it is left as it "
            "is: put a copy in its place",
            path, name);
    else
        *ret = secret;
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, strlen(text));
    free(text);
    return r;
}

static int make_key(
    struct hub *hub, const char *name, struct x25519_public *ret_public, struct err *e)
{
    struct x25519_secret secret;
    char text[X25519_BASE64_MAX];
    char path[512];
    int r;

    x25519_secret_make(&secret, &hub->rng);
    x25519_secret_write(&secret, text);
    if (!x25519_derive_public(&secret, ret_public))
        r = err_set(e, -ENOMEM, "no memory for a key");
    else
        r = statefile_replace(
            hub__path(hub, path, "keys/%s.key", name), text, strlen(text), 0600, e);
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, sizeof(text));
    return r;
}

static void remove_key(struct hub *hub, const char *name)
{
    char path[512];

    /* Left over, it harms nobody: a network of that name would get a new one. */
    (void)unlink(hub__path(hub, path, "keys/%s.key", name));
}

/* ---- the hub's own node --------------------------------------------------------------------- */

static void fill_hub(const struct hub *hub, struct node_hub *nh)
{
    *nh = (struct node_hub){.api_port = hub->api_port};
    hub_places_tell(nh, &hub->publics.here, &hub->publics.next);
}

/* @nh and the texts in the result are borrowed. */
static struct node own_node(
    const struct network *net, const struct x25519_public *key, struct node_hub *nh)
{
    struct node n = {.key = *key,
        .address4 = ipam_address(&net->cidr4, IPAM_HUB),
        .address6 = ipam_address(&net->cidr6, IPAM_HUB),
        .hub = nh};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", HUB__SELF);
    memcpy(n.meta.network, net->meta.name, sizeof(n.meta.network));
    return n;
}

static bool is_same_hub(const struct node_hub *a, const struct node_hub *b)
{
    if (a->n_endpoints != b->n_endpoints || a->n_names != b->n_names || a->api_port != b->api_port)
        return false;
    for (unsigned i = 0; i < a->n_names; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    for (unsigned i = 0; i < a->n_endpoints; i++)
        if (!endpoint_equal(&a->endpoints[i], &b->endpoints[i]))
            return false;
    return true;
}

static int refresh_one(struct hub *hub, struct model_network *net, nsec_t now, struct err *e)
{
    static const struct token_hash none;
    struct model_node *self = model_find_node(net, HUB__SELF);
    _cleanup_(freep) char *text = NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op;
    struct node_hub nh;
    struct node node;

    fill_hub(hub, &nh);
    if (self && self->pub.spec.hub && is_same_hub(self->pub.spec.hub, &nh))
        return 0;
    node = own_node(&net->pub.spec, &net->pub.public, &nh);
    text = record_node_encode(&node, &none);
    if (!text)
        return err_set(e, -ENOMEM, "no memory for the hub's own node");
    op = (struct store_op){.kind = STORE_OP_PUT,
        .key = record_key(key, RECORD_NODE, net->pub.spec.meta.name, HUB__SELF),
        .value = text,
        .expect = STORE_EXPECT_ANY};
    return model_commit(&hub->model, &op, 1, now, NULL, e);
}

int networks_refresh(struct hub *hub, nsec_t now, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < hub->model.networks.n; i++)
        r = refresh_one(hub, model_network_at(&hub->model, i), now, e);
    return r;
}

/* ---- adding --------------------------------------------------------------------------------- */

/* A block out of fd00::/8 that nobody else is likely to have (RFC 4193 section 3.2). */
static struct ip_prefix random_cidr6(const struct hub *hub)
{
    struct ip_prefix p = {.len = 64};

    rng_fill(&hub->rng, p.addr.b, 8);
    p.addr.b[0] = 0xfd;
    return p;
}

static struct network spec_of(const struct hub *hub, const struct network_request *rq)
{
    struct network n = {.cidr4 = rq->cidr4,
        .cidr6 = rq->cidr6,
        .topology = rq->topology,
        .mtu = rq->mtu,
        .keepalive = rq->keepalive};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", rq->name);
    if (n.cidr4.len == 0)
        (void)ip_prefix_parse(&n.cidr4, NETWORKS_CIDR4_DEFAULT, NULL);
    if (n.cidr6.len == 0)
        n.cidr6 = random_cidr6(hub);
    return n;
}

static int store_network(struct hub *hub, const struct network *spec,
    const struct x25519_public *public, nsec_t now, struct err *e)
{
    static const struct token_hash none;
    const char *name = spec->meta.name;
    char keys[3][RECORD_KEY_MAX];
    struct node_hub nh;
    struct node self = own_node(spec, public, &nh);
    _cleanup_(freep) char *network = record_network_encode(spec, public);
    _cleanup_(freep) char *ipam = record_ipam_encode(IPAM_HUB + 1, IPAM_HUB);
    _cleanup_(freep) char *node = NULL;
    struct store_op ops[3];

    fill_hub(hub, &nh);
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
        .key = record_key(keys[2], RECORD_NODE, name, HUB__SELF),
        .value = node,
        .expect = STORE_EXPECT_ANY};
    return model_commit(&hub->model, ops, 3, now, NULL, e);
}

int networks_add(struct hub *hub, const struct network_request *rq, nsec_t now,
    struct model_network **ret, struct err *e)
{
    struct network spec = spec_of(hub, rq);
    struct x25519_public public;
    struct model_network *net;
    int r;

    if (model_find_network(&hub->model, rq->name))
        return err_set(
            e, NETWORKS_E_EXISTS, "there is a network \"%s\" on this hub already", rq->name);
    /* Before anything is made: its key file is still there. */
    if (model_is_damaged(&hub->model, RECORD_NETWORK, rq->name, ""))
        return err_set(e, NETWORKS_E_EXISTS,
            "there is a network \"%s\" on this hub already, whose record is damaged and set aside",
            rq->name);
    r = make_key(hub, rq->name, &public, e);
    if (r == 0)
        r = store_network(hub, &spec, &public, now, e);
    if (r == STORE_E_CONFLICT)
        return err_set(
            e, NETWORKS_E_EXISTS, "there is a network \"%s\" on this hub already", rq->name);
    if (r != 0) {
        remove_key(hub, rq->name);
        return r;
    }
    net = model_find_network(&hub->model, rq->name);
    if (!net)
        return err_set(e, -EIO, "network \"%s\" was stored but cannot be read", rq->name);
    if (hub->is_running && !net->is_up) {
        struct err failure = net->failure;

        r = networks_remove(hub, net, now, e);
        if (r == 0 && e)
            *e = failure;
        return r == 0 ? failure.code : r;
    }
    *ret = net;
    return 0;
}

/* ---- removing ------------------------------------------------------------------------------- */

/* Operations that delete keys; as many as a commit takes. */
struct deletions {
    struct store_op *ops; /* owns the array */
    char (*keys)[RECORD_KEY_MAX];
    size_t n;
};

#define DELETIONS_MAX 1024

/* There are as many as a commit takes. */
#define COLLECTED 1

static void deletions_deinit(struct deletions *d)
{
    free(d->ops);
    free(d->keys);
}

static void add_deletion(
    struct deletions *d, enum record_kind kind, const char *network, const char *name)
{
    d->ops[d->n] = (struct store_op){.kind = STORE_OP_DELETE,
        .key = record_key(d->keys[d->n], kind, network, name),
        .expect = STORE_EXPECT_ANY};
    d->n++;
}

static int collect_item(void *ctx, const struct store_item *item)
{
    struct record_key k = record_key_parse(item->key);
    struct deletions *d = ctx;

    if (k.kind == RECORD_NODE && strcmp(k.name, HUB__SELF) == 0)
        return 0;
    if (d->n == DELETIONS_MAX)
        return COLLECTED;
    /* The key as it is: a damaged one may have other parts than are expected. */
    add_deletion(d, RECORD_NONE, item->key, "");
    return 0;
}

/*
 * Some of what the store has below the network, nodes first; the hub's own node goes with the
 * network. From the store and not from the model, which knows nothing of what is damaged.
 */
static int collect(struct deletions *d, struct store *store, const char *network, struct err *e)
{
    static const enum record_kind kinds[] = {RECORD_NODE, RECORD_REPORT, RECORD_EDGE};
    char prefix[RECORD_KEY_MAX];
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(*kinds); i++) {
        (void)snprintf(prefix, sizeof(prefix), "%s%s/", record_prefix(kinds[i]), network);
        r = store_list(store, prefix, collect_item, d, NULL, e);
    }
    return r == COLLECTED ? 0 : r;
}

static int remove_all(struct hub *hub, const char *name, nsec_t now, struct err *e)
{
    _cleanup_(deletions_deinit) struct deletions d = {
        .ops = calloc(DELETIONS_MAX, sizeof(*d.ops)),
        .keys = calloc(DELETIONS_MAX, sizeof(*d.keys)),
    };
    int r = 0;

    if (!d.ops || !d.keys)
        return err_set(e, -ENOMEM, "no memory to remove network \"%s\"", name);
    /* In pieces, for a large network does not fit a commit; the network itself goes last, so what
     * a crash in between leaves is a smaller network. */
    do {
        d.n = 0;
        r = collect(&d, hub->store, name, e);
        if (r == 0 && d.n > 0)
            r = model_commit(&hub->model, d.ops, d.n, now, NULL, e);
    } while (r == 0 && d.n > 0);
    if (r != 0)
        return r;
    d.n = 0;
    add_deletion(&d, RECORD_NODE, name, HUB__SELF);
    add_deletion(&d, RECORD_IPAM, name, "");
    add_deletion(&d, RECORD_NETWORK, name, "");
    return model_commit(&hub->model, d.ops, d.n, now, NULL, e);
}

int networks_remove(struct hub *hub, struct model_network *net, nsec_t now, struct err *e)
{
    char name[OBJECT_NAME_MAX + 1];
    int r;

    memcpy(name, net->pub.spec.meta.name, sizeof(name));
    hub->reason = "its network was removed";
    r = remove_all(hub, name, now, e);
    hub->reason = NULL;
    if (r == 0)
        remove_key(hub, name);
    return r;
}
