/* enrol.c - see enrol.h. */
#include "enrol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/node_routes.h"
#include "mesh/reserved.h"

/* Tries when somebody else changed the same keys, and names that are tried. */
#define RETRIES 8

/* Beside ENROL_E_*: somebody else was quicker; what they did has been taken in, so try again. */
#define RACED 100

/* What is kept of a token after its end, so that the sentence can say "expired". The lease counts
 * from the start of the hub, so it may be longer, never shorter. */
#define TOKEN_LINGER_S 86400

void enrol_init(struct enrol *en, struct model *model, const struct rng *rng)
{
    *en = (struct enrol){.model = model, .rng = *rng};
    limiter_init(&en->limiter, rng_u64(rng));
}

void enrol_deinit(struct enrol *en)
{
    limiter_deinit(&en->limiter);
}

/* The network and token that @rq speaks of, if it may enter at all. */
static int admit(struct enrol *en, const struct token_hash *hash, int64_t wall_s,
    struct model_token **ret_token, struct model_network **ret_net, struct err *e)
{
    struct model_token *t = model_find_token(en->model, hash);
    struct model_network *net;

    if (!t)
        return err_set(e, ENROL_E_DENIED,
            "the hub does not know this token: it was made by another hub, or ended long ago");
    net = model_find_network(en->model, t->record.network);
    if (!net || !x25519_public_equal(&net->pub.public, &t->record.hub_key))
        return err_set(e, ENROL_E_GONE, "network \"%s\" of this token does not exist any more",
            t->record.network);
    if (t->record.expires <= wall_s)
        return err_set(e, ENROL_E_DENIED,
            "the token expired %" PRId64 " s ago, by the hub's clock: make a new one with \"weft "
            "token new --network %s\"",
            wall_s - t->record.expires, t->record.network);
    *ret_token = t;
    *ret_net = net;
    return 0;
}

/* Was @proof made by who has the secret of the key? @node: who has that key already, or NULL. */
static bool is_proven(struct model_network *net, struct model_node *node,
    const struct enrol_request *rq, const struct enrol_proof *proof, nsec_t now)
{
    struct member_proof_key own = {{0}};
    const struct member_proof_key *key = NULL;
    bool ok;

    if (node)
        key = proof_key(node, now);
    else if (member_proof_key_make(&own, &net->pub.secret, &rq->key, &rq->key))
        key = &own;
    ok = key && member_proof_verify(&proof->proof, key, &proof->request);
    secret_wipe(&own, sizeof(own));
    return ok;
}

/* A node of this key is there already: is it the same machine asking again? */
static int again(struct model_node *node, const struct enrol_request *rq, bool proven,
    const struct token_hash *hash, struct model_node **ret, struct err *e)
{
    if (node->pub.spec.hub)
        return err_set(e, -EINVAL, "the public key is the hub's own");
    if (!proven)
        return err_set(e, ENROL_E_TAKEN,
            "a node of network \"%s\" has this public key already, and the request does not prove "
            "to come from it",
            node->net->pub.spec.meta.name);
    if (!secret_equal(node->token.b, hash->b, sizeof(hash->b)))
        return err_set(e, ENROL_E_TAKEN,
            "this machine's key is that of node \"%s\" already: \"weft leave\" on it, or \"weft "
            "node rm %s\" on the hub, makes room",
            node->pub.spec.meta.name, node->pub.spec.meta.name);
    if (rq->name[0] && strcmp(rq->name, node->pub.spec.meta.name) != 0)
        return err_set(e, ENROL_E_TAKEN, "this machine is node \"%s\" already, not \"%s\"",
            node->pub.spec.meta.name, rq->name);
    *ret = node;
    return 0;
}

/* Has another node that name, or the record of one that cannot be read? */
static bool is_taken(const struct model_network *net, const char *name)
{
    return model_find_node(net, name) ||
           model_is_damaged(net->model, RECORD_NODE, net->pub.spec.meta.name, name);
}

/* May a new node be called that? */
static int check_name(const struct model_network *net, const char *name, struct err *e)
{
    int r = reserved_check(name, e);

    if (r == 0 && is_taken(net, name))
        return err_set(e, ENROL_E_TAKEN,
            "network \"%s\" has a node \"%s\" already: choose another name, or, if that "
            "machine is gone, \"weft node rm %s --network %s\" on the hub makes room",
            net->pub.spec.meta.name, name, name, net->pub.spec.meta.name);
    return r;
}

