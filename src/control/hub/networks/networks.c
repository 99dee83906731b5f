/* networks.c - see networks.h. */
#include "networks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "hub/audit/audit.h"
#include "hub/model/ipam.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/public_addresses.h"
#include "hub/traffic/traffic_book.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "store/store.h"

/* How long to wait after a network could not be joined. */
#define NETWORKS_JOIN_EACH (5 * NSEC_PER_SEC)

/* Room for the path of a key. */
#define PATH_SIZE 512

/* How often a commit that conflicts is made again. */
#define TRIES 8

/* ---- joining: this hub becomes a node of a network that another one has made ----------------- */

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
    const struct model_network *net = model_find_network(n->model, x->name);

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
        n += model_node_at(net, i)->spec.hub != NULL;
    return n;
}

/* May this hub join the network with that key? 0 or negative errno with words. */
static int check_joining(const struct networks *n, const struct model_network *net,
    const struct x25519_public *key, struct err *e)
{
    const char *name = net->spec.meta.name;
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
            name, holder->spec.meta.name, holder->spec.meta.name);
    if (count_hubs(net) >= NETWORKS_HUBS_MAX)
        return err_set(
            e, -ENOSPC, "network \"%s\" has %d hubs, and no more fit", name, NETWORKS_HUBS_MAX);
    return 0;
}

/* What this hub's own nodes say of it. */
static void fill_hub(const struct networks *n, struct node_hub *nh)
{
    *nh = (struct node_hub){.api_port = n->api_port, .has_tls_pin = n->tls_pin != NULL};
    if (n->tls_pin)
        nh->tls_pin = *n->tls_pin;
    hub_places_tell(nh, &n->public_addresses->here, &n->public_addresses->next);
}

