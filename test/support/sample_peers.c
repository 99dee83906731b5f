/* sample_peers.c - see sample_peers.h. */
#include "test/support/sample_peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "mesh/config/wg_config.h"

static int get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    const struct sample_peers *sp = (const struct sample_peers *)engine;
    struct wg_config c = WG_CONFIG_NULL;
    struct wg_peer peer = WG_PEER_NULL;

    if (sp->peer) {
        assert_int_equal(wg_peer_copy(&peer, sp->peer), 0);
        assert_int_equal(wg_config_add(&c, &peer), 0);
    }
    *ret = c;
    return 0;
}

static int apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    struct sample_peers *sp = (struct sample_peers *)engine;

    for (size_t i = 0; i < d->n_peers; i++) {
        const struct diff_peer *p = &d->peers[i];
        struct sample_peers_change *change = &sp->changes[sp->n_changes++];

        assert_true(sp->n_changes <= SAMPLE_PEERS_CHANGES_MAX);
        *change = (struct sample_peers_change){.op = p->op,
            .key = p->peer.key,
            .set_endpoint = p->set_endpoint,
            .endpoint = p->peer.endpoint,
            .set_keepalive = p->set_keepalive,
            .keepalive = p->peer.keepalive,
            .set_mtu = p->set_mtu,
            .mtu = p->peer.mtu,
            .set_allowed = p->set_allowed,
            .n_allowed = p->peer.n_allowed};
        for (size_t k = 0; k < p->peer.n_allowed && k < 4; k++)
            change->allowed[k] = p->peer.allowed[k];
    }
    return 0;
}

static const struct engine_ops ops = {.kind = ENGINE_KIND_USERSPACE, .get = get, .apply = apply};

void sample_peers_init(struct sample_peers *sp)
{
    *sp = (struct sample_peers){.engine = {.ops = &ops}};
}
