/* enrol_judge.c - who may enter, and as which node; see enrol_internal.h. Changes nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "hub/enrol/enrol_internal.h"
#include "hub/model/node_routes.h"
#include "mesh/names/reserved.h"

/* How many names are tried when the hub chooses one. */
#define RETRIES 8

/* Find the token with that hash, and its network. A token that admits nobody is refused. */
static int admit(struct enrol *en, const struct token_hash *hash, int64_t wall_s,
    struct model_token **ret_token, struct model_network **ret_net, struct err *e)
{
    struct model_token *t = model_find_token(en->model, hash);
    struct model_network *net;

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
        return err_set(
            e, -EINVAL, "the public key is that of hub \"%s\"", node->pub.spec.meta.name);
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

/* Is it a key that a machine can have, and is it still free? */
static int check_key(
    const struct model_network *net, const struct x25519_public *key, struct err *e)
{
    const struct model_node *known = model_find_key(net, key);

    if (known && known->pub.spec.hub)
        return err_set(
            e, -EINVAL, "the public key is that of hub \"%s\"", known->pub.spec.meta.name);
    if (known)
        return err_set(e, ENROL_E_TAKEN,
            "node \"%s\" of network \"%s\" has this public key already", known->pub.spec.meta.name,
            net->pub.spec.meta.name);
    if (!x25519_public_can_be(key))
        return err_set(e, -EINVAL,
            "the public key belongs to no private key: \"wg pubkey\" makes one from a private key");
    return 0;
}

/* What is known of the machine; a token or an administrator says what it may have. */
static struct newcomer newcomer_of(const struct enrolment *x)
{
    struct newcomer who = {.key = &x->rq.key,
        .name = x->name,
        .labels = x->rq.labels,
        .routes = &x->rq.routes,
        .stock = x->is_added || strcmp(x->rq.engine, REQUEST_ENGINE_STOCK) == 0};

    if (x->token) {
        who.admitted = &x->token->record.routes;
        who.ephemeral = x->token->record.ephemeral;
        who.relay = x->token->record.relay;
    }
    return who;
}

int enrol__make_node(struct node *ret, const struct enrolment *x, struct err *e)
{
    struct newcomer who = newcomer_of(x);

    return make_node(ret, x->net, &who, x->number, e);
}

/* The checks that are the same for all machines, once the name is chosen. */
static int judge_newcomer(struct enrolment *x, struct err *e)
{
    struct newcomer who = newcomer_of(x);
    struct subnets routes;
    int r = admit_routes(&routes, x->net, &who, e);

    if (r != 0)
        return r;
    x->number = next_number(x->net, e);
    return x->number == 0 ? ENROL_E_FULL : 0;
}

/* Judge a stock WireGuard that an administrator adds. */
static int judge_added(struct enrol *en, struct enrolment *x, struct err *e)
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
    return r == 0 ? judge_newcomer(x, e) : r;
}

int enrol__judge(struct enrol *en, struct enrolment *x, struct model_node **ret, struct err *e)
{
    struct model_node *known;
    int r;

    *ret = NULL;
    if (x->is_added)
        return judge_added(en, x, e);
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
    return r == 0 ? judge_newcomer(x, e) : r;
}

/* The proof does not depend on what is known of the node: both keys are made of the same secrets.
 */
void enrol__check_proof(struct enrol *en, struct enrolment *x, const struct enrol_proof *proof)
{
    x->has_proof = proof != NULL;
    x->is_proven = proof && admit(en, &x->hash, x->wall_s, &x->token, &x->net, NULL) == 0 &&
                   is_proven(x->net, model_find_key(x->net, &x->rq.key), &x->rq, proof, en->now);
}
