/*
 * tun_steer.h - which queue of a TUN interface a packet waits in.
 *
 * By default the kernel moves a flow to the queue through which its latest answer
 * was written. So all flows of one reader come to wait in one queue, and packets of a
 * flow that moves may be reordered. With steering a flow always has the same queue,
 * which depends on its addresses, protocol and ports.
 */
#pragma once

#include <stdbool.h>

/**
 * tun_steer_prepare() - load the program while this process still may
 * @for_children:	programs that this one starts use it, too
 *
 * Loading takes CAP_BPF, and using it CAP_NET_ADMIN only. The descriptor is named in the
 * environment, as WEFT_STEER_FD, where tun_steer() looks for it, here and in a child. Where it
 * cannot be loaded, interfaces are not steered.
 *
 * Threads: while the process has one.
 */
void tun_steer_prepare(bool for_children);

/** tun_steer() - steer the interface of queue @fd. 0; negative errno: it stays as it was. */
int tun_steer(int fd);
