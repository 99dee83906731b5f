/*
 * bulk.h - throughput between this member and a peer, over one or more connections.
 */
#pragma once

#include "measure/dial.h"
#include "measure/result.h"

/**
 * bulk_run() - as the order says
 * @to:		the peer, on the overlay
 * @o:		BULK
 * @underlay:	where the peer is beside the overlay, as this node itself has found; none: not known
 *
 * Who gives the order has no say in where a connection beside the overlay goes:
 * the address is one from which the peer's sealed frames come, and the port the
 * one that the peer itself, asked over the overlay, has opened for the session.
 *
 * What failed is in words in the result.
 */
void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o,
    const struct ip_addr *underlay);

/** bulk_serve() - the other half of a connection that SINK or SOURCE has begun. Closes nothing. */
void bulk_serve(int fd, const struct order *o);
