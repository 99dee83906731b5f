/*
 * facts.h - what one machine says about itself before a job.
 *
 * facts_gather() looks; the rest is the struct and its JSON. The limits are
 * those of the process that answers, which on a node is the agent.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct err;

#define FACTS_INTERFACES_MAX 64
#define FACTS_VERSION_MAX    64
#define FACTS_VALUE_MAX      256

/** "No limit", as of RLIMIT_MEMLOCK. */
#define FACTS_UNLIMITED INT64_MAX

/** One address of an interface, in the order in which getifaddrs(3) tells of them. */
struct facts_interface {
    char name[IFNAMSIZ];
    struct ip_addr address;
    bool running; /* up, and with a carrier */
};

/** Versions of what a job is made of; "" for what is not there. */
struct facts_versions {
    char weft[FACTS_VERSION_MAX];
    char kernel[FACTS_VERSION_MAX];
    char python[FACTS_VERSION_MAX];
    char torch[FACTS_VERSION_MAX];
    char nccl[FACTS_VERSION_MAX];
};

struct facts {
    struct facts_versions versions;
    uint64_t nofile_soft;        /* open files */
    uint64_t nofile_hard;        /* to which a program may raise them itself */
    uint64_t memlock_hard;       /* bytes of locked memory */
    bool has_rdma;               /* there is an InfiniBand, RoCE or EFA device */
    uint64_t tcp_receive_max;    /* bytes: third value of net.ipv4.tcp_rmem */
    uint64_t tcp_send_max;       /* bytes: third value of net.ipv4.tcp_wmem */
    char interface[IFNAMSIZ];    /* the overlay's */
    struct ip_addr address;      /* on it, IPv4 */
    struct ip_addr host_address; /* what the machine's own name leads to; none: to nothing */
    char hostname[FACTS_VERSION_MAX + 1]; /* the machine's own name; "": not told */
    char nccl_ifname[FACTS_VALUE_MAX];    /* NCCL_SOCKET_IFNAME in nccl.conf; "": not set there */
    char nccl_family[FACTS_VALUE_MAX];    /* NCCL_SOCKET_FAMILY in nccl.conf */
    uint64_t traffic; /* bits per second on the overlay's interface just now, both ways */
    uint64_t jobs;    /* commands that `weft run` has running */
    size_t n_interfaces;
    struct facts_interface interfaces[FACTS_INTERFACES_MAX];
};

/** facts_encode() - a new reference, NULL for no memory. */
json_t *facts_encode(const struct facts *f);

/** facts_decode() - 0, or -EINVAL with words. */
int facts_decode(struct facts *ret, const json_t *json, struct err *e);

/**
 * facts_gather() - look at this machine
 * @interface:	the overlay's
 * @address:	on it
 *
 * What cannot be found out stays empty. @traffic is left to the caller.
 */
void facts_gather(struct facts *ret, const char *interface, const struct ip_addr *address);

/** facts_gather_limits() - those of this process, as facts_gather() takes them. */
void facts_gather_limits(struct facts *f);

/** software_find() - python, torch and NCCL as installed; the rest is left (software.c). */
void software_find(struct facts_versions *v);
