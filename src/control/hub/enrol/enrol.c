/* enrol.c - see enrol.h: who may enter, the way of those who may to the store, and the calls. */
#include "enrol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "hub/model/node_routes.h"
#include "mesh/names/hosts.h"

/* Machines in one commit; each has an entry in the audit log. */
#define ENROL_BATCH_MAX (AUDIT_PER_COMMIT / 2)

/* A machine that waits. */
struct enrolment {
    struct list link;               /* in the enrol's waiting or coming */
    struct enrol_request rq;        /* without its secret; owns the labels */
    struct token_hash hash;         /* of the secret */
    struct audit_by by;             /* who asks */
    int64_t wall_s;                 /* when it asked: seconds since 1970 */
    bool has_proof;                 /* a proof was sent */
    bool is_proven;                 /* the proof is right */
    bool is_added;                  /* an administrator adds it; it has no token */
    unsigned n_tries;               /* batches with it that have conflicted */
    uint32_t number;                /* once judged: the host number that it gets */
    char name[NAME_MAX_LEN + 1];    /* once judged: the node's name */
    char network[NAME_MAX_LEN + 1]; /* that it enters: the token's, or the administrator's choice */
    const struct model_network *net; /* lent while it is judged, and while its batch is made */
    const struct model_token *token; /* likewise; NULL: an administrator adds it */
    enrol_done_fn done;              /* see enrol_node() */
    void *ctx;                       /* pins: of @done */
};

/* ---- who may enter, and as which node: nothing changes here ---------------------------------- */

/* How many names are tried when the hub chooses one. */
#define NAME_TRIES 8

/* Find the token with that hash, and its network. A token that admits nobody is refused. */
static int admit(struct enrol *en, const struct token_hash *hash, int64_t wall_s,
    const struct model_token **ret_token, const struct model_network **ret_net, struct err *e)
{
    const struct model_token *t = model_find_token(en->model, hash);
    const struct model_network *net;

    if (!t)
        return err_set(e, ENROL_E_DENIED,
            "the hub does not know this token: it was made by another hub, or ended long ago");
    net = model_find_network(en->model, t->record.network);
    if (!net || net->leaving || !x25519_public_equal(&net->maker.key, &t->record.hub_key))
        return err_set(e, ENROL_E_GONE, "network \"%s\" of this token does not exist any more",
            t->record.network);
    if (!net->has_key)
        return err_set(e, -EAGAIN,
            "this hub does not serve network \"%s\" yet: try again, or ask another hub",
            t->record.network);
    if (t->record.expires_at <= wall_s)
        return err_set(e, ENROL_E_DENIED,
            "the token expired %" PRId64 " s ago, by the hub's clock: make a new one with \"weft "
            "token new --network %s\"",
            wall_s - t->record.expires_at, t->record.network);
    *ret_token = t;
    *ret_net = net;
    return 0;
}

/* Was @proof made by who has the secret of the key? @node: who has that key already, or NULL. */
static bool is_proven(const struct model_network *net, const struct model_node *node,
    const struct enrol_request *rq, const struct enrol_proof *proof, nsec_t now)
{
    struct member_proof_key own = {{0}};
    const struct member_proof_key *key = NULL;
    bool ok;

    if (node)
        key = proof_key(node, now);
    else if (member_proof_key_make(&own, &net->secret, &rq->key, &rq->key))
        key = &own;
    ok = key && member_proof_verify(&proof->proof, key, &proof->request);
    secret_wipe(&own, sizeof(own));
    return ok;
}

/* A node of this key is there already: is it the same machine asking again? */
static int again(const struct model_node *node, const struct enrol_request *rq, bool proven,
    const struct token_hash *hash, const struct model_node **ret, struct err *e)
{
    if (node->spec.hub)
        return err_set(e, -EINVAL, "the public key is that of hub \"%s\"", node->spec.meta.name);
    if (!proven)
        return err_set(e, ENROL_E_TAKEN,
            "a node of network \"%s\" has this public key already, and the request does not prove "
            "to come from it",
            node->net->spec.meta.name);
    if (!secret_equal(node->token.b, hash->b, sizeof(hash->b)))
        return err_set(e, ENROL_E_TAKEN,
            "this machine's key is that of node \"%s\" already: \"weft leave\" on it, or \"weft "
            "node rm %s\" on the hub, makes room",
            node->spec.meta.name, node->spec.meta.name);
    if (rq->name[0] && strcmp(rq->name, node->spec.meta.name) != 0)
        return err_set(e, ENROL_E_TAKEN, "this machine is node \"%s\" already, not \"%s\"",
            node->spec.meta.name, rq->name);
    *ret = node;
    return 0;
}

