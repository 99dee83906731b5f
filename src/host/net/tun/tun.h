/*
 * tun.h - the network interface: opening it, its offloads, its properties.
 *
 * Every frame read or written starts with a `struct virtio_net_hdr`, which says
 * how the kernel wants the packet cut (or has it merged) and where a checksum
 * is still to be filled in. Frames are moved by the caller with read(2) and
 * writev(2) on the queue's descriptor, which does not block.
 */
#pragma once

#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct offloads;

/*
 * Which queue of a TUN interface a packet waits in.
 *
 * By default the kernel moves a flow to the queue through which its latest answer
 * was written. So all flows of one reader come to wait in one queue, and packets of a
 * flow that moves may be reordered. With steering a flow always has the same queue,
 * which depends on its addresses, protocol and ports.
 */

/*
 * After tun_set_classes() the queue depends on the flow and on the class, which is the queue's
 * number modulo 4 where the number of queues is a multiple of that. The class is told by the DSCP
 * (the names are of RFC 4594, and RFC 8622 for LE):
 *   0  control   CS5 to CS7, EF, VA
 *   1  priority  CS2 to CS4, AF2x to AF4x
 *   2  normal    the default, and whatever else has precedence 0
 *   3  bulk      LE, CS1, AF1x
 */

/** How many classes. */
#define TUN_STEER_N_CLASSES 4

/**
 * tun_steer_prepare() - load the programs while this process still may
 * @for_children:	programs that this one starts use them, too
 *
 * Loading takes CAP_BPF, and using them CAP_NET_ADMIN only. The descriptors are named in the
 * environment, as WEFT_STEER_FD and WEFT_STEER_CLASS_FD, where tun_open() and tun_set_classes()
 * look for them, here and in a child. Where they cannot be loaded, interfaces are not steered.
 *
 * Threads: while the process has one.
 */
void tun_steer_prepare(bool for_children);

/** Bytes before each packet in a frame. */
#define TUN_HEADER ((uint32_t)sizeof(struct virtio_net_hdr))

/** Longest frame that the kernel hands out or takes. */
#define TUN_FRAME_MAX (65535 + TUN_HEADER)

#define TUN_QUEUES_MAX  256 /* as the kernel has it */
#define TUN_READERS_MAX 32

/** Most queues of each reader. So many flows can wait without one being behind another. */
#define TUN_QUEUES_EACH 64

struct tun {
    int fd[TUN_QUEUES_MAX]; /* owns; one for each queue; flows are spread over them */
    unsigned n;             /* queues */
    unsigned each;          /* queues of one reader; the first ones are the first reader's */
    bool was_there;         /* tun_open() has attached to an interface that existed */
    char name[IFNAMSIZ];    /* as the kernel has it */
    unsigned ifindex;       /* in the namespace where it was opened */
};

#define TUN_NULL {.n = 0, .each = 1}

/** tun_readers() - the number of readers. */
static inline unsigned tun_readers(const struct tun *t)
{
    return t->n / t->each;
}

/**
 * tun_open() - make the interface, or attach to a persistent one
 * @name:	1 to 15 bytes; "%d" in it becomes a free number
 * @n_readers:	1 to TUN_READERS_MAX; each gets TUN_QUEUES_EACH queues, or its part of
 *		TUN_QUEUES_MAX. Where flows cannot be kept on them (by steering) it gets one,
 *		and a persistent interface that was made with one queue has one reader
 * @offloads:	TSO and USO are turned off in it, with a reason, where the kernel lacks them
 *
 * Return: 0 or negative errno with words (-EBUSY: another process has it).
 */
int tun_open(struct tun *ret, const char *name, unsigned n_readers, struct offloads *offloads,
    struct err *e);

/** tun_adopt() - take a descriptor that another process opened; it must have IFF_VNET_HDR. */
int tun_adopt(struct tun *ret, int fd, struct offloads *offloads, struct err *e);

/** tun_close() - idempotent; the interface goes with its last descriptor. */
void tun_close(struct tun *t);

/**
 * tun_set_persistent() - does the interface stay when its last descriptor is closed?
 *
 * Return: 0 or negative errno.
 */
int tun_set_persistent(const struct tun *t, bool stays);

/** tun_set_mtu() - 0 or negative errno. Works while the interface is in our namespace. */
int tun_set_mtu(const struct tun *t, unsigned mtu);

/**
 * tun_set_speed() - what the interface says of its speed, in /sys/class/net/NAME/speed
 *
 * Nothing is limited by it, but NCCL plans with it, and older kernels say
 * 10 Mbit/s of every TUN interface.
 *
 * Return: 0 or negative errno: a kernel before 5.0 does not let it be set.
 */
int tun_set_speed(const struct tun *t, unsigned mbit);

/** tun_set_queue_len() - frames that may wait in each queue. 0 or negative errno. */
int tun_set_queue_len(const struct tun *t, unsigned n_frames);

/**
 * tun_set_classes() - does a packet's queue depend on its class, too?
 *
 * Then the queues of one reader are of class 0 to 3 in turn: see above. Flows may be
 * reordered once when it changes.
 *
 * Return: 0; -EOPNOTSUPP: a reader has one queue only; or another negative errno. After a failure
 * it is as before.
 */
int tun_set_classes(const struct tun *t, bool by_class);

/** tun_name() - the name that it has now, in whatever namespace. 0 or negative errno. */
int tun_name(const struct tun *t, char ret[static IFNAMSIZ]);

/** tun_netns() - a descriptor of the namespace that it is in now, or negative errno. */
int tun_netns(const struct tun *t);
