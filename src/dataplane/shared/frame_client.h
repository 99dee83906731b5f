/*
 * frame_client.h - path frames that arrive go to whoever has connected to the frame socket.
 *
 * The data plane never looks into one: docs/DATAPLANE.md, "Path frames". The socket itself, and
 * what its client sends, are frame_socket.h's.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/drop.h"

struct rate;
struct udp_run;

/** One in each port. frame_socket.c changes it under the port's lock. */
struct frame_client {
    int fd;                /* borrows; -1: there is none. Changed with the gate closed */
    _Atomic bool is_there; /* somebody finds paths: pinned peers keep their endpoints. Any thread */
};

/**
 * frame_client_offer() - hand a frame to the client
 * @rate:	the calling worker's, of FRAME_SOCKET_RATE
 * @one:	the frame, of kind RUN_FRAME (run_split.h), and where it came from
 * @ret_why:	set when it is not handed on: DROP_UNKNOWN_TYPE (there is no client, or the frame
 *		is longer than any), DROP_PATH_QUOTA or DROP_PATH_QUEUE_FULL
 *
 * Threads: an rx worker's, inside the gate.
 *
 * Return: false when it ends here.
 */
bool frame_client_offer(const struct frame_client *client, struct rate *rate,
    const struct udp_run *one, nsec_t now, enum drop_reason *ret_why);
