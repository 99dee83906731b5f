/* sample_overlay.c - see sample_overlay.h. */
#include "test/support/sample_overlay.h"

#include <stdlib.h>

#include "filter/relay.h"
#include "os/clock.h"
#include "relay/router.h"
#include "test/support/sample_hub.h"

static void on_close(struct engine *closed)
{
    container_of(closed, struct sample_overlay, engine.engine)->n_closed++;
}

void sample_overlay_begin(struct sample_overlay *so, struct sample_hub *s)
{
    struct overlay_network *net = calloc(1, sizeof(*net));
    struct rng rng = rng_kernel();
    int r = net ? 0 : -1;

    *so = (struct sample_overlay){.n_closed = 0};
    sample_peers_init(&so->engine);
    so->ops = *so->engine.engine.ops;
    so->ops.close = on_close;
    so->engine.engine.ops = &so->ops;
    list_init(&so->o.networks);
    list_init(&so->o.recontacts);
    (void)pthread_mutex_init(&so->o.lock, NULL);
    if (r == 0)
        r = relay_new(&so->o.relay, 1, &rng);
    /* Of another family than routes have: there are none. */
    if (r == 0)
        r = netlink_open(&so->o.nl, NETLINK_GENERIC);
    if (r != 0)
        sample_hub_fail("no data half");
    net->overlay = &so->o;
    net->model = sample_hub_network(s);
    net->engine = &so->engine.engine;
    htab_init(&net->by_key, 5);
    list_add_tail(&so->o.networks, &net->siblings);
    if (router_network_add(&net->router, relay_router(so->o.relay), &net->model->public) != 0)
        sample_hub_fail("no network of the relay");
    net->model->served->overlay = net;
    s->hub->changes.overlay = &so->o;
}

void sample_overlay_end(struct sample_overlay *so)
{
    addresses_close(&so->o.addresses);
    so->o.relay = relay_free(so->o.relay);
    htab_deinit(&so->o.by_remote);
    netlink_close(&so->o.nl);
    (void)pthread_mutex_destroy(&so->o.lock);
}
