/*
 * net_watch.h - has anything changed in this machine's network?
 *
 * Links, addresses, routes and routing rules, of any interface. What changed is not told: who
 * wants to know looks again (rtnl.h).
 */
#pragma once

#include <stdbool.h>

/** net_watch_open() - a descriptor that is readable when there is news, or negative errno. */
int net_watch_open(void);

/** net_watch_read() - take the news without waiting. True if there was any. */
bool net_watch_read(int fd);
