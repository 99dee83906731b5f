/* handlers.c - see handlers.h: what several handlers need. */
#include "hub/handlers/handlers.h"

#include "api/server/server.h"
#include "base/err.h"
#include "base/parse.h"
#include "hub/enrol/enrol.h"
#include "hub/model/model.h"
#include "hub/model/proof.h"
#include "hub/watch/reports.h"
#include "os/clock.h"

const struct model_network *handlers_find_network(
    const struct handlers *h, const struct request *rq, struct response *rs)
{
    const struct model_network *net = model_find_network(h->model, rq->params[0]);

    if (!net)
        response_refuse(rs, 404, "there is no network \"%s\" on this hub", rq->params[0]);
    return net;
}

bool handlers_read_number(const struct request *rq, const char *name, uint64_t min, uint64_t max,
    uint64_t *ret, struct response *rs)
{
    const char *text = request_query(rq, name);
    struct err e = ERR_NULL;

    if (!text || parse_u64(ret, text, min, max, name, &e) == 0)
        return true;
    response_fail(rs, &e);
    return false;
}

const struct model_node *handlers_find_machine(const struct request *rq, struct response *rs)
{
    const struct model_network *net = rq->listener_ctx;
    const struct model_node *node = model_find_address(net, &rq->from.addr);
    char text[IP_ADDR_TEXT_MAX];

    if (node && !node->spec.hub)
        return node;
    response_refuse(rs, 403, "%s is the address of no node of network \"%s\"",
        ip_addr_format(&rq->from.addr, text), net->spec.meta.name);
    return NULL;
}

const struct model_node *handlers_find_member(
    struct handlers *h, const struct request *rq, struct response *rs)
{
    const struct model_node *node = handlers_find_machine(rq, rs);

    if (!node || !proof_take(node, rq, rs))
        return NULL;
    reports_seen(h->reports, node, rq->now, clock_wall_s());
    return node;
}

size_t handlers_hold(const struct model_network *net, struct store_op *op,
    char key[static RECORD_KEY_MAX], char **value)
{
    *value = NULL;
    /* A damaged record of the cursor stays as it is, for a person to see. */
    if (net->ipam.forgot)
        return 0;
    *value = record_ipam_encode(net->ipam.next, net->ipam.high);
    *op = (struct store_op){.kind = *value ? STORE_OP_PUT : STORE_OP_CHECK,
        .key = record_key(key, RECORD_IPAM, net->spec.meta.name, ""),
        .value = *value,
        .expect = net->ipam_revision};
    return 1;
}

void handlers_refuse(struct response *rs, int r, const struct err *e, const int statuses[])
{
    if (r > 0)
        response_refuse(rs, statuses ? statuses[r] : 409, "%s", err_text(e));
    else
        response_fail(rs, e);
}

json_t *handlers_node(const struct model_node *node)
{
    struct node spec = node->spec;
    json_t *json;

    spec.status = reports_of_node(node);
    json = node_encode(&spec);
    json_decref(spec.status);
    return json;
}

void handlers_refuse_newcomer(struct response *rs, int r, const struct err *e)
{
    static const int statuses[] = {
        [ENROL_E_DENIED] = 401,
        [ENROL_E_TAKEN] = 409,
        [ENROL_E_GONE] = 410,
        [ENROL_E_FULL] = 507,
        [ENROL_E_TOO_OFT] = 429,
        [ENROL_E_TOKENS] = 409,
    };

    handlers_refuse(rs, r, e, statuses);
}
