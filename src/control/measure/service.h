/*
 * service.h - the measuring service that every agent offers to its network, in a process of its own
 * (service_process.h).
 *
 * Theory of operation. One thread waits for connections and answers pings. Each connection has a
 * thread of its own, because a measurement blocks. The service listens
 *
 *   - on the node's overlay address, TCP and UDP PROBE_PORT, bound to the overlay's interface.
 *     WireGuard's cryptokey routing guarantees there that a source address is a member's machine's.
 *     That it is the member itself, and not another program there, a session is begun with a proof
 *     of (wire/measure_proof.h);
 *   - on a unix socket for its own user and group, for a coordinator on this machine;
 *   - while a session needs it, on one TCP port of every address of this machine, where only that
 *     session's data connections are accepted.
 *
 * What others can make it do is limited by session.h, which allows one session at a time, by the
 * bounds of times and bytes in order.h, and by a limit on connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/parse.h"
#include "measure/result.h"
#include "wire/measure_proof.h"

struct service;

/** Most connections at once. */
#define SERVICE_CONNECTIONS_MAX 160
/** A member, and how it is reached. */
struct service_member {
    struct ip_addr address;     /* IPv4, on the overlay */
    struct ip_addr underlay;    /* address from which its sealed frames come; none: not known */
    char path[RESULT_PATH_MAX]; /* "lan", "direct", "relay", ...; "" for the node itself */
    char name[NAME_MAX_LEN + 1];
    char hostname[NAME_MAX_LEN + 1]; /* of its machine, if that is another name; else "" */
    bool has_key;                    /* @key is known: an agent of ours runs there, or a hub */
    struct measure_proof_key key;    /* checks the orders that it gives to this node */
    uint32_t stun_port; /* of a hub: where it answers STUN, at @underlay; 0: not known */
    bool is_hub; /* it measures nothing; with @has_key it may begin a session in the background, in
                    which it sends (session.h). Else who connects from its address is some program
                    of the hub's machine */
};

/**
 * service_new() - start the listening thread, which listens once service_set_members() was called
 * @interface:	the overlay's; pinned; NULL: bound to no interface (tests)
 * @socket_path:	pinned; NULL: no unix socket
 * @port:	PROBE_PORT; another one in tests
 *
 * Return: 0 or negative errno with words.
 */
int service_new(struct service **ret, const char *interface, const char *socket_path, uint16_t port,
    struct err *e);

/**
 * service_set_members() - replace this node's address and the members, who may give orders
 * @own:	this node's address; none: not known yet, and the service does not listen on it
 * @members:	@n of them, in any order; copied
 *
 * If there is no memory, the former address and members stay. Threads: any.
 */
void service_set_members(
    struct service *s, const struct ip_addr *own, const struct service_member *members, size_t n);

/** service_set_jobs() - so many commands of jobs are known to run here. Threads: any. */
void service_set_jobs(struct service *s, uint32_t n);

/** service_recheck() - check whether the interface was replaced by a new one. Threads: any. */
void service_recheck(struct service *s);

/** service_free() - stop listening; connections end by themselves. */
struct service *service_free(struct service *s);
