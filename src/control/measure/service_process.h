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

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "measure/service.h"

struct str;

/**
 * service_process_run() - run the service in this process, until the connection @fd ends
 * @fd:	the connection to the agent; borrowed; a blocking socket
 *
 * Threads: call it while the process has only one thread.
 *
 * Return: 0; or negative errno with words: -EPROTO when the agent sends a message that is malformed
 * or out of order.
 */
int service_process_run(int fd, struct err *e);

/* ---- the wire -------------------------------------------------------------------------------- */

/*
 * A message is a length of 4 bytes, a type of one byte, and the fields of that type. All numbers
 * are little-endian. An address has 16 bytes. A text is a length of one byte and that many bytes,
 * none of which is zero.
 *
 *   CONFIG    interface, socket path, port    sent once, as the first message
 *   LIST      own address, number             that many MEMBERs follow and replace the former list
 *   MEMBER    address, underlay, path, name, hostname, one byte: 1 for a hub, else 0; one byte: 1
 *             if a key of 32 bytes follows, which checks its orders, else 0
 *   LOOK      no fields                       the interface may have been replaced: check it
 *   JOBS      number                          so many commands of jobs run here that the agent
 *             knows of, which this process cannot see: they are another user's
 *
 * The process sends no answers, and ends when the connection does.
 */

/** Longest message, bytes; its length field does not count. */
#define SERVICE_WIRE_MAX 320

/** Bytes of the length field in front of a message. */
#define SERVICE_WIRE_HEAD 4

/** Most jobs that the agent tells of. */
#define SERVICE_WIRE_JOBS_MAX 65536

/** Most members of a list. */
#define SERVICE_WIRE_MEMBERS_MAX 131072

#define SERVICE_WIRE_INTERFACE_CAP 16 /* bytes, with the terminating zero */
#define SERVICE_WIRE_PATH_CAP      128

enum {
    SERVICE_WIRE_E_SHORT = 1, /* the message is incomplete: more bytes have to come */
    SERVICE_WIRE_E_BAD,       /* the bytes are not a message */
};

enum service_wire_type {
    SERVICE_WIRE_NONE,
    SERVICE_WIRE_CONFIG,
    SERVICE_WIRE_LIST,
    SERVICE_WIRE_MEMBER,
    SERVICE_WIRE_LOOK,
    SERVICE_WIRE_JOBS,
    SERVICE_WIRE_N,
};

/** One message. Only the fields of its type are used. */
struct service_wire {
    enum service_wire_type type;
    char interface[SERVICE_WIRE_INTERFACE_CAP]; /* CONFIG; "": none */
    char socket_path[SERVICE_WIRE_PATH_CAP];    /* CONFIG; "": none */
    uint16_t port;                              /* CONFIG */
    uint32_t n;                                 /* LIST: how many members follow; JOBS: how many */
    struct ip_addr own;                         /* LIST; none: not known yet */
    struct service_member member;               /* MEMBER */
};

/** service_wire_encode() - append a message to @out, which remembers a failure. */
void service_wire_encode(struct str *out, const struct service_wire *m);

/**
 * service_wire_decode() - read the first message in the @len bytes at @p
 * @ret_used:	how many bytes that message had, with its length field
 *
 * Return: 0; or SERVICE_WIRE_E_SHORT or SERVICE_WIRE_E_BAD, and then nothing is written.
 */
int service_wire_decode(struct service_wire *ret, const void *p, size_t len, size_t *ret_used);
