/* port_tx.c - see port_tx.h. */
#include "shared/port_tx.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes for the answers to one batch. */
#define PORT_TX_SIZE 16384

int port_tx_init(struct port_tx *tx, const struct index_table *index,
    const struct udp_sockets *sockets, struct drops *drops, unsigned worker, bool gso)
{
    *tx = (struct port_tx){.index = index, .sockets = sockets, .drops = drops, .worker = worker};
    tx->space = malloc(PORT_TX_SIZE);
    return tx->space ? udp_outbox_init(&tx->out, gso, false) : -ENOMEM;
}

void port_tx_deinit(struct port_tx *tx)
{
    udp_outbox_deinit(&tx->out);
    free(tx->space);
    tx->space = NULL;
}

void port_tx_begin(struct port_tx *tx, nsec_t now)
{
    tx->now = now;
    tx->space_used = 0;
}

void port_tx_flush(struct port_tx *tx)
{
    uint64_t failed = tx->out.n_failed;

    udp_outbox_flush(&tx->out, tx->sockets);
    drop_count(tx->drops, DROP_UDP_SEND, tx->out.n_failed - failed);
}

uint8_t *port_tx_space(struct port_tx *tx, size_t len)
{
    uint8_t *p = tx->space + tx->space_used;

    if (len > PORT_TX_SIZE - tx->space_used)
        return NULL;
    tx->space_used += len;
    return p;
}