/* This hub's own node with host number @number; @nh is borrowed. */
static struct node own_node(const struct networks *n, const struct network *net,
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

/* Commit this hub's own node, with an address out of the network's record, as for any node. */
static int store_self(struct joining *x, const struct model_network *net, struct err *e)
{
    static const struct token_hash none;
    const struct networks *n = x->networks;
    const struct ipam *ipam = &net->ipam;
    const char *name = net->spec.meta.name;
    /* The hub that made the network has the first number, also when it comes back after it was
     * removed. */
    struct ip_addr first = ipam_address(&net->spec.cidr4, IPAM_HUB);
    bool is_first =
        strcmp(net->maker.name, n->model->self) == 0 && !model_find_address(net, &first);
    uint32_t number = is_first ? IPAM_HUB : model_next_number(net);
    _cleanup_(freep) char *cursor = NULL;
    _cleanup_(freep) char *text = NULL;
    char keys[3][RECORD_KEY_MAX];
    struct store_op ops[3];
    struct node_hub nh;
    struct node node;

    if (number == 0)
        return err_set(
            e, -ENOSPC, "network \"%s\" has no address left for hub \"%s\"", name, n->model->self);
    fill_hub(n, &nh);
    node = own_node(n, &net->spec, &x->public, number, &nh);
    text = record_node_encode(&node, &none);
    cursor = record_ipam_encode(
        number < ipam->next ? ipam->next : number + 1, number > ipam->high ? number : ipam->high);
    if (!text || !cursor)
        return err_set(e, -ENOMEM, "no memory for the hub's own node");
    ops[0] = (struct store_op){.kind = STORE_OP_CHECK,
        .key = record_key(keys[0], RECORD_NETWORK, name, ""),
        .expect = net->spec.meta.resource_version};
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

/* The path of this hub's key in that network. Returns @buf. */
static const char *key_path(const struct networks *n, char buf[static PATH_SIZE], const char *name)
{
    (void)snprintf(buf, PATH_SIZE, "%s/keys/%s.key", n->state_dir, name);
    return buf;
}

/* Make a key and write its file, which waits for the disk. */
static int make_key(
    const struct networks *n, const char *name, struct x25519_public *ret_public, struct err *e)
{
    struct x25519_secret secret;
    char text[X25519_BASE64_MAX];
    char path[PATH_SIZE];
    int r;

    x25519_secret_make(&secret, &n->rng);
    x25519_secret_write(&secret, text);
    if (!x25519_derive_public(&secret, ret_public))
        r = err_set(e, -ENOMEM, "no memory for a key");
    else
        r = statefile_replace(key_path(n, path, name), text, strlen(text), 0600, e);
    secret_wipe(&secret, sizeof(secret));
    secret_wipe(text, sizeof(text));
    return r;
}

int networks_read_key(
    const char *path, struct x25519_secret *ret, struct x25519_public *ret_public, struct err *e)
{
    char *text = NULL;
    int r = statefile_read(path, 256, &text, NULL, e);

    if (r != 0)
        return r;
    text[strcspn(text, "\n")] = '\0';
    if (x25519_secret_parse(ret, text, NULL) != 0 || !x25519_derive_public(ret, ret_public))
        r = NETWORKS_E_DAMAGED;
    secret_wipe(text, strlen(text));
    free(text);
    return r;
}

/*
 * Find the key that this hub has had in that network before, or make one. One that is there is
 * never replaced: the store may name it, or may come to, by a commit of which it is not known what
 * became.
 */
static int find_key(const struct networks *n, const char *name, struct x25519_public *ret_public,
    bool *ret_made, struct err *e)
{
    struct x25519_secret secret = {{0}};
    char path[PATH_SIZE];
    int r = networks_read_key(key_path(n, path, name), &secret, ret_public, e);

    secret_wipe(&secret, sizeof(secret));
    *ret_made = r == STATEFILE_E_ABSENT;
    if (r == STATEFILE_E_ABSENT)
        r = make_key(n, name, ret_public, e);
    else if (r == NETWORKS_E_DAMAGED)
        r = err_set(e, -EUCLEAN,
            "\"%s\", the key of hub \"%s\" in network \"%s\", is no key: put a copy in its place, "
            "or remove it, and the hub makes another one",
            path, n->model->self, name);
    return r;
}

static void run_own_key(void *arg)
{
    struct joining *x = arg;
    bool is_made;

    x->r = find_key(x->networks, x->name, &x->public, &is_made, &x->failure);
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

bool networks_join(struct networks *n, nsec_t now)
{
    const struct model_network *net = NULL;
    struct err e = ERR_NULL;
    struct joining *x;

    for (size_t i = 0; !net && i < n->model->networks.n; i++) {
        net = model_network_at(n->model, i);
        if (net->own || net->leaving || net->is_retired)
            net = NULL;
    }
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
    (void)snprintf(x->name, sizeof(x->name), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
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

/* ---- removing: a network goes, in pieces ----------------------------------------------------- */

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
    const struct model_network *net = model_find_network(x->networks->model, x->name);

    if (net)
        model_set_network_leaving(net, NULL);
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
        const struct node *node = &model_node_at(net, i)->spec;

        if (node->hub)
            (void)record_key(keys[n++], RECORD_NODE, x->name, node->meta.name);
    }
    for (size_t i = 0; i < n; i++)
        ops[i] =
            (struct store_op){.kind = STORE_OP_DELETE, .key = keys[i], .expect = STORE_EXPECT_ANY};
    delete (x, ops, n);
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
        const struct model_node *node =
            k.kind == RECORD_NODE
                ? model_find_node(model_find_network(x->networks->model, x->name), k.name)
                : NULL;

        /* The node of a hub goes together with the network. The key as it is: a damaged one may
         * have other parts than are expected. */
        if (!node || !node->spec.hub)
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

int networks_remove(struct networks *n, const struct model_network *net, networks_removed_fn done,
    void *ctx, struct err *e)
{
    struct removing *x;

    if (net->leaving)
        return err_set(e, -EAGAIN, "network \"%s\" is being removed already", net->spec.meta.name);
    x = calloc(1, sizeof(*x));
    if (!x)
        return err_set(e, -ENOMEM, "no memory to remove network \"%s\"", net->spec.meta.name);
    *x = (struct removing){.networks = n, .by = n->model->audit->by, .done = done, .ctx = ctx};
    (void)snprintf(x->name, sizeof(x->name), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
    model_set_network_leaving(net, MODEL_NETWORK_REMOVED);
    go_on(x);
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

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
    const struct public_addresses *public_addresses, const char *state_dir, const struct rng *rng)
{
    *n = (struct networks){.disk = disk,
        .model = model,
        .public_addresses = public_addresses,
        .state_dir = state_dir,
        .rng = *rng};
}

/* ---- key files ------------------------------------------------------------------------------ */

int networks_key(const struct networks *n, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    struct x25519_secret secret = {{0}};
    struct x25519_public derived;
    char path[PATH_SIZE];
    int r = networks_read_key(key_path(n, path, name), &secret, &derived, e);

    if (r == STATEFILE_E_ABSENT)
        r = err_set(e, -ENOENT,
            "\"%s\", the key of hub \"%s\" in network \"%s\", is missing: put a copy in its place, "
            "or, "
            "if that is another hub, give this one another name (--name)",
            path, n->model->self, name);
    else if (r == NETWORKS_E_DAMAGED || (r == 0 && !x25519_public_equal(&derived, public)))
        r = err_set(e, -EUCLEAN,
            "\"%s\" is not the key of hub \"%s\" in network \"%s\" as the database knows it; it is "
            "left as it is: put a copy in its place, or, if that is another hub, give this one "
            "another name (--name)",
            path, n->model->self, name);
    else if (r == 0)
        *ret = secret;
    secret_wipe(&secret, sizeof(secret));
    return r;
}

void networks_forget(struct networks *n, const char *name)
{
    char path[PATH_SIZE];

    if (n->held_keys)
        json_array_append_new(n->held_keys, json_string(name));
    else
        /* If it cannot be removed, no harm is done: a network of that name takes it over. */
        (void)unlink(key_path(n, path, name));
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
    /* The hub tries again a second later, also when somebody else has changed the node. */
    n->refresh_failure = *a->e;
    n->refresh_failure.code = a->r;
    /* A network that was changed or removed meanwhile is no failure. */
    if (n->is_serving && a->r != STORE_E_CONFLICT)
        log_warning("nodes are not told where this hub is now: %s", err_text(a->e));
}

static int refresh_one(
    struct networks *n, const struct model_network *net, nsec_t now, struct err *e)
{
    const char *name = net->spec.meta.name;
    _cleanup_(freep) char *text = NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op;
    struct node_hub nh;
    struct node node;

    if (net->leaving || !net->own)
        return 0;
    fill_hub(n, &nh);
    if (is_same_hub(net->own->spec.hub, &nh))
        return 0;
    /* Labels, and what else an administrator has said of it, stay. */
    node = net->own->spec;
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

static void fill_blocks(const struct networks *n, struct network *spec)
{
    if (spec->cidr4.len == 0)
        (void)ip_prefix_parse(&spec->cidr4, NETWORKS_CIDR4_DEFAULT, NULL);
    if (spec->cidr6.len == 0) {
        /* A block out of fd00::/8 that nobody else is likely to have (RFC 4193 section 3.2). */
        spec->cidr6 = (struct ip_prefix){.len = 64};
        rng_fill(&n->rng, spec->cidr6.addr.b, 8);
        spec->cidr6.addr.b[0] = 0xfd;
    }
}

static int exists(const char *name, struct err *e)
{
    return err_set(e, NETWORKS_E_EXISTS, "there is a network \"%s\" on this hub already", name);
}

static void on_stored(void *ctx, const struct store_answer *a);

/* A network that is being made. */
struct adding {
    struct networks *networks; /* pins */
    struct audit_by by;        /* who makes it */
    networks_added_fn done;
    void *ctx; /* pins */
    struct network spec;
    struct x25519_public public;
    bool made_key;      /* its file was not there before */
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
    struct node self = own_node(x->networks, &x->spec, &x->public, IPAM_HUB, &nh);
    _cleanup_(freep) char *network = NULL;
    _cleanup_(freep) char *ipam = record_ipam_encode(IPAM_HUB + 1, IPAM_HUB);
    _cleanup_(freep) char *node = NULL;
    struct store_op ops[3];

    memcpy(maker.name, self.meta.name, sizeof(maker.name));
    network = record_network_encode(&x->spec, &maker);
    fill_hub(x->networks, &nh);
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

/* It is certain that this commit was not done; of one before it that may not be. */
static void forget_made_key(const struct adding *x)
{
    if (x->made_key)
        networks_forget(x->networks, x->spec.meta.name);
}

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct adding *x = ctx;
    struct networks *n = x->networks;
    const struct model_network *net = model_find_network(n->model, x->spec.meta.name);
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
        r = exists(x->spec.meta.name, &e);
    else if (r > 0)
        r = err_set(&e, -EIO, "whether network \"%s\" was made is not known: look, and try again",
            x->spec.meta.name);
    else if (r != 0)
        forget_made_key(x);
    if (r == 0 && !net)
        r = err_set(&e, -EIO, "network \"%s\" was stored but cannot be read", x->spec.meta.name);
    if (r == 0 && n->is_serving && !net->served->is_up) {
        x->failure = net->own ? net->served->failure : net->key_failure;
        audit_act(n->model->audit, x->by.actor, &x->by.from);
        r = networks_remove(n, net, on_taken_back, x, &e);
        audit_act_hub(n->model->audit);
        if (r == 0)
            return;
    }
    x->done(x->ctx, r, r == 0 ? net : NULL, &e);
    free(x);
}

static void run_find_key(void *arg)
{
    struct adding *x = arg;

    x->r = find_key(x->networks, x->spec.meta.name, &x->public, &x->made_key, &x->failure);
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
    forget_made_key(x);
    x->done(x->ctx, x->r, NULL, &x->failure);
    free(x);
}

int networks_add(struct networks *n, const struct network *wanted, networks_added_fn done,
    void *ctx, struct err *e)
{
    const char *name = wanted->meta.name;
    struct adding *x;

    if (model_find_network(n->model, name))
        return exists(name, e);
    /* Checked before anything is made: the damaged network still has its key file. */
    if (model_is_damaged(n->model, RECORD_NETWORK, name, ""))
        return err_set(e, NETWORKS_E_EXISTS,
            "there is a network \"%s\" on this hub already, whose record is damaged and set aside",
            name);
    /* One at a time: each has a key file, of which the record has to know. */
    if (n->adding[0])
        return err_set(e, -EAGAIN, "network \"%s\" is being made just now: try again", n->adding);
    x = calloc(1, sizeof(*x));
    if (!x)
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", name);
    *x = (struct adding){
        .networks = n, .by = n->model->audit->by, .done = done, .ctx = ctx, .spec = *wanted};
    fill_blocks(n, &x->spec);
    (void)snprintf(n->adding, sizeof(n->adding), "%.*s", NAME_MAX_LEN, name);
    if (!n->is_serving) {
        /* Nobody is served yet. */
        run_find_key(x);
        on_key(x);
    } else if (disk_work(n->disk, run_find_key, on_key, x) != 0) {
        n->adding[0] = '\0';
        free(x);
        return err_set(e, -ENOMEM, "no memory for network \"%s\"", name);
    }
    return 0;
}
