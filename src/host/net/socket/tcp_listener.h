/*
 * tcp_listener.h - bound TCP sockets, on an address or on one interface only.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"

struct err;

/**
 * tcp_listener_open() - a bound socket that does not listen yet
 * @ret_fd:	gives it; non-blocking, close-on-exec
 * @at:		address none: all of them, v4 and v6; port 0: the kernel chooses
 * @interface:	only what comes in there is heard; NULL: anything
 * @is_shared:	others that say so too may have the same port
 *
 * Return: 0 or negative errno with words that name the address (-EAFNOSUPPORT: no IPv6 here).
 */
int tcp_listener_open(
    int *ret_fd, const struct endpoint *at, const char *interface, bool is_shared, struct err *e);
