/*
 * service_process.h - the measuring service in a process of its own, without any capability.
 *
 * Theory of operation. The service parses and moves bytes that come from members, while the agent
 * may change the machine's network and has the node's key. The two are kept apart: the agent starts
 * this same program again (agent/node_measure.h) with one end of a socket pair, and sends what
 * service.h needs to know through it (struct service_wire). The process reads its configuration,
 * enters a sandbox, and offers the service until that connection ends.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/addr.h"
#include "measure/service.h"

/**
 * service_process_run() - run the service in this process, until the connection @fd ends
 * @fd:	the connection to the agent; borrowed; a stream socket
 *
 * Threads: call it while the process has only one thread.
 *
 * Return: 0; or negative errno with words: -EINVAL when the agent sends what is no message, -EPROTO
 * when one is out of order.
 */
int service_process_run(int fd, struct err *e);

/* ---- what the agent says --------------------------------------------------------------------- */

/*
 * A message is a line of JSON, as an order is, and written and read by a table like one (table.h).
 * The fields of each kind are in docs/wire/measure.md, "The measuring process". The process sends
 * no answers, and ends when the connection does.
 */

/** Most jobs that the agent tells of. */
#define SERVICE_WIRE_JOBS_MAX 65536

/** Most members of a list. */
#define SERVICE_WIRE_MEMBERS_MAX 131072

#define SERVICE_WIRE_INTERFACE_CAP 16 /* bytes, with the terminating zero */
#define SERVICE_WIRE_PATH_CAP      128

enum service_wire_type {
    SERVICE_WIRE_CONFIG, /* once, as the first message */
    SERVICE_WIRE_LIST,   /* that many MEMBERs follow, and replace the former list */
    SERVICE_WIRE_MEMBER,
    SERVICE_WIRE_LOOK, /* the interface may have been replaced: check it */
    SERVICE_WIRE_JOBS, /* so many commands of jobs run here that the agent knows of, which this
                          process cannot see: they are another user's */
    SERVICE_WIRE_N,
};

/** One message. Only the fields of its type are used. */
struct service_wire {
    enum service_wire_type type;
    char interface[SERVICE_WIRE_INTERFACE_CAP]; /* CONFIG; "": none */
    char socket_path[SERVICE_WIRE_PATH_CAP];    /* CONFIG; "": none */
    uint32_t port;                              /* CONFIG */
    uint32_t n;                                 /* LIST: how many members follow; JOBS: how many */
    struct ip_addr own;                         /* LIST; none: not known yet */
    struct service_member member;               /* MEMBER */
};

/** service_wire_encode() - a message as JSON: a new reference; NULL for no memory. */
json_t *service_wire_encode(const struct service_wire *m);

/**
 * service_wire_decode() - check every field against its bounds, and take them in
 * @ret:	untouched on failure
 *
 * Return: 0; or -EINVAL with words that name the field.
 */
int service_wire_decode(struct service_wire *ret, const json_t *json, struct err *e);
