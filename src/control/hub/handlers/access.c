/* access.c - see handlers.h. */
#include "hub/handlers/handlers.h"

#include <stdio.h>
#include <string.h>

#include "api/content/body.h"
#include "base/text.h"
#include "hub/audit/audit.h"
#include "hub/enrol/admin_tokens.h"
#include "hub/model/model.h"
#include "os/clock.h"

enum caller_verdict access_identify(
    void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret)
{
    struct handlers *h = ctx;

    return admin_tokens_identify(
        h->admins, bearer, &from->addr, now, clock_wall() / NSEC_PER_SEC, ret);
}

void access_by_node(struct handlers *h, const struct request *rq, const struct model_node *node)
{
    char actor[AUDIT_ACTOR_MAX + 1];

    (void)snprintf(actor, sizeof(actor), "node:%.*s/%.*s", NAME_MAX_LEN, node->net->spec.meta.name,
        NAME_MAX_LEN, node->spec.meta.name);
    audit_act(h->audit, actor, &rq->from.addr);
}

void access_by_token(
    struct handlers *h, const struct request *rq, const struct token_secret *secret)
{
    struct token_hash hash = token_hash_of(secret);
    char actor[AUDIT_ACTOR_MAX + 1];
    char id[AUDIT_TOKEN_ID_LEN + 1];

    if (!model_find_token(h->model, &hash))
        return;
    (void)snprintf(actor, sizeof(actor), "join:%s", audit_token_id(id, &hash));
    audit_act(h->audit, actor, &rq->from.addr);
}

void access_begin(void *ctx, const struct request *rq)
{
    struct handlers *h = ctx;
    const struct model_node *node = NULL;

    if (rq->access == API_ACCESS_OVERLAY)
        node = model_find_address(rq->listener_ctx, &rq->from.addr);
    if (node)
        access_by_node(h, rq, node);
    else
        audit_act(h->audit, rq->caller.name[0] ? rq->caller.name : "stranger", &rq->from.addr);
}

/* Whoever has root on the hub, or its file's token, is not held up by the hub. */
bool access_admits(
    void *ctx, const struct route *row, const struct request *rq, struct response *rs)
{
    static const char prefix[] = "admin:";
    static const char page[] = "page:";
    /* A session of the page has the pace of the token that its login was made with. */
    const char *name =
        rq->caller.session != 0 ? rq->caller.name + sizeof(page) - 1 : rq->caller.name;
    struct handlers *h = ctx;
    struct admin_token *t;

    if (rq->access != API_ACCESS_ADMIN || strcmp(row->method, "GET") == 0 ||
        strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return true;
    t = admin_tokens_find(h->admins, name + sizeof(prefix) - 1);
    /* One that has been removed meanwhile asks no more. */
    if (!t || rate_take(&t->pace, rq->now, ADMIN_PACE_EACH, ADMIN_PACE_BURST))
        return true;
    response_refuse(rs, 429,
        "the admin token of %s has asked for more than %u changes at once, and for more than %u a "
        "second since: try again in a minute",
        name, ADMIN_PACE_BURST, (unsigned)(NSEC_PER_SEC / ADMIN_PACE_EACH));
    return false;
}

/* ---- before a change ------------------------------------------------------------------------ */

void access_before(void *ctx, const char *key, struct audit_before *ret)
{
    struct handlers *h = ctx;
    struct record_key k = record_key_parse(key);
    bool is_admin = strncmp(key, ADMIN_RECORD_PREFIX, strlen(ADMIN_RECORD_PREFIX)) == 0;
    const struct admin_token *admin = NULL;
    const struct model_token *token = NULL;
    struct token_hash hash;

    ret->revision = model_revision(h->model, key);
    if (damaged_find(&h->model->damaged, key))
        return;
    if (is_admin)
        admin = admin_tokens_find(h->admins, key + strlen(ADMIN_RECORD_PREFIX));
    else if (k.kind == RECORD_TOKEN && hex_decode(k.name, hash.b, sizeof(hash.b)))
        token = model_find_token(h->model, &hash);
    if (admin)
        ret->revision = admin->revision;
    if (admin || token)
        memcpy(ret->network, admin ? admin->record.network : token->record.network,
            sizeof(ret->network));
}

/* ---- after a request ------------------------------------------------------------------------ */

void access_refused(
    struct handlers *h, const struct request *rq, const char *operation, const struct response *rs)
{
    bool has_network = strstr(operation, " /v1/networks/{network}") != NULL;
    const struct model_network *net =
        has_network ? model_find_network(h->model, rq->params[0]) : NULL;
    const char *why = rs->body ? body_refusal_text(rs->body) : NULL;

    audit_refused(h->audit, operation, net ? net->spec.meta.name : "", (unsigned)rs->status,
        why ? why : "", rq->now);
}

void access_end(
    void *ctx, const struct request *rq, const struct route *row, const struct response *rs)
{
    struct handlers *h = ctx;
    char operation[AUDIT_OPERATION_MAX + 1];
    bool is_for_admins =
        row && row->access & API_ACCESS_ADMIN && !(row->access & API_ACCESS_PUBLIC);
    bool is_entrance =
        row && (strcmp(row->path, "/v1/enrol") == 0 || strcmp(row->path, "/v1/web/login") == 0);

    /* The audit log tells of calls for administrators that were made without a valid token or with
     * too small a role, and of machines, and browsers, that were not let in. */
    if ((is_entrance && rs->status >= 401) ||
        (is_for_admins && (rs->status == 401 || rs->status == 403 || rs->status == 429))) {
        (void)snprintf(operation, sizeof(operation), "%s %s", row->method, row->path);
        access_refused(h, rq, operation, rs);
    }
    audit_act_hub(h->audit);
}
