/*
 * refusals.h - offloads that the kernel said it had, and then refused.
 *
 * What was tested when a port or a device began (net/offload.h) may fail later, for one route or
 * one driver. It is turned off then, said once, and shown with its reason.
 *
 * Threads: any.
 */
#pragma once

#include "net/offload.h"

struct device;
struct port;
struct udp_outbox;

/** refusals_check_sent() - after a flush of @out: has it given up segmentation? */
void refusals_check_sent(struct port *p, const struct udp_outbox *out);

/** refusals_on_merged() - the interface did not take a merged frame of @which. */
void refusals_on_merged(struct device *d, enum offload which);
