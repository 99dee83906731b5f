/*
 * tun_steer.h - which queue of a TUN interface a packet waits in.
 *
 * Left to itself the kernel moves a flow to the queue through which its latest
 * answer was written, so all flows of one reader meet in one queue, and one
 * that moves may be overtaken by itself. Steered, a flow has one queue for
 * good, told by its addresses, protocol and ports.
 */
#pragma once

/** tun_steer() - steer the interface of queue @fd. 0; negative errno: it stays as it was. */
int tun_steer(int fd);
