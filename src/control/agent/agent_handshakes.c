/* agent_handshakes.c - see agent_handshakes.h. */
#include "agent/agent_handshakes.h"

#include "agent/agent_parts.h"
#include "base/err.h"
#include "os/log.h"

void agent_handshakes_greet_hubs(struct agent *a, nsec_t now)
{
    struct agent_hub *hub;

    while ((hub = hub_set_next_handshake(&a->hubs))) {
        struct err e = ERR_NULL;

        if (reconcile_handshake(&a->reconcile, &hub->key, &e) != 0)
            log_debug("no handshake with the hub: %s", err_text(&e));
        hub_transport_io_speak(&hub->transport, now);
    }
}

void agent_handshakes_begin(struct agent *a, nsec_t now)
{
    struct x25519_public key;
    const char *node;

    while (path_driver_next_handshake(a->paths, &key, &node, now)) {
        struct err e = ERR_NULL;

        if (reconcile_handshake(&a->reconcile, &key, &e) != 0)
            log_debug("no handshake with %s: %s", node, err_text(&e));
    }
}

void agent_handshakes_on_hub_forgot(struct agent *a, nsec_t now)
{
    struct err e = ERR_NULL;

    for (size_t i = 0; i < a->snapshot.nodes.n; i++) {
        const struct node *node = &a->snapshot.nodes.items[i]->node;
        const struct observation *ob = observe_find(&a->seen, &node->key);

        /* With peers that find paths the driver settles which end begins; with stock peers this
         * node does. */
        if (node->hub || node->side || !ob || ob->handshake_at == 0)
            continue;
        if (reconcile_handshake(&a->reconcile, &node->key, &e) != 0)
            log_debug("no handshake with %s: %s", node->meta.name, err_text(&e));
    }
    path_driver_on_hub_forgot(a->paths, now);
}

void agent_handshakes_renew(struct agent *a)
{
    char key[X25519_BASE64_MAX];

    for (size_t i = 0; i < a->seen.n; i++) {
        const struct observation *ob = &a->seen.items[i];
        struct err e = ERR_NULL;

        if (observation_has_session(ob, a->clock()) &&
            reconcile_handshake(&a->reconcile, &ob->key, &e) != 0)
            log_debug(
                "no handshake with %s: %s", x25519_public_format(&ob->key, key), err_text(&e));
    }
}
