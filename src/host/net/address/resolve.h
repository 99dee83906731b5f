/*
 * resolve.h - addresses from names: of hosts, of this machine, and without waiting.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct resolve_task;

/* From what a person writes to addresses: host names, and this machine's own. */

/**
 * resolve_host() - "HOST", "HOST:PORT", "1.2.3.4", "[v6]:PORT" or "v6" to endpoints
 * @dflt_port:	when the text has none
 * @ret:	room for @cap
 * @ret_n:	how many there are, at least 1, in the resolver's order
 *
 * Blocks for as long as the resolver does, if it is a name.
 *
 * Return: 0 or negative errno with words.
 */
int resolve_host(const char *text, uint16_t dflt_port, struct endpoint *ret, unsigned cap,
    unsigned *ret_n, struct err *e);

/**
 * resolve_check() - could @text be given to resolve_host()? No name is looked up.
 * @ret:	the address when it is one; none when it is a name
 *
 * Return: 0, or -EINVAL with words.
 */
int resolve_check(const char *text, struct ip_addr *ret, struct err *e);

/**
 * resolve_own() - the addresses from which this machine speaks to the rest of the world
 * @ret:	room for both: v4 first, as far as there is a default route
 *
 * Nothing is sent: the kernel is asked which source it would choose.
 *
 * Return: how many, 0 to 2.
 */
unsigned resolve_own(struct ip_addr ret[static 2]);

/*
 * Does anything on this machine lead a name somewhere, besides our own hosts block?
 *
 * The C library's resolver is asked as programs ask it, with all of
 * nsswitch.conf. Once our block of the hosts file has the name, that answers
 * first; so then the name servers of resolv.conf are asked directly.
 */

/** A name, and what it leads to by our own doing. */
struct name_query {
    const char *name;         /* borrowed */
    struct ip_addr address4;  /* of the node */
    struct ip_addr address6;  /* likewise */
    struct ip_prefix ours[2]; /* the network's blocks: what leads into them is of our own doing */
};

enum name_found {
    NAME_FOUND_NOBODY,   /* no such name */
    NAME_FOUND_SILENT,   /* the resolver, or its servers, do not answer */
    NAME_FOUND_SOMEBODY, /* it resolves to an address that is not ours */
};

/**
 * name_lookup() - ask, and wait for as long as the resolver does
 * @ret_where:	SOMEBODY: the address; none when it is not known. Else untouched
 *
 * Threads: any; blocks, perhaps for many seconds.
 */
enum name_found name_lookup(const struct name_query *q, struct ip_addr *ret_where);

/*
 * Look names up without waiting for the resolver.
 *
 * Theory of operation. The C library's resolver blocks, for half a minute and more where name
 * servers do not answer. So a worker (os/worker.h) asks it. An owner who frees the task does not
 * wait for it. The owner asks from time to time whether the task is done.
 *
 * Threads: all calls are the owner's.
 */

/** Most texts of a task, and most addresses that are taken of one name. */
#define RESOLVE_TASK_TEXTS 16
#define RESOLVE_TASK_EACH  8

/** What one text leads to. */
struct resolve_answer {
    char text[HOST_PORT_MAX + 1];                 /* what was asked for */
    struct endpoint endpoints[RESOLVE_TASK_EACH]; /* in the resolver's order, v4 and v6 */
    unsigned n;                                   /* 0: none, and @why says why */
    struct err why;
};

/**
 * resolve_task_start() - begin to look up
 * @texts:	"HOST" or "HOST:PORT", as for resolve_host(); copied
 * @n:		1 to RESOLVE_TASK_TEXTS
 * @dflt_port:	of those without a port
 *
 * Return: 0 or negative errno with words.
 */
int resolve_task_start(struct resolve_task **ret, const char (*texts)[HOST_PORT_MAX + 1],
    unsigned n, uint16_t dflt_port, struct err *e);

/**
 * resolve_task_take() - is it done?
 * @ret:	room for RESOLVE_TASK_TEXTS answers: one of each text, in their order
 *
 * Return: how many; 0 while it is not, and @ret is untouched.
 */
unsigned resolve_task_take(struct resolve_task *t, struct resolve_answer *ret);

/** resolve_task_free() - may be called before the task is done. */
struct resolve_task *resolve_task_free(struct resolve_task *t);