static int choose_name(struct enrol *en, const struct model_network *net,
    const struct enrol_request *rq, char name[NAME_MAX_LEN + 1], struct err *e)
{
    if (rq->name[0]) {
        (void)snprintf(name, NAME_MAX_LEN + 1, "%s", rq->name);
        return check_name(net, name, e);
    }
    for (int i = 0; i < RETRIES; i++) {
        /* Longer when there are many, so that a free one is found at once. */
        (void)snprintf(name, NAME_MAX_LEN + 1, net->nodes.n < 1000 ? "node-%04x" : "node-%08x",
            net->nodes.n < 1000 ? rng_u32(&en->rng) & 0xffff : rng_u32(&en->rng));
        if (!is_taken(net, name))
            return 0;
    }
    return err_set(e, ENROL_E_TAKEN, "no free name was found; give one with --name");
}

static json_t *address_text(const struct ip_prefix *cidr, uint32_t n)
{
    struct ip_addr a = ipam_address(cidr, n);
    char text[IP_ADDR_TEXT_MAX];

    return json_string(ip_addr_format(&a, text));
}

/* What is known of a node before it has an address. */
struct newcomer {
    const struct x25519_public *key; /* borrowed, like all of it */
    const char *name;
    const json_t *labels;           /* NULL: none */
    const struct subnets *routes;   /* that it asks for; NULL: none */
    const struct subnets *admitted; /* of those, what it may have; NULL: all */
    bool ephemeral;
    bool relay;
    bool stock;
};

/* Of the routes that are asked for, those that are admitted. 0, ENROL_E_TAKEN or -EINVAL. */
static int admit_routes(
    struct subnets *ret, const struct model_network *net, const struct newcomer *who, struct err *e)
{
    struct subnets admitted = SUBNETS_NULL;
    int r = 0;

    for (unsigned i = 0; r == 0 && who->routes && i < who->routes->n; i++) {
        const struct ip_prefix *route = &who->routes->items[i];

        r = node_routes_check_block(net, route, e);
        if (r == 0 && (!who->admitted || subnets_covers(who->admitted, route)))
            r = subnets_add(&admitted, route, e);
    }
    if (r == 0)
        r = node_routes_check(net, who->name, &admitted, e);
    if (r == NODE_ROUTES_E_TAKEN)
        r = e->code = ENROL_E_TAKEN;
    if (r == 0)
        *ret = admitted;
    return r;
}

/* The new node, through the decoder, which checks the labels. */
static int make_node(struct node *ret, const struct model_network *net, const struct newcomer *who,
    uint32_t number, struct err *e)
{
    char key[X25519_BASE64_MAX];
    struct subnets routes;
    json_t *labels;
    json_t *json;
    int r = admit_routes(&routes, net, who, e);

    if (r != 0)
        return r;
    labels = who->labels ? json_incref((json_t *)who->labels) : json_object();
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:o, s:o, s:o, s:b, s:b, s:b, s:o}}", "kind",
        "Node", "metadata", "name", who->name, "network", net->pub.spec.meta.name, "spec",
        "publicKey", x25519_public_format(who->key, key), "address4",
        address_text(&net->pub.spec.cidr4, number), "address6",
        address_text(&net->pub.spec.cidr6, number), "labels", labels, "ephemeral",
        (int)who->ephemeral, "relay", (int)who->relay, "stock", (int)who->stock, "routes",
        subnets_encode(&routes));
    r = node_decode(ret, json, OBJECT_STRICT, e);
    json_decref(json);
    return r;
}

/* The number that the next node's addresses have; 0: none is left, with words. */
static uint32_t next_number(const struct model_network *net, struct err *e)
{
    uint32_t number = model_next_number(net);

    if (number == 0)
        (void)err_set(e, ENROL_E_FULL, "network \"%s\" has no address left: its %u are in use%s",
            net->pub.spec.meta.name, net->ipam.capacity,
            model_is_wary(net) ? ", or may be those of nodes whose records are damaged" : "");
    return number;
}

/* What one enrolment writes. */
struct writes {
    struct store_op ops[4];
    char keys[4][RECORD_KEY_MAX];
    char *values[4]; /* owns */
    size_t n;
    bool failed; /* there was no memory for a value */
};

static void writes_deinit(struct writes *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->values[i]);
}

/* The key is filled in by the caller, in w->keys[w->n]; @value is taken, and NULL for no memory. */
static void add_put(struct writes *w, char *value, uint64_t expect, uint32_t ttl_seconds)
{
    w->failed = w->failed || !value;
    w->values[w->n] = value;
    w->ops[w->n] = (struct store_op){.kind = STORE_OP_PUT,
        .key = w->keys[w->n],
        .value = value,
        .expect = expect,
        .ttl_seconds = ttl_seconds};
    w->n++;
}

