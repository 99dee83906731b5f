/*
 * netlink_writes.h - counts the requests of this process that change something in the kernel.
 *
 * A program that calls netlink_writes_take() gets its own mnl_socket_sendto(), which looks at each
 * request and sends it. So what is counted is what is sent, whoever sends it. Requests that only
 * read (RTM_GET..., WG_CMD_GET_DEVICE, the lookup of a generic family) do not count.
 *
 * Threads: one thread only.
 */
#pragma once

/** netlink_writes_take() - writes since the last call, or since the start. */
unsigned netlink_writes_take(void);
