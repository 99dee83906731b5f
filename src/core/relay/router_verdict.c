/* router_verdict.c - what becomes of a message; see router.h. */
#include "relay/router_internal.h"

struct router_verdict router__pass(void)
{
    return (struct router_verdict){.action = ROUTER_ACTION_PASS};
}

struct router_verdict router__drop(enum drop_reason reason)
{
    return (struct router_verdict){.action = ROUTER_ACTION_DROP, .reason = reason};
}

struct router_verdict router__forward(const struct router_node *node)
{
    if (!node->has_address)
        return router__drop(DROP_RELAY_NO_ADDRESS);
    return (struct router_verdict){
        .action = ROUTER_ACTION_FORWARD, .to = node->remote, .local = node->local};
}

struct router_verdict router__unclaimed(
    const struct router_arrival *in, bool is_sender_known, uint32_t index)
{
    if (in->is_local(in->ctx, index))
        return router__pass();
    return router__drop(is_sender_known ? DROP_RELAY_NO_LEASE : DROP_RELAY_UNKNOWN_SENDER);
}
