/*
 * bulk.h - throughput between this member and a peer, over one or more connections.
 */
#pragma once

#include "probe/dial.h"
#include "probe/result.h"

/**
 * bulk_run() - as the order says
 * @to:		the peer; for the underlay its port and no interface, and the addresses are
 *		taken from the order
 * @o:		BULK
 *
 * What failed is in words in the result.
 */
void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o);

/** bulk_serve() - the other half of a connection that SINK or SOURCE has begun. Closes nothing. */
void bulk_serve(int fd, const struct order *o);
