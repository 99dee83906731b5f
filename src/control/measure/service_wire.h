/*
 * service_wire.h - what the agent tells its measuring process, to and from bytes. Pure.
 *
 * A message is a length of 4 bytes, a type of one, and the fields of that type; all numbers are
 * little-endian. An address is its 16 bytes; a text is a length of one byte and so many bytes, none
 * of them zero.
 *
 *   CONFIG    interface, socket path, port    once, first
 *   LIST      own address, number             that many MEMBERs follow, and replace all before
 *   MEMBER    address, underlay, path, name, hostname
 *   LOOK      nothing                         the interface may be another one now
 *
 * The process answers nothing, and ends with the connection.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "measure/service.h"

struct str;

/** Longest message, without its length. */
#define SERVICE_WIRE_MAX 320

/** Bytes of the length in front of a message. */
#define SERVICE_WIRE_HEAD 4

/** Most members of a list. */
#define SERVICE_WIRE_MEMBERS_MAX 131072

#define SERVICE_WIRE_INTERFACE_CAP 16 /* with the zero */
#define SERVICE_WIRE_PATH_CAP      128

enum {
    SERVICE_WIRE_E_SHORT = 1, /* more bytes have to come */
    SERVICE_WIRE_E_BAD,       /* it is no message */
};

enum service_wire_type {
    SERVICE_WIRE_NONE,
    SERVICE_WIRE_CONFIG,
    SERVICE_WIRE_LIST,
    SERVICE_WIRE_MEMBER,
    SERVICE_WIRE_LOOK,
    SERVICE_WIRE_N,
};

/** One message; of the fields those of its type count. */
struct service_wire {
    enum service_wire_type type;
    char interface[SERVICE_WIRE_INTERFACE_CAP]; /* CONFIG; "": none */
    char socket_path[SERVICE_WIRE_PATH_CAP];    /* CONFIG; "": none */
    uint16_t port;                              /* CONFIG */
    uint32_t n;                                 /* LIST */
    struct ip_addr own;                         /* LIST; none: not known yet */
    struct service_member member;               /* MEMBER */
};

/** service_wire_encode() - append it to @out, which remembers a failure. */
void service_wire_encode(struct str *out, const struct service_wire *m);

/**
 * service_wire_decode() - the first message of @len bytes
 * @ret_used:	so many bytes it was
 *
 * Return: 0; SERVICE_WIRE_E_SHORT or SERVICE_WIRE_E_BAD, and nothing is written.
 */
int service_wire_decode(struct service_wire *ret, const void *p, size_t len, size_t *ret_used);
