/* access.c - see access.h. */
#include "access.h"

#include <stdio.h>
#include <string.h>

#include "api/body.h"
#include "hub/hub_internal.h"
#include "sys/clock.h"

enum caller_verdict access_identify(
    void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret)
{
    struct hub *hub = ctx;

    return admin_tokens_identify(
        &hub->admins, bearer, &from->addr, now, clock_wall() / NSEC_PER_SEC, ret);
}

void access_by_node(struct hub *hub, const struct request *rq, const struct model_node *node)
{
    char actor[AUDIT_ACTOR_MAX + 1];

    (void)snprintf(actor, sizeof(actor), "node:%.*s/%.*s", NAME_MAX_LEN,
        node->net->pub.spec.meta.name, NAME_MAX_LEN, node->pub.spec.meta.name);
    audit_act(&hub->audit, actor, &rq->from.addr);
}

void access_by_token(struct hub *hub, const struct request *rq, const struct token_secret *secret)
{
    struct token_hash hash = token_hash_of(secret);
    char actor[AUDIT_ACTOR_MAX + 1];
    char id[AUDIT_TOKEN_ID_LEN + 1];

    if (!model_find_token(&hub->model, &hash))
        return;
    (void)snprintf(actor, sizeof(actor), "join:%s", audit_token_id(id, &hash));
    audit_act(&hub->audit, actor, &rq->from.addr);
}

void access_begin(void *ctx, const struct request *rq)
{
    struct hub *hub = ctx;
    const struct model_node *node = NULL;

    if (rq->door == DOOR_OVERLAY)
        node = model_find_address(rq->door_ctx, &rq->from.addr);
    if (node)
        access_by_node(hub, rq, node);
    else
        audit_act(&hub->audit, rq->caller.name[0] ? rq->caller.name : "stranger", &rq->from.addr);
}

/* The network that the path names, if there is one of that name. */
static const char *network_of(
    const struct hub *hub, const struct request *rq, const struct route *row)
{
    bool has_network = strncmp(row->path, "/v1/networks/{network}", 22) == 0;
    const struct model_network *net =
        has_network ? model_find_network(&hub->model, rq->params[0]) : NULL;

    return net ? net->pub.spec.meta.name : "";
}

/* Who is no administrator and tried, who is and may not, and machines that were not let in. */
static bool is_worth_knowing(const struct route *row, int status)
{
    if (strcmp(row->path, "/v1/enrol") == 0)
        return status >= 401;
    return (row->doors & DOOR_ADMIN) && !(row->doors & DOOR_PUBLIC) &&
           (status == 401 || status == 403 || status == 429);
}

void access_end(
    void *ctx, const struct request *rq, const struct route *row, const struct response *rs)
{
    struct hub *hub = ctx;
    char operation[AUDIT_OPERATION_MAX + 1];
    const char *why;

    if (row && is_worth_knowing(row, rs->status)) {
        why = rs->body ? body_refusal_text(rs->body) : NULL;
        (void)snprintf(operation, sizeof(operation), "%s %s", row->method, row->path);
        audit_refused(&hub->audit, operation, network_of(hub, rq, row), (unsigned)rs->status,
            why ? why : "", rq->now);
    }
    audit_act_hub(&hub->audit);
}
