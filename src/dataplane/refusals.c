/* refusals.c - see refusals.h. */
#include "dataplane/refusals.h"

#include "os/log.h"
#include "dataplane/device.h"
#include "dataplane/port_internal.h"

void refusals_check_sent(struct port *p, const struct udp_outbox *out)
{
    if (out->gso || !p->opt.offloads.on[OFFLOAD_UDP_GSO] || atomic_exchange(&p->refuses_gso, true))
        return;
    log_warning("port %u: the offload %s is off from now on: the kernel could not send a segmented "
                "batch",
        p->listen_port, offload_name(OFFLOAD_UDP_GSO));
}

void refusals_on_merged(struct device *d, enum offload which)
{
    _Atomic bool *refuses = which == OFFLOAD_TSO ? &d->refuses_tso : &d->refuses_uso;

    if (!atomic_exchange(refuses, true))
        log_warning("%s: the offload %s is off from now on: %s", d->name, offload_name(which),
            device_offload_why(d, which));
}

const char *device_offload_why(const struct device *d, enum offload which)
{
    if (!d->offloads.on[which])
        return d->offloads.why[which];
    if ((which == OFFLOAD_TSO && atomic_load(&d->refuses_tso)) ||
        (which == OFFLOAD_USO && atomic_load(&d->refuses_uso)))
        return "the kernel refused a merged packet";
    if (which == OFFLOAD_UDP_GSO && atomic_load(&d->port->refuses_gso))
        return "the kernel could not send a segmented batch";
    return NULL;
}
