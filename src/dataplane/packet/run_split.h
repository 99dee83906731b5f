/*
 * run_split.h - datagrams that arrived together, cut into those that go on together.
 *
 * A run may have data messages of several sessions, and anything else among them. What goes on
 * together are data messages with one receiver index, which one keypair opens; any other datagram
 * goes on alone.
 */
#pragma once

#include <stdint.h>

#include "net/socket/udp_batch.h"

/** Some datagrams of a run. */
struct run_part {
    struct udp_run run;
    unsigned n;     /* datagrams in it */
    unsigned type;  /* WG_TYPE_ of each; 0: not a message of WireGuard's, and one datagram */
    uint32_t index; /* of data: the receiver index of each */
};

/**
 * run_split() - the datagrams of @run, from byte @off on, that go on together
 * @off:	where a datagram begins; below @run->len
 *
 * Datagrams of data that are too short for a header and a tag are of type 0.
 */
struct run_part run_split(const struct udp_run *run, uint32_t off);