/* Has another node that name, or the record of one that cannot be read? */
static bool is_taken(const struct model_network *net, const char *name)
{
    return model_find_node(net, name) ||
           model_is_damaged(net->model, RECORD_NODE, net->spec.meta.name, name);
}

/* May a new node be called that? */
static int check_name(const struct model_network *net, const char *name, struct err *e)
{
    int r = reserved_check(name, e);

    if (r == 0 && is_taken(net, name))
        return err_set(e, ENROL_E_TAKEN,
            "network \"%s\" has a node \"%s\" already: choose another name, or, if that "
            "machine is gone, \"weft node rm %s --network %s\" on the hub makes room",
            net->spec.meta.name, name, name, net->spec.meta.name);
    return r;
}

static int choose_name(struct enrol *en, const struct model_network *net,
    const struct enrol_request *rq, char name[NAME_MAX_LEN + 1], struct err *e)
{
    if (rq->name[0]) {
        (void)snprintf(name, NAME_MAX_LEN + 1, "%s", rq->name);
        return check_name(net, name, e);
    }
    for (int i = 0; i < NAME_TRIES; i++) {
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

/* Of the routes that it asks for, those that its token (none: an administrator) lets it have. 0,
 * ENROL_E_TAKEN or -EINVAL. */
static int admit_routes(struct subnets *ret, const struct enrolment *x, struct err *e)
{
    const struct subnets *wanted = &x->rq.routes;
    struct subnets admitted = SUBNETS_NULL;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < wanted->n; i++) {
        r = node_routes_check_block(x->net, &wanted->items[i], e);
        if (r == 0 && (!x->token || subnets_covers(&x->token->record.routes, &wanted->items[i])))
            r = subnets_add(&admitted, &wanted->items[i], e);
    }
    if (r == 0)
        r = node_routes_check(x->net, x->name, &admitted, e);
    if (r == NODE_ROUTES_E_TAKEN)
        r = e->code = ENROL_E_TAKEN;
    if (r == 0)
        *ret = admitted;
    return r;
}

/* Is it a key that a machine can have, and is it still free? */
static int check_key(
    const struct model_network *net, const struct x25519_public *key, struct err *e)
{
    const struct model_node *known = model_find_key(net, key);

    if (known && known->spec.hub)
        return err_set(e, -EINVAL, "the public key is that of hub \"%s\"", known->spec.meta.name);
    if (known)
        return err_set(e, ENROL_E_TAKEN,
            "node \"%s\" of network \"%s\" has this public key already", known->spec.meta.name,
            net->spec.meta.name);
    if (!x25519_public_can_be(key))
        return err_set(e, -EINVAL,
            "the public key belongs to no private key: \"wg pubkey\" makes one from a private key");
    return 0;
}

/*
 * The node that a judged @x becomes, through the decoder, which checks the labels
 * @ret:	for node_deinit(); untouched on failure
 *
 * Return: 0, or as enrol_node().
 */
static int make_node(struct node *ret, const struct enrolment *x, struct err *e)
{
    const struct network *net = &x->net->spec;
    const struct token_record *token = x->token ? &x->token->record : NULL;
    bool is_stock = x->is_added || strcmp(x->rq.engine, REQUEST_ENGINE_STOCK) == 0;
    char key[X25519_BASE64_MAX];
    struct subnets routes;
    json_t *labels;
    json_t *json;
    int r = admit_routes(&routes, x, e);

    if (r != 0)
        return r;
    labels = x->rq.labels ? json_incref((json_t *)x->rq.labels) : json_object();
    json = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:o, s:o, s:o, s:b, s:b, s:b, s:o}}", "kind",
        "Node", "metadata", "name", x->name, "network", net->meta.name, "spec", "publicKey",
        x25519_public_format(&x->rq.key, key), "address4", address_text(&net->cidr4, x->number),
        "address6", address_text(&net->cidr6, x->number), "labels", labels, "ephemeral",
        (int)(token && token->ephemeral), "relay", (int)(token && token->relay), "stock",
        (int)is_stock, "routes", subnets_encode(&routes));
    r = node_decode(ret, json, OBJECT_STRICT, e);
    json_decref(json);
    return r;
}

