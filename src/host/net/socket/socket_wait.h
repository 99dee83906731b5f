/*
 * socket_wait.h - block until a socket is ready, or until a deadline.
 */
#pragma once

#include "base/clock.h"

/** socket_wait() - until @fd is ready for poll(2)'s @events. 0, -ETIMEDOUT or negative errno. */
int socket_wait(int fd, short events, nsec_t deadline);
