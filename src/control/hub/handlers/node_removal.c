/* node_removal.c - a node is removed, with what is known about it; see handlers.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "hub/audit/audit.h"
#include "hub/enrol/enrol.h"
#include "hub/handlers/handlers.h"
#include "hub/handlers/reply.h"
#include "hub/model/model.h"
#include "hub/overlay/overlay.h"
#include "os/clock.h"
#include "os/log.h"

struct removal {
    struct reply reply;
    char network[NAME_MAX_LEN + 1];
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key; /* of the node: another of its name is not it */
    const char *reason;
    bool is_leaving; /* the node itself asks */
};

/* What is deleted in one commit. */
struct deletions {
    struct store_op ops[STORE_OPS_MAX - AUDIT_PER_COMMIT];
    char keys[STORE_OPS_MAX - AUDIT_PER_COMMIT][RECORD_KEY_MAX];
    size_t n;
};

static void add(struct deletions *d, enum record_kind kind, const char *network, const char *name,
    uint64_t expect)
{
    d->ops[d->n] = (struct store_op){.kind = STORE_OP_DELETE,
        .key = record_key(d->keys[d->n], kind, network, name),
        .expect = expect};
    d->n++;
}

/* The node first, so that nobody sees an edge of it change. */
static void collect(struct deletions *d, const struct model_node *node)
{
    const char *network = node->net->spec.meta.name;
    const char *name = node->spec.meta.name;
    struct model_edge_end *end;

    add(d, RECORD_NODE, network, name, node->spec.meta.resource_version);
    add(d, RECORD_REPORT, network, name, STORE_EXPECT_ANY);
    list_foreach(end, &node->edges, link) {
        if (d->n == sizeof(d->ops) / sizeof(*d->ops))
            break;
        add(d, RECORD_EDGE, network, end->edge->spec.meta.name, STORE_EXPECT_ANY);
    }
}

/* How long after its enrolment a machine may find that its join has failed. */
#define JOIN_FAILS_WITHIN (300 * NSEC_PER_SEC)

/* Uses that one token gets back. A machine that is silent here can still have spoken to its peers,
 * so without a bound one use would be as many memberships, one after the other. */
#define GIVEN_BACK_MAX 16

/* Has it done nothing but enrol, a moment ago? Then it has made no use of its token: its join has
 * failed after the hub had taken it in. */
static bool has_only_enrolled(const struct removal *rm, const struct model_node *node)
{
    struct overlay_facts facts = {0};

    if (node->reported->only_enrolled_at == 0 || node->reported->heard.has_reported ||
        node->spec.stock || rm->reply.rq.now - node->reported->only_enrolled_at > JOIN_FAILS_WITHIN)
        return false;
    return !overlay_read_facts(node, rm->reply.rq.now, &facts) || facts.handshake_at == 0;
}

/* The token of a machine whose join has failed admits it, or another one, once more. */
static void give_back(
    struct removal *rm, struct deletions *d, const struct model_node *node, struct token_write *ret)
{
    const struct model_token *t = model_find_token(rm->reply.h->model, &node->token);

    if (!rm->is_leaving || !t || t->n_given_back >= GIVEN_BACK_MAX ||
        !has_only_enrolled(rm, node) || d->n == sizeof(d->ops) / sizeof(*d->ops))
        return;
    enrol_give_back(t, clock_wall_s(), ret);
    if (!ret->value)
        return;
    d->ops[d->n++] = ret->op;
    if (rm->reply.n_tries == 0)
        model_count_given_back(t);
}

static const struct model_node *find(const struct removal *rm)
{
    const struct model_node *node =
        model_find_node(model_find_network(rm->reply.h->model, rm->network), rm->node);

    return node && x25519_public_equal(&node->spec.key, &rm->key) ? node : NULL;
}

static void removed(struct reply *l, struct response *rs)
{
    const struct removal *rm = container_of(l, struct removal, reply);

    log_info("node \"%s\" of network \"%s\" is removed: %s", rm->node, rm->network, rm->reason);
    response_empty(rs);
}

static void not_removed(struct reply *l, int r)
{
    const struct model_node *node = find(container_of(l, struct removal, reply));

    /* If nobody knows, it may still go. */
    if (node && r != STORE_E_UNKNOWN)
        node->served->leaving = NULL;
}

static void begin(struct reply *l, const struct request *rq, struct response *rs)
{
    struct removal *rm = container_of(l, struct removal, reply);
    _cleanup_(freep) struct deletions *d = calloc(1, sizeof(*d));
    const struct model_node *node = find(rm);
    _cleanup_(token_write_deinit) struct token_write written = {.value = NULL};

    if (!node) {
        response_refuse(rs, 404, "network \"%s\" has no node \"%s\"", rm->network, rm->node);
        return;
    }
    /* It was set by the try before, which has changed nothing. */
    if (l->n_tries > 0)
        node->served->leaving = NULL;
    if (!d) {
        response_refuse(rs, 500, "no memory to remove node \"%s\"", rm->node);
        return;
    }
    collect(d, node);
    give_back(rm, d, node, &written);
    reply_commit(l, d->ops, d->n, removed, rs);
    if (l->is_waiting)
        node->served->leaving = rm->reason;
}

static void start(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node, const char *reason, bool is_leaving)
{
    struct removal *rm = reply_new(h, rq, rs, sizeof(*rm), begin);

    if (!rm)
        return;
    (void)snprintf(
        rm->network, sizeof(rm->network), "%.*s", NAME_MAX_LEN, node->net->spec.meta.name);
    (void)snprintf(rm->node, sizeof(rm->node), "%.*s", NAME_MAX_LEN, node->spec.meta.name);
    rm->key = node->spec.key;
    rm->reason = reason;
    rm->is_leaving = is_leaving;
    rm->reply.failed = not_removed;
    reply_begin(&rm->reply, rq, rs);
}

void node_removal_leave(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node)
{
    start(h, rq, rs, node, "it has left", true);
}

void node_removal_by_admin(struct handlers *h, const struct request *rq, struct response *rs,
    const struct model_node *node)
{
    if (model_is_self(node))
        response_refuse(rs, 400,
            "node \"%s\" is the hub itself: it goes with its network (\"weft network rm %s\"), or "
            "when "
            "another hub is asked to remove it",
            node->spec.meta.name, node->net->spec.meta.name);
    else
        start(h, rq, rs, node, "an administrator has removed it", false);
}