/* The checks that are the same for all machines, once the name is chosen. */
static int assess_newcomer(struct enrolment *x, struct err *e)
{
    struct subnets routes;
    int r = admit_routes(&routes, x, e);

    if (r != 0)
        return r;
    x->number = model_next_number(x->net);
    if (x->number != 0)
        return 0;
    return err_set(e, ENROL_E_FULL, "network \"%s\" has no address left: its %u are in use%s",
        x->net->spec.meta.name, x->net->ipam.capacity,
        model_is_wary(x->net) ? ", or may be those of nodes whose records are damaged" : "");
}

/* Judge a stock WireGuard that an administrator adds. */
static int assess_added(struct enrol *en, struct enrolment *x, struct err *e)
{
    int r;

    x->token = NULL;
    x->net = model_find_network(en->model, x->network);
    if (!x->net || x->net->leaving)
        return err_set(e, ENROL_E_GONE, "network \"%s\" does not exist any more", x->network);
    if (!x->net->has_key)
        return err_set(
            e, -EAGAIN, "this hub does not serve network \"%s\" yet: try again", x->network);
    r = check_name(x->net, x->name, e);
    if (r == 0)
        r = check_key(x->net, &x->rq.key, e);
    return r == 0 ? assess_newcomer(x, e) : r;
}

/*
 * May it enter, and is it there already?
 * @ret:	lends the node that is there; NULL: none is
 *
 * Fills in what @x has for a batch: number, name, network, and what is lent.
 *
 * Return: as enrol_node().
 */
static int assess(
    struct enrol *en, struct enrolment *x, const struct model_node **ret, struct err *e)
{
    const struct model_node *known;
    int r;

    *ret = NULL;
    if (x->is_added)
        return assess_added(en, x, e);
    r = admit(en, &x->hash, x->wall_s, &x->token, &x->net, e);
    if (r != 0)
        return r;
    memcpy(x->network, x->token->record.network, sizeof(x->network));
    known = model_find_key(x->net, &x->rq.key);
    if (x->has_proof && !x->is_proven)
        return err_set(e, ENROL_E_DENIED,
            "the request's \"Authorization\" does not prove that who asks has the secret of the "
            "public key that it names");
    if (known)
        return again(known, &x->rq, x->has_proof, &x->hash, ret, e);
    if (x->token->record.uses == 0)
        return err_set(e, ENROL_E_DENIED,
            "the token is used up: make a new one with \"weft token new --network %s\"",
            x->token->record.network);
    r = check_key(x->net, &x->rq.key, e);
    if (r == 0)
        r = choose_name(en, x->net, &x->rq, x->name, e);
    return r == 0 ? assess_newcomer(x, e) : r;
}

/* ---- machines that may enter, on their way to the store -------------------------------------- */

/* Times that a batch is judged when others change the same keys. */
#define BATCH_TRIES 8

/* Most keys that a batch writes: one for each node, each network and each token in it. */
#define WRITES_MAX (4 * ENROL_BATCH_MAX)

/* ---- the end of an enrolment ----------------------------------------------------------------- */

/* Take @x out of its list and free it. */
static void free_enrolment(struct enrolment *x)
{
    list_remove(&x->link);
    json_decref((json_t *)x->rq.labels);
    free(x);
}

/* Count the outcome @r (as enrol_node() returns it): metrics, and the limit on guesses. */
static void count_outcome(struct enrol *en, const struct enrolment *x, int r, nsec_t now)
{
    if (x->is_added)
        return;
    if (r == 0)
        en->n_enrolled++;
    else
        en->n_refused++;
    if (r == ENROL_E_DENIED)
        ratelimit_pay(&en->failures, &x->by.from, now);
}

static void finish(struct enrol *en, struct enrolment *x, int r, const struct model_node *node,
    const struct err *e)
{
    list_remove(&x->link);
    en->n_waiting--;
    count_outcome(en, x, r, en->now);
    x->done(x->ctx, r, r == 0 ? node : NULL, e);
    free_enrolment(x);
}

