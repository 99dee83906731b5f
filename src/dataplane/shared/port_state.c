/* port_state.c - see port_state.h. */
#include "shared/port_state.h"

#include "os/clock.h"
#include "os/log.h"
#include "shared/device_state.h"

void refusals_check_sent(struct port *p, const struct udp_outbox *out)
{
    if (out->gso || !p->opt.offloads.on[OFFLOAD_UDP_GSO] ||
        atomic_exchange(&p->refusals.has[OFFLOAD_UDP_GSO], true))
        return;
    log_warning("port %u: the offload %s is off from now on: the kernel could not send a segmented "
                "batch",
        p->sockets.listen_port, offload_names[OFFLOAD_UDP_GSO]);
}

const char *refusals_why(const struct device *d, enum offload which)
{
    struct merging_seen seen = merging_read(&d->port->merging, clock_now());

    if (refusals_has(&d->refusals, which))
        return "the kernel refused a merged packet";
    if (refusals_has(&d->port->refusals, which))
        return "the kernel could not send a segmented batch";
    if (which == OFFLOAD_UDP_GRO && merging_is_low(&seen))
        return "datagrams of one flow arrive one by one";
    return NULL;
}
