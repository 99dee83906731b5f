/*
 * port_tx.c - what a filter of the port may do with the worker that asks it: see port.h.
 *
 * What it sends joins the worker's outbox, and leaves with the batch (rx.c).
 */
#include "base/drop.h"
#include "dataplane/port_internal.h"

void port_tx_send(struct port_tx *tx, const struct udp_run *run)
{
    udp_outbox_add(&tx->out, &tx->port->workers[tx->worker].sockets, run);
}

uint8_t *port_tx_room(struct port_tx *tx, size_t len)
{
    uint8_t *p = tx->room + tx->room_used;

    if (len > PORT_TX_ROOM - tx->room_used)
        return NULL;
    tx->room_used += len;
    return p;
}

void port_tx_drop(struct port_tx *tx, enum drop_reason reason, uint64_t n)
{
    drop_count(tx->drops, reason, n);
}

bool port_tx_has_index(const struct port_tx *tx, uint32_t index)
{
    return index_is_used(&tx->port->index, index);
}

nsec_t port_tx_now(const struct port_tx *tx)
{
    return tx->now;
}

unsigned port_tx_worker(const struct port_tx *tx)
{
    return tx->worker;
}