/* What is kept of a token after its end, so that the sentence can say "expired". The lease counts
 * from the start of the hub, so it may be longer, never shorter. */
#define TOKEN_LINGER_S 86400

/* For how many seconds a token's record is kept, from @wall_s on. */
static uint32_t token_ttl(const struct token_record *t, int64_t wall_s)
{
    int64_t left = t->expires_at > wall_s ? t->expires_at - wall_s : 0;

    return (uint32_t)left + TOKEN_LINGER_S;
}

/* ---- what a batch writes -------------------------------------------------------------------- */

struct writes {
    struct store_op ops[WRITES_MAX];
    char keys[WRITES_MAX][RECORD_KEY_MAX];
    char *values[WRITES_MAX]; /* owns */
    struct audit_by by[WRITES_MAX];
    size_t n;
};

static void writes_freep(struct writes **p)
{
    for (size_t i = 0; *p && i < (*p)->n; i++)
        free((*p)->values[i]);
    free(*p);
}

/* The next key to be filled in by the caller is w->keys[w->n]; @value is taken. */
static void add_write(
    struct writes *w, const struct enrolment *x, char *value, uint64_t expect, uint32_t ttl_seconds)
{
    w->values[w->n] = value;
    w->by[w->n] = x->by;
    w->ops[w->n] = (struct store_op){.kind = value ? STORE_OP_PUT : STORE_OP_CHECK,
        .key = w->keys[w->n],
        .value = value,
        .expect = expect,
        .ttl_seconds = ttl_seconds};
    w->n++;
}

/* ---- who is in a batch ----------------------------------------------------------------------- */

/* Those of the batch before @x that use its token, if it has one (and @x itself); the first. */
static unsigned uses_before(
    const struct enrol *en, const struct enrolment *x, const struct enrolment **ret_first)
{
    const struct enrolment *it;
    unsigned n = 0;

    *ret_first = NULL;
    list_foreach(it, &en->coming, link) {
        if (x->token && it->token == x->token) {
            *ret_first = *ret_first ? *ret_first : it;
            n++;
        }
        if (it == x)
            break;
    }
    return n;
}

/* Does @x want what another of the batch is being given? Then it has to wait for the outcome. */
static bool is_in_the_way(const struct enrol *en, const struct enrolment *x)
{
    const struct enrolment *first;
    const struct enrolment *it;

    list_foreach(it, &en->coming, link) {
        if (it->net == x->net &&
            (x25519_public_equal(&it->rq.key, &x->rq.key) || strcmp(it->name, x->name) == 0 ||
                (it->rq.routes.n > 0 && x->rq.routes.n > 0)))
            return true;
    }
    return x->token && uses_before(en, x, &first) >= x->token->record.uses;
}

/*
 * Make a batch of the oldest machines that wait: as many as fit one commit. Those that are refused
 * are told so.
 */
static void gather(struct enrol *en)
{
    uint32_t before[ENROL_BATCH_MAX];
    struct enrolment *x;
    unsigned n = 0;

    while (n < ENROL_BATCH_MAX && (x = list_first(&en->waiting, struct enrolment, link))) {
        const struct model_node *known = NULL;
        struct err e = ERR_NULL;
        int r = assess(en, x, &known, &e);

        if (r == 0 && !known && is_in_the_way(en, x))
            break;
        list_remove(&x->link);
        if (r == 0 && !known) {
            list_add_tail(&en->coming, &x->link);
            before[n++] = model_hold_number(x->net, x->number);
            continue;
        }
        finish(en, x, r, known, &e);
    }
    /* From the last to the first, so that each cursor is put back to where it was. */
    for (struct list *l = en->coming.prev; l != &en->coming; l = l->prev) {
        x = container_of(l, struct enrolment, link);
        model_give_number(x->net, x->number, before[--n]);
    }
}

