/*
 * refusals.h - offloads that the kernel said it had, and then refused.
 *
 * What was tested when a port or a device began (net/tun/offload.h) may fail later, for one route
 * or one driver. It is turned off then, said once, and shown with its reason (device_offload_why()
 * of device.h).
 *
 * Threads: any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "net/tun/offload.h"

struct device;
struct port;
struct udp_outbox;

/** One in each port, for OFFLOAD_UDP_GSO, and one in each device, for OFFLOAD_TSO and _USO. */
struct refusals {
    _Atomic bool has[OFFLOAD_N]; /* refused, and off from then on */
};

/** refusals_has() - was @which refused? */
static inline bool refusals_has(const struct refusals *r, enum offload which)
{
    return atomic_load(&r->has[which]);
}

/** refusals_check_sent() - after a flush of @out: has it given up segmentation? */
void refusals_check_sent(struct port *p, const struct udp_outbox *out);

/** refusals_on_merged() - the interface did not take a merged frame of @which. */
void refusals_on_merged(struct device *d, enum offload which);

/** refusals_why() - why @which is off for @d although it was tested; NULL: it was not refused. */
const char *refusals_why(const struct device *d, enum offload which);
