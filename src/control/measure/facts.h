/*
 * facts.h - what one machine reports about itself before a job, and what names lead to on it.
 *
 * facts_gather() inspects the machine; the other functions turn the struct into JSON and back. The
 * limits are those of the process that answers, which on a node is the measuring service's.
 *
 * Names are resolved the way that programs on this machine do. The C library's resolver may block
 * for a long time when name servers do not answer. So it runs in a thread of its own, and the
 * caller stops waiting for that thread at a deadline.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** What a name resolves to. The address is none if there is none or the answer was late. */
struct names_answer {
    struct ip_addr address; /* the first IPv4 address */
    bool known;             /* the resolver has answered */
};

/**
 * names_resolve() - resolve several names
 * @names:	@n of them; copied; their addresses are ignored
 * @deadline:	monotonic
 * @ret:	room for @n
 *
 * Return: 0 or negative errno.
 */
int names_resolve(
    const struct order_name *names, size_t n, nsec_t deadline, struct names_answer *ret);

#define FACTS_INTERFACES_MAX 64
#define FACTS_VERSION_MAX    64
#define FACTS_VALUE_MAX      256

/** A limit with this value means that there is no limit. */
#define FACTS_UNLIMITED INT64_MAX

/** One address of an interface. They are listed in the order of getifaddrs(3). */
struct facts_interface {
    char name[IFNAMSIZ];
    struct ip_addr address;
    bool running; /* IFF_RUNNING: the interface is up and has a carrier */
};

/** Versions of the software that a job uses; "" for software that is not installed. */
struct facts_versions {
    char weft[FACTS_VERSION_MAX];
    char kernel[FACTS_VERSION_MAX];
    char python[FACTS_VERSION_MAX];
    char torch[FACTS_VERSION_MAX];
    char nccl[FACTS_VERSION_MAX];
};

struct facts {
    struct facts_versions versions;
    uint64_t nofile_soft;     /* limit of open files */
    uint64_t nofile_hard;     /* up to which a program may raise @nofile_soft itself */
    uint64_t memlock_hard;    /* limit of locked memory, bytes */
    bool has_rdma;            /* there is an InfiniBand, RoCE or EFA device */
    uint64_t tcp_receive_max; /* bytes: third value of net.ipv4.tcp_rmem */
    uint64_t tcp_send_max;    /* bytes: third value of net.ipv4.tcp_wmem */
    bool tcp_restarts; /* after a pause TCP begins again with a small window, unless a route names
                          another congestion control */
    bool counts_loss;  /* its measuring service knows ORDER_LOSS; one of an earlier version does not
                        */
    bool counts_bursts;          /* the same of ORDER_BURST */
    char interface[IFNAMSIZ];    /* the overlay's */
    struct ip_addr address;      /* this node's on that interface, IPv4 */
    struct ip_addr host_address; /* what the machine's own name resolves to; none: nothing */
    char hostname[FACTS_VERSION_MAX + 1]; /* the machine's own name; "": not reported */
    char nccl_ifname[FACTS_VALUE_MAX];    /* NCCL_SOCKET_IFNAME in nccl.conf; "": not set there */
    char nccl_family[FACTS_VALUE_MAX];    /* NCCL_SOCKET_FAMILY in nccl.conf; "": not set there */
    uint64_t traffic; /* bits per second on the overlay's interface, in and out together */
    uint64_t jobs;    /* commands of `weft run` here: as this process sees, or the agent knows */
    size_t n_interfaces;
    struct facts_interface interfaces[FACTS_INTERFACES_MAX];
};

/** facts_encode() - the facts as JSON: a new reference; NULL for no memory. */
json_t *facts_encode(const struct facts *f);

/** facts_decode() - check every field, and take them in. 0; or -EINVAL with words. */
int facts_decode(struct facts *ret, const json_t *json, struct err *e);

/**
 * facts_gather() - inspect this machine
 * @interface:	the overlay's interface
 * @address:	this node's address on it
 *
 * Fields that cannot be found out stay empty. It takes 0.3 s to see how much traffic there is.
 */
void facts_gather(struct facts *ret, const char *interface, const struct ip_addr *address);

/**
 * facts_tcp_restarts() - does TCP on this machine begin again with a small window after a pause?
 * @congestion:	name of the connection's congestion control, such as "cubic"
 *
 * Reads net.ipv4.tcp_slow_start_after_idle. A congestion control that sets its rate by itself keeps
 * that over a pause (Linux, net/ipv4/tcp_output.c, tcp_slow_start_after_idle_check()): BBR.
 */
bool facts_tcp_restarts(const char *congestion);

/** facts_gather_limits() - read this process' limits only; facts_gather() does so, too. */
void facts_gather_limits(struct facts *f);