/* Write the address cursor of the network of @x, unless one before @x in the batch has done it. */
static int write_network(struct enrol *en, struct writes *w, const struct enrolment *x)
{
    const char *network = x->net->spec.meta.name;
    const struct enrolment *last_of_net = NULL;
    const struct enrolment *first_of_net = NULL;
    uint32_t high = x->net->ipam.high;
    const struct enrolment *it;

    list_foreach(it, &en->coming, link) {
        if (it->net != x->net)
            continue;
        first_of_net = first_of_net ? first_of_net : it;
        last_of_net = it;
        high = it->number > high ? it->number : high;
    }
    if (first_of_net == x) {
        (void)record_key(w->keys[w->n], RECORD_NETWORK, network, "");
        add_write(w, x, NULL, x->net->spec.meta.resource_version, 0);
        (void)record_key(w->keys[w->n], RECORD_IPAM, network, "");
        add_write(
            w, x, record_ipam_encode(last_of_net->number + 1, high), x->net->ipam_revision, 0);
        if (!w->values[w->n - 1])
            return -ENOMEM;
    }
    return 0;
}

/* Write the token of @x, unless one before @x in the batch has done it. */
static int write_token(struct enrol *en, struct writes *w, const struct enrolment *x)
{
    const struct enrolment *first = NULL;
    const struct enrolment *it;
    struct token_record used;

    (void)uses_before(en, x, &first);
    if (first != x)
        return 0;
    used = x->token->record;
    list_foreach(it, &en->coming, link)
        used.uses -= it->token == x->token;
    (void)token_hash_key(w->keys[w->n], &x->token->hash);
    add_write(w, x, record_token_encode(&used), x->token->revision, token_ttl(&used, x->wall_s));
    return w->values[w->n - 1] ? 0 : -ENOMEM;
}

static int write_node(struct writes *w, const struct enrolment *x, struct err *e)
{
    struct node node = NODE_NULL;
    int r = make_node(&node, x, e);

    if (r != 0)
        return r;
    (void)record_key(w->keys[w->n], RECORD_NODE, x->net->spec.meta.name, node.meta.name);
    add_write(w, x, record_node_encode(&node, &x->hash), STORE_EXPECT_ABSENT,
        node.ephemeral ? ENROL_EPHEMERAL_SECONDS : 0);
    node_deinit(&node);
    return w->values[w->n - 1] ? 0 : err_set(e, -ENOMEM, "no memory for a node");
}

static const struct err busy = {-EAGAIN, "the hub is too busy to take the node in: try again"};

static void on_stored(void *ctx, const struct store_answer *a);

/* Hand the batch to the store as one commit. 0 or negative errno with words. */
static int send_batch(struct enrol *en, struct err *e)
{
    _cleanup_(writes_freep) struct writes *w = calloc(1, sizeof(*w));
    struct audit *audit = en->model->audit;
    const struct enrolment *x;
    int r = w ? 0 : err_set(e, -ENOMEM, "no memory for a node");

    if (r != 0)
        return r;
    list_foreach(x, &en->coming, link) {
        r = write_network(en, w, x) != 0 || write_token(en, w, x) != 0
                ? err_set(e, -ENOMEM, "no memory for a node")
                : write_node(w, x, e);
        if (r != 0)
            return r;
    }
    if (audit)
        audit->each = w->by;
    r = model_commit(en->model, w->ops, w->n, en->now, on_stored, en, e);
    if (audit)
        audit->each = NULL;
    return r;
}

/* Tell each machine of the batch its outcome, which is the same for all. */
static void end_batch(struct enrol *en, int r, const struct err *e)
{
    struct enrolment *x;

    while ((x = list_first(&en->coming, struct enrolment, link))) {
        const struct model_node *node =
            model_find_node(model_find_network(en->model, x->network), x->name);
        bool is_there = node && x25519_public_equal(&node->spec.key, &x->rq.key);

        /* One that is not has been removed again at once. */
        if (r == 0 && !is_there)
            finish(en, x, busy.code, NULL, &busy);
        else
            finish(en, x, r, r == 0 ? node : NULL, e);
    }
}

/* If no batch is on its way to the store, make one of those who wait. */
static void next_batch(struct enrol *en)
{
    struct err e = ERR_NULL;
    int r;

    while (list_is_empty(&en->coming) && !list_is_empty(&en->waiting)) {
        gather(en);
        if (list_is_empty(&en->coming))
            continue;
        r = send_batch(en, &e);
        if (r != 0)
            end_batch(en, r, &e);
    }
}

