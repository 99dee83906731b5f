/* shaping_config.c - see shaping_config.h. */
#include "port/shaping_config.h"

#include <errno.h>
#include <string.h>

#include "net/tun/tun.h"
#include "os/log.h"
#include "packet/pace.h"
#include "peer/peer.h"
#include "shared/device_state.h"
#include "worker/tx.h"

/* Queues by class; where that cannot be, all packets are of one class. */
static void sort_queues(struct device *d, bool by_class)
{
    int r = tun_set_classes(&d->tun, by_class);

    if (r < 0 && by_class)
        log_warning("%s: its queues cannot be sorted by class (%s), so packets of all classes are "
                    "sent alike; that takes CAP_BPF when it starts",
            d->name, strerror(-r));
    atomic_store(&d->shaping.has_classes, by_class && r == 0);
}

static void set(struct device *d, struct pace *pace, uint64_t bits_per_s)
{
    bool was_on = d->shaping.n_rates > 0;

    d->shaping.n_rates += (bits_per_s != 0) - (pace_rate(pace) != 0);
    pace_set(pace, bits_per_s);
    if ((d->shaping.n_rates > 0) != was_on) {
        sort_queues(d, !was_on);
        /* Release: what was set before is seen by the workers that see this. */
        atomic_store_explicit(&d->shaping.is_on, !was_on, memory_order_release);
    }
    /* A worker may sleep until the time that the old rate gave. */
    tx_wake(d);
}

void shaping_config_set(struct device *d, uint64_t bits_per_s)
{
    set(d, &d->shaping.all, bits_per_s);
}

void shaping_config_set_class(struct device *d, enum traffic_class class, uint64_t bits_per_s)
{
    set(d, &d->shaping.classes[class], bits_per_s);
}

void shaping_config_set_peer(struct peer *peer, uint64_t bits_per_s)
{
    if (bits_per_s != 0 || pace_rate(&peer->pace) != 0)
        set(peer->device, &peer->pace, bits_per_s);
}

void shaping_config_show_dscp(struct device *d, bool shows)
{
    atomic_store(&d->shaping.shows_dscp, shows);
}
