/*
 * service.h - the measuring service that every agent offers to its network, by a process of its own
 * (service_process.h).
 *
 * Theory of operation. One thread waits for connections and answers pings; each
 * connection has a thread of its own, because measuring is waiting. It listens
 *
 *   - on the node's overlay address, TCP and UDP PROBE_PORT, bound to the
 *     overlay's interface: so the source address is a member's, as WireGuard's
 *     cryptokey routing vouches for;
 *   - on a unix socket of root's, for the coordinator on this very machine;
 *   - for as long as a session asks for it, on one TCP port of every address,
 *     where only that session's data connections are taken.
 *
 * What it can be made to do is bounded by session.h and by the bounds in
 * order.h: one session at a time, so many connections, seconds and bytes.
 */
#pragma once

#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"
#include "measure/result.h"

struct err;
struct service;

/** A member, and how it is reached. */
struct service_member {
    struct ip_addr address;     /* IPv4, on the overlay */
    struct ip_addr underlay;    /* where its sealed frames come from; none: not known */
    char path[RESULT_PATH_MAX]; /* "lan", "direct", "relay", ...; "" for the node itself */
    char name[NAME_MAX_LEN + 1];
    char hostname[NAME_MAX_LEN + 1]; /* of its machine, if that has another name; "" */
};

struct service_config {
    const char *interface;   /* pinned; the overlay's; NULL: bound to none (tests) */
    const char *socket_path; /* pinned; NULL: no unix socket */
    uint16_t port;           /* PROBE_PORT; another one in tests */
};

/**
 * service_new() - start its listening thread; it listens once service_set_members() was called
 * @config:	copied; its texts are pinned
 *
 * Return: 0 or negative errno with words.
 */
int service_new(struct service **ret, const struct service_config *config, struct err *e);

/**
 * service_set_members() - replace the members, who may give orders, and this node's address
 * @own:	none: not known yet; the service listens once it is
 * @members:	@n of them, in any order; copied
 *
 * Without memory the members of before stay. Threads: any.
 */
void service_set_members(
    struct service *s, const struct ip_addr *own, const struct service_member *members, size_t n);

/** service_recheck() - check the interface again, which may have been made anew. Threads: any. */
void service_recheck(struct service *s);

/** service_free() - stop it, and end every connection; NULL is fine. Return: NULL. */
struct service *service_free(struct service *s);
