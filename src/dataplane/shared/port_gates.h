/*
 * port_gates.h - closing the gates around what the data threads read.
 *
 * A data thread is inside its gate while it handles a batch: an rx worker inside the port's, a tx
 * worker inside its device's. Whoever closes the gates waits until all are between two batches, and
 * may then change what they read.
 *
 * Threads: under the port's lock, outside the gates.
 */
#pragma once

#include "shared/port_tx.h"

struct device;
struct port;

/** port_gates_close() - from here on nobody is in the port's gate, nor in @d's (NULL: any
 * device's).
 */
void port_gates_close(struct port *p, struct device *d);

/** port_gates_open() - let them in again; @d as it was given to port_gates_close(). */
void port_gates_open(struct port *p, struct device *d);

/** port_gates_pass() - wait until every rx worker has left the gate once: what was unlinked before
 * is used by none of them any more. */
void port_gates_pass(struct port *p);

/** port_gates_set_filter() - set the port's filter with the gate closed; NULL: none. */
void port_gates_set_filter(struct port *p, port_filter_fn fn, void *ctx);
