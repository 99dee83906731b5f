/*
 * run_split.h - datagrams that arrived together, cut into those that go on together.
 *
 * A run may have data messages of several sessions, and anything else among them. What goes on
 * together are data messages with one receiver index, which one keypair opens; any other datagram
 * goes on alone. What a datagram is, by its first bytes and its length, is found out here and
 * nowhere after.
 */
#pragma once

#include <stdint.h>

#include "net/socket/udp_batch.h"

/** The first byte of the types that WireGuard leaves alone: path frames have them. */
#define FRAME_FIRST_TYPE 0x80

/** What a datagram is. */
enum run_kind {
    RUN_UNKNOWN,      /* nothing that we take */
    RUN_TRUNCATED,    /* of a type of WireGuard's, and not as long as that type is */
    RUN_FRAME,        /* a path frame, or the answer of a STUN server */
    RUN_HANDSHAKE,    /* an initiation or a response; with a mac1 for one of our keys */
    RUN_COOKIE_REPLY, /* to a handshake message of ours */
    RUN_DATA,         /* a header, a tag and what is between them */
};

/** Some datagrams of a run. */
struct run_part {
    struct udp_run run;
    unsigned n;         /* datagrams in it; of any kind but data, 1 */
    enum run_kind kind; /* of each */
    uint32_t index;     /* of data: the receiver index of each */
};

/**
 * run_split() - the datagrams of @run, from byte @off on, that go on together
 * @off:	where a datagram begins; below @run->len
 *
 * Any content. The structs of wire/wg.h may be read from what is a message of WireGuard's.
 */
struct run_part run_split(const struct udp_run *run, uint32_t off);
