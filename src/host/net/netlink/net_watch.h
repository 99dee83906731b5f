/*
 * net_watch.h - has anything changed in this machine's network?
 *
 * Watches links, addresses, routes and routing rules of all interfaces. It does not say what has
 * changed; the caller reads the state again with rtnl.h.
 */
#pragma once

#include <stdbool.h>

/** net_watch_open() - a descriptor that is readable when there is news, or negative errno. */
int net_watch_open(void);

/** net_watch_read() - take the news without waiting. True if there was any. */
bool net_watch_read(int fd);