static void on_stored(void *ctx, const struct store_answer *a)
{
    struct enrol *en = ctx;
    const struct enrolment *first = list_first(&en->coming, struct enrolment, link);

    if (a->r == STORE_E_CONFLICT && first && first->n_tries + 1 < BATCH_TRIES) {
        /* Its machines wait again, before those that came later. */
        while (!list_is_empty(&en->coming)) {
            struct enrolment *x = container_of(en->coming.prev, struct enrolment, link);

            list_remove(&x->link);
            list_add(&en->waiting, &x->link);
            x->n_tries++;
        }
    } else if (a->r == STORE_E_CONFLICT) {
        end_batch(en, busy.code, &busy);
    } else {
        /* If it is not known whether it was stored: a machine that asks again gets the same node.
         */
        end_batch(en, a->r == STORE_E_UNKNOWN ? -EAGAIN : a->r, a->e);
    }
    next_batch(en);
}

/* ---- life ------------------------------------------------------------------------------------ */

void enrol_init(struct enrol *en, struct model *model, const struct rng *rng)
{
    *en = (struct enrol){.model = model, .rng = *rng};
    list_init(&en->waiting);
    list_init(&en->coming);
    ratelimit_init(&en->failures, GUESSES_EACH, GUESSES_BURST, rng_u64(rng));
}

static void free_all(struct list *l)
{
    struct enrolment *x;
    struct enrolment *tmp;

    list_foreach_safe(x, tmp, l, link)
        free_enrolment(x);
}

void enrol_deinit(struct enrol *en)
{
    ratelimit_deinit(&en->failures);
    if (!en->model)
        return;
    free_all(&en->waiting);
    free_all(&en->coming);
}

/* ---- asking --------------------------------------------------------------------------------- */

static struct enrolment *new_enrolment(const struct enrol_request *rq)
{
    struct enrolment *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    list_init(&x->link);
    x->rq = *rq;
    x->hash = token_hash_of(&rq->secret);
    secret_wipe(&x->rq.secret, sizeof(x->rq.secret));
    x->rq.labels = json_incref((json_t *)rq->labels);
    return x;
}

/* Could a node be made of it? Asked before it joins a batch, which must not fail because of one. */
static int check_node(const struct enrolment *x, struct err *e)
{
    struct node node = NODE_NULL;
    int r = make_node(&node, x, e);

    node_deinit(&node);
    return r;
}

/* Free @x, for which there is an answer at once: @r is a refusal, or 0: its node is there. */
static int refuse(struct enrol *en, struct enrolment *x, int r, nsec_t now)
{
    count_outcome(en, x, r, now);
    free_enrolment(x);
    return r;
}

/* Answer @x at once if that is possible, or else let it wait for the next batch. @x: taken. */
static int wait_for_batch(
    struct enrol *en, struct enrolment *x, nsec_t now, const struct model_node **ret, struct err *e)
{
    int r = assess(en, x, ret, e);

    if (r == 0 && !*ret)
        r = check_node(x, e);
    if (r == 0 && !*ret && en->n_waiting >= ENROL_WAITING_MAX)
        r = err_set(e, -EAGAIN,
            "%u machines wait to be taken in already, as many as may; try again",
            ENROL_WAITING_MAX);
    if (r != 0 || *ret)
        return refuse(en, x, r, now);
    list_add_tail(&en->waiting, &x->link);
    en->n_waiting++;
    next_batch(en);
    return 0;
}

/* What both a machine that enters and one that only tries need. 0 or as enrol_node(). */
static int begin(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, struct enrolment **ret, struct err *e)
{
    struct enrolment *x;

    en->now = now;
    if (ratelimit_is_spent(&en->failures, &by->from, now)) {
        en->n_refused++;
        return err_set(e, ENROL_E_TOO_OFT,
            "too many enrolments from this address have failed: try again in a minute");
    }
    x = new_enrolment(rq);
    if (!x)
        return err_set(e, -ENOMEM, "no memory for a node");
    x->by = *by;
    x->wall_s = wall_s;
    /* Once for all batches: it does not depend on what is known of the node, as both keys are made
     * of the same secrets. */
    x->has_proof = proof != NULL;
    x->is_proven = proof && admit(en, &x->hash, wall_s, &x->token, &x->net, NULL) == 0 &&
                   is_proven(x->net, model_find_key(x->net, &rq->key), &x->rq, proof, now);
    *ret = x;
    return 0;
}