/* Likewise: nothing is written unless it is as we have seen it. */
static void add_check(struct writes *w, uint64_t expect)
{
    w->ops[w->n] =
        (struct store_op){.kind = STORE_OP_CHECK, .key = w->keys[w->n], .expect = expect};
    w->n++;
}

static uint32_t token_ttl(const struct token_record *t, int64_t wall_s)
{
    int64_t left = t->expires > wall_s ? t->expires - wall_s : 0;

    return (uint32_t)left + TOKEN_LINGER_S;
}

/* The token has one use less. */
static void write_token(struct writes *w, const struct model_token *t, int64_t wall_s)
{
    struct token_record used = t->record;

    used.uses--;
    (void)token_hash_key(w->keys[w->n], &t->hash);
    add_put(w, record_token_encode(&used), t->revision, token_ttl(&used, wall_s));
}

/* The network is still there, gives its number away, and has the node. */
static void write_node(struct writes *w, const struct model_network *net, const struct node *node,
    uint32_t number, const struct token_hash *by)
{
    const char *network = net->pub.spec.meta.name;
    uint32_t high = number > net->ipam.high ? number : net->ipam.high;

    (void)record_key(w->keys[w->n], RECORD_NETWORK, network, "");
    add_check(w, net->pub.spec.meta.resource_version);
    (void)record_key(w->keys[w->n], RECORD_IPAM, network, "");
    add_put(w, record_ipam_encode(number + 1, high), net->ipam_revision, 0);
    (void)record_key(w->keys[w->n], RECORD_NODE, network, node->meta.name);
    add_put(w, record_node_encode(node, by), STORE_EXPECT_ABSENT,
        node->ephemeral ? ENROL_EPHEMERAL_SECONDS : 0);
}

/* Write it all. 0, RACED, or negative errno with words. */
static int commit(
    struct enrol *en, const struct writes *w, const struct node *node, nsec_t now, struct err *e)
{
    int r;

    if (w->failed)
        return err_set(e, -ENOMEM, "no memory for node \"%s\"", node->meta.name);
    r = model_commit(en->model, w->ops, w->n, now, NULL, e);
    if (r != STORE_E_CONFLICT)
        return r;
    r = model_sync(en->model, e);
    return r == 0 ? RACED : r;
}

/* Give @who an address and make a node of it. @t: what lets it in; NULL: an administrator does. */
static int take_in(struct enrol *en, struct model_network *net, const struct newcomer *who,
    const struct model_token *t, nsec_t now, int64_t wall_s, struct model_node **ret, struct err *e)
{
    static const struct token_hash nobodys = {{0}};
    _cleanup_(writes_deinit) struct writes w = {.n = 0};
    uint32_t number = next_number(net, e);
    struct node node = NODE_NULL;
    int r;

    if (number == 0)
        return ENROL_E_FULL;
    r = make_node(&node, net, who, number, e);
    if (r != 0)
        return r;
    if (t)
        write_token(&w, t, wall_s);
    write_node(&w, net, &node, number, t ? &t->hash : &nobodys);
    r = commit(en, &w, &node, now, e);
    node_deinit(&node);
    if (r == 0)
        *ret = model_find_node(net, who->name);
    return r;
}

static int enrol_once(struct enrol *en, const struct enrol_request *rq,
    const struct enrol_proof *proof, const struct token_hash *hash, nsec_t now, int64_t wall_s,
    struct model_node **ret, struct err *e)
{
    char name[NAME_MAX_LEN + 1];
    struct newcomer who = {
        .key = &rq->key, .name = name, .labels = rq->labels, .routes = &rq->routes};
    struct model_network *net = NULL;
    struct model_token *t = NULL;
    struct model_node *known;
    int r = admit(en, hash, wall_s, &t, &net, e);

    if (r != 0)
        return r;
    known = model_find_key(net, &rq->key);
    if (proof && !is_proven(net, known, rq, proof, now))
        return err_set(e, ENROL_E_DENIED,
            "the request's \"Authorization\" does not prove that who asks has the secret of the "
            "public key that it names");
    if (known)
        return again(known, rq, proof != NULL, hash, ret, e);
    if (t->record.uses == 0)
        return err_set(e, ENROL_E_DENIED,
            "the token is used up: make a new one with \"weft token new --network %s\"",
            t->record.network);
    r = choose_name(en, net, rq, name, e);
    if (r != 0)
        return r;
    who.ephemeral = t->record.ephemeral;
    who.relay = t->record.relay;
    who.admitted = &t->record.routes;
    who.stock = strcmp(rq->engine, ENROL_ENGINE_STOCK) == 0;
    return take_in(en, net, &who, t, now, wall_s, ret, e);
}

