/*
 * tcp_traffic.h - what has come by a TCP connection, as the kernel counts it.
 *
 * Segments that repeat what came already are counted, too: when they come and
 * nothing new does, the other end does not hear our acknowledgements.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct tcp_traffic {
    uint64_t bytes;    /* new ones */
    uint32_t segments; /* with data, repeated ones as well; wraps */
    nsec_t silent_for; /* since the other end's last segment, acknowledgements as well; to a ms */
};

/** tcp_traffic_read() - of the connection @fd; false and @ret untouched when it is none. */
bool tcp_traffic_read(int fd, struct tcp_traffic *ret);
