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

/** What the queue depends on. */
enum tun_steer_by {
    TUN_STEER_FLOWS,
    /*
     * On the flow, and on the class, which is the queue's number modulo 4 where the number of
     * queues is a multiple of that. The class is told by the DSCP (the names are of RFC 4594, and
     * RFC 8622 for LE):
     *   0  control   CS5 to CS7, EF, VA
     *   1  priority  CS2 to CS4, AF2x to AF4x
     *   2  normal    the default, and whatever else has precedence 0
     *   3  bulk      LE, CS1, AF1x
     */
    TUN_STEER_CLASSES,
};

/** Classes of TUN_STEER_CLASSES. */
#define TUN_STEER_N_CLASSES 4

/**
 * tun_steer_prepare() - load the programs while this process still may
 * @for_children:	programs that this one starts use them, too
 *
 * Loading takes CAP_BPF, and using them CAP_NET_ADMIN only. The descriptors are named in the
 * environment, as WEFT_STEER_FD and WEFT_STEER_CLASS_FD, where tun_steer() looks for them, here and
 * in a child. Where they cannot be loaded, interfaces are not steered.
 *
 * Threads: while the process has one.
 */
void tun_steer_prepare(bool for_children);

/** tun_steer() - steer the interface of queue @fd. 0; negative errno: it stays as it was. */
int tun_steer(int fd, enum tun_steer_by by);
