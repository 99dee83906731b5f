/*
 * bulk.h - throughput between this member and a peer, over one or more connections.
 */
#pragma once

#include "measure/dial.h"
#include "measure/result.h"

/**
 * bulk_run() - measure throughput as the order says
 * @ret:	always set; if something failed, the reason is in its @why
 * @to:		the peer, on the overlay
 * @o:		BULK
 * @underlay:	the peer's address outside the overlay, as this node itself has found it; none: not
 *		known
 *
 * The coordinator cannot choose where a connection outside the overlay goes. Its address is one
 * from which the peer's sealed frames come. Its port is the one that the peer has opened for the
 * session; the peer is asked for it over the overlay.
 */
void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o,
    const struct ip_addr *underlay);

/** bulk_serve() - serve a data connection that began with SINK or SOURCE. Does not close @fd. */
void bulk_serve(int fd, const struct order *o);
