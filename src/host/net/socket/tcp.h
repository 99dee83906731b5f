/*
 * tcp.h - TCP sockets: bound, on an address or on one interface only; and what has come by a
 * connection, as the kernel counts it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;

/** Bytes of the segments of connections to our listeners, in both directions: packets of 1200 bytes
 * over IPv6, which every path is taken to carry (path/pmtu.h). */
#define TCP_CONTROL_SEGMENT_MAX 1140

/**
 * tcp_listener_open() - a bound socket that does not listen yet
 * @ret_fd:	gives it; non-blocking, close-on-exec
 * @at:		address none: all of them, v4 and v6; port 0: the kernel chooses
 * @interface:	an overlay's: only what comes in there is heard, and what is sent is marked as
 *		control traffic (tcp_mark_control()); NULL: anything
 * @is_shared:	others that say so too may have the same port
 *
 * Return: 0 or negative errno with words that name the address (-EAFNOSUPPORT: no IPv6 here).
 */
int tcp_listener_open(
    int *ret_fd, const struct endpoint *at, const char *interface, bool is_shared, struct err *e);

/**
 * tcp_mark_control() - have what is sent by @fd, and by connections that it accepts, carry DSCP CS6
 *
 * That is the class that goes first where an interface has a rate (tun_steer.h). Where it cannot be
 * set the packets go as all others.
 */
void tcp_mark_control(int fd);

/**
 * What has come by a connection. Segments that repeat what came already are counted, too: when they
 * come and nothing new does, the other end does not hear our acknowledgements.
 */
struct tcp_traffic {
    uint64_t bytes;    /* new ones */
    uint32_t segments; /* with data, repeated ones as well; wraps */
    nsec_t silent_for; /* since the other end's last segment, acknowledgements as well; to a ms */
};

/** tcp_traffic_read() - false, and @ret untouched, when @fd is no TCP connection. */
bool tcp_traffic_read(int fd, struct tcp_traffic *ret);