int enrol_node(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct ip_addr *from, nsec_t now, int64_t wall_s, struct model_node **ret, struct err *e)
{
    struct token_hash hash = token_hash_of(&rq->secret);
    struct model_node *node = NULL;
    int r = RACED;

    if (!limiter_allows(&en->limiter, from, now)) {
        en->n_refused++;
        return err_set(e, ENROL_E_TOO_OFT,
            "too many enrolments from this address have failed: try again in a minute");
    }
    for (int i = 0; i < RETRIES && r == RACED; i++)
        r = enrol_once(en, rq, proof, &hash, now, wall_s, &node, e);
    if (r == RACED || (r == 0 && !node))
        r = err_set(e, -EAGAIN, "the hub is too busy to take the node in: try again");
    if (r == ENROL_E_DENIED)
        limiter_failed(&en->limiter, from, now);
    if (r != 0) {
        en->n_refused++;
        return r;
    }
    en->n_enrolled++;
    *ret = node;
    return 0;
}

/* Is it a key that a machine can have, and is it still free? */
static int check_key(
    const struct model_network *net, const struct x25519_public *key, struct err *e)
{
    const struct model_node *known = model_find_key(net, key);
    struct x25519_shared shared;

    if (known && known->pub.spec.hub)
        return err_set(e, -EINVAL, "the public key is the hub's own");
    if (known)
        return err_set(e, ENROL_E_TAKEN,
            "node \"%s\" of network \"%s\" has this public key already", known->pub.spec.meta.name,
            net->pub.spec.meta.name);
    if (!x25519_dh(&net->pub.secret, key, &shared))
        return err_set(e, -EINVAL,
            "the public key belongs to no private key: \"wg pubkey\" makes one from a private key");
    secret_wipe(&shared, sizeof(shared));
    return 0;
}

int enrol_add(struct enrol *en, struct model_network *net, const struct node_request *rq,
    nsec_t now, struct model_node **ret, struct err *e)
{
    struct newcomer who = {.key = &rq->key,
        .name = rq->name,
        .labels = rq->labels,
        .routes = &rq->routes,
        .stock = true};
    struct model_node *node = NULL;
    int r = RACED;

    for (int i = 0; i < RETRIES && r == RACED; i++) {
        r = check_name(net, rq->name, e);
        if (r == 0)
            r = check_key(net, &rq->key, e);
        if (r == 0)
            r = take_in(en, net, &who, NULL, now, 0, &node, e);
    }
    if (r == RACED || (r == 0 && !node))
        r = err_set(e, -EAGAIN, "the hub is too busy to take the node in: try again");
    if (r == 0)
        *ret = node;
    return r;
}

int enrol_new_secret(struct enrol *en, struct model_network *net, const struct token_request *rq,
    const char *by, nsec_t now, int64_t wall_s, struct token_secret *ret, struct err *e)
{
    struct token_record record = {.hub_key = net->pub.public,
        .expires = wall_s + rq->ttl_seconds,
        .uses = rq->uses,
        .ephemeral = rq->ephemeral,
        .relay = rq->relay,
        .routes = rq->routes,
        .created = wall_s};
    _cleanup_(freep) char *text = NULL;
    char key[RECORD_KEY_MAX];
    struct token_hash hash;
    struct store_op op;
    int r;

    (void)snprintf(
        record.network, sizeof(record.network), "%.*s", NAME_MAX_LEN, net->pub.spec.meta.name);
    (void)snprintf(record.created_by, sizeof(record.created_by), "%s", by);
    rng_fill(&en->rng, ret->b, sizeof(ret->b));
    hash = token_hash_of(ret);
    text = record_token_encode(&record);
    if (!text)
        return err_set(e, -ENOMEM, "no memory for a token");
    op = (struct store_op){.kind = STORE_OP_PUT,
        .key = token_hash_key(key, &hash),
        .value = text,
        .expect = STORE_EXPECT_ABSENT,
        .ttl_seconds = token_ttl(&record, wall_s)};
    r = model_commit(en->model, &op, 1, now, NULL, e);
    if (r == STORE_E_CONFLICT)
        return err_set(e, -EEXIST, "two tokens have the same secret");
    return r;
}