int enrol_node(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, enrol_done_fn done, void *ctx,
    const struct model_node **ret, struct err *e)
{
    struct enrolment *x;
    int r = begin(en, rq, proof, by, now, wall_s, &x, e);

    *ret = NULL;
    if (r != 0)
        return r;
    x->done = done;
    x->ctx = ctx;
    return wait_for_batch(en, x, now, ret, e);
}

int enrol_try(struct enrol *en, const struct enrol_request *rq, const struct enrol_proof *proof,
    const struct audit_by *by, nsec_t now, int64_t wall_s, const struct model_network **ret,
    struct err *e)
{
    const struct model_node *known = NULL;
    struct enrolment *x;
    int r = begin(en, rq, proof, by, now, wall_s, &x, e);

    if (r != 0)
        return r;
    r = assess(en, x, &known, e);
    if (r == 0 && !known)
        r = check_node(x, e);
    if (r != 0)
        return refuse(en, x, r, now);
    *ret = x->net;
    free_enrolment(x);
    return 0;
}

int enrol_add(struct enrol *en, const struct model_network *net, const struct enrol_request *rq,
    const struct audit_by *by, nsec_t now, enrol_done_fn done, void *ctx, struct err *e)
{
    struct enrolment *x = new_enrolment(rq);
    const struct model_node *known;

    if (!x)
        return err_set(e, -ENOMEM, "no memory for a node");
    en->now = now;
    x->is_added = true;
    x->by = *by;
    x->done = done;
    x->ctx = ctx;
    (void)snprintf(x->name, sizeof(x->name), "%s", rq->name);
    (void)snprintf(x->network, sizeof(x->network), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
    return wait_for_batch(en, x, now, &known, e);
}

/* ---- tokens --------------------------------------------------------------------------------- */

int enrol_new_secret(struct enrol *en, const struct model_network *net,
    const struct token_request *rq, const char *by, int64_t wall_s, struct token_write *ret,
    struct token_secret *ret_secret, struct err *e)
{
    struct token_record record = {.hub_key = net->maker.key,
        .expires_at = wall_s + rq->ttl_seconds,
        .uses = rq->uses,
        .ephemeral = rq->ephemeral,
        .relay = rq->relay,
        .routes = rq->routes,
        .created_at = wall_s};
    struct token_hash hash;

    if (net->n_tokens >= ENROL_TOKENS_MAX)
        return err_set(e, ENROL_E_TOKENS,
            "network \"%.*s\" has %d join tokens, as many as a hub keeps for one: each goes by "
            "itself when its time is over, \"weft token rm\" removes one, and one made with --uses "
            "lets many machines in",
            NAME_MAX_LEN, net->spec.meta.name, ENROL_TOKENS_MAX);
    (void)snprintf(
        record.network, sizeof(record.network), "%.*s", NAME_MAX_LEN, net->spec.meta.name);
    (void)snprintf(record.created_by, sizeof(record.created_by), "%s", by);
    rng_fill(&en->rng, ret_secret->b, sizeof(ret_secret->b));
    hash = token_hash_of(ret_secret);
    ret->value = record_token_encode(&record);
    if (!ret->value)
        return err_set(e, -ENOMEM, "no memory for a token");
    ret->op = (struct store_op){.kind = STORE_OP_PUT,
        .key = token_hash_key(ret->key, &hash),
        .value = ret->value,
        .expect = STORE_EXPECT_ABSENT,
        .ttl_seconds = token_ttl(&record, wall_s)};
    return 0;
}

void enrol_give_back(const struct model_token *t, int64_t wall_s, struct token_write *ret)
{
    struct token_record more = t->record;

    *ret = (struct token_write){.value = NULL};
    if (more.expires_at <= wall_s || more.uses >= REQUEST_USES_MAX)
        return;
    more.uses++;
    ret->value = record_token_encode(&more);
    (void)token_hash_key(ret->key, &t->hash);
    ret->op = (struct store_op){.kind = STORE_OP_PUT,
        .key = ret->key,
        .value = ret->value,
        .expect = t->revision,
        .ttl_seconds = token_ttl(&more, wall_s)};
}
