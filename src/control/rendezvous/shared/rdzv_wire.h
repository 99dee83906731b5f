/*
 * rdzv_wire.h - what a hub and a rendezvous process say to each other, to and from bytes. Pure.
 *
 * A message is a length of 4 bytes, a type of one, and the fields of that type; all numbers are
 * little-endian. Which fields a type has is one table in rdzv_wire.c; docs/wire/rendezvous.md has
 * it in words. Neither end trusts the bytes of the other, least of all the hub: a rendezvous
 * process reads what members' programs send.
 *
 * A blob (rdzv_quota.h) goes in pieces of RDZV_CHUNK bytes. From the process the first piece comes
 * last, so that who has the first piece has all of them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/text.h"
#include "rendezvous/shared/rdzv_record.h"

/** Longest message behind its length, bytes. */
#define RDZV_WIRE_MAX (64u << 10)

/* Outcomes. */
#define RDZV_WIRE_E_SHORT 1 /* not all of it is there yet */
#define RDZV_WIRE_E_BAD   2 /* no message */

enum rdzv_wire_type {
    RDZV_WIRE_NONE,
    /* From the hub. */
    RDZV_WIRE_NETWORK,   /* first: whose rendezvous this is */
    RDZV_WIRE_JOB,       /* there is such a job, with nothing in it */
    RDZV_WIRE_MEMBER,    /* this is a member's address */
    RDZV_WIRE_NO_MEMBER, /* this is not one any more: end its connections */
    RDZV_WIRE_LOAD,      /* a piece of a blob that was kept of a job */
    RDZV_WIRE_LISTENER,  /* a socket comes with the message: serve the job there */
    RDZV_WIRE_CLEAR,     /* a new run of the job begins: end its connections, drop what it keeps */
    RDZV_WIRE_FORGET,    /* the job has been removed */
    RDZV_WIRE_SAVED,     /* all that was told before a SYNC is on the disk, or could not be saved */
    RDZV_WIRE_END,       /* tell what is left, and end; the last type that the hub sends */
    /* From the process. */
    RDZV_WIRE_PUT,     /* keep a piece of a blob */
    RDZV_WIRE_DROP,    /* delete a blob */
    RDZV_WIRE_SYNC,    /* answer with SAVED when all that was told before is on the disk */
    RDZV_WIRE_FACTS,   /* a job's connections, and what it keeps */
    RDZV_WIRE_COUNTS,  /* what was done since the process was started */
    RDZV_WIRE_DAMAGED, /* a blob that was kept of a job cannot be read */
    RDZV_WIRE_N,
};

/** A message; a type has some of the fields. */
struct rdzv_wire {
    enum rdzv_wire_type type;
    uint32_t job;                /* its number, for as long as this hub runs */
    uint32_t run;                /* of the job */
    uint8_t kind;                /* enum rdzv_key_kind: ENTRY or NODE */
    struct rdzv_hash hash;       /* of the blob's name */
    uint16_t piece;              /* from 0 */
    uint16_t n_pieces;           /* of the blob; at least 1 */
    uint8_t has_more;            /* the next message goes on with the blob */
    uint16_t port;               /* of the job, for both protocols */
    uint16_t etcd_port;          /* of the job, as etcd's clients are told */
    uint64_t seq;                /* of a SYNC */
    int32_t error;               /* 0, or negative errno */
    struct ip_addr address;      /* the member's; the hub's IPv4 */
    struct ip_addr address6;     /* the hub's IPv6 */
    uint32_t n_connections;      /* of a job; of all jobs */
    uint8_t n_members;           /* that are connected: 0, 1 (it is @address), or 2 for more */
    uint64_t quiet_ms;           /* since a client sent something */
    uint64_t n_keys;             /* entries of a job */
    uint64_t n_bytes;            /* that they take */
    uint64_t n_refused;          /* requests of a job that were over a limit; @data: which */
    uint64_t n_store_requests;   /* of TCPStore */
    uint64_t n_etcd_requests;    /* of etcd */
    uint64_t n_hung_up;          /* connections that were ended or refused */
    uint64_t n_accepts_deferred; /* how often accepting had to wait for want of descriptors */
    const uint8_t *data;         /* a name, or bytes of a blob; borrowed */
    size_t len;                  /* of them */
};

/** rdzv_wire_encode() - append a message, whose @data is not too long. Without memory @out->failed.
 */
void rdzv_wire_encode(struct str *out, const struct rdzv_wire *m);

/**
 * rdzv_wire_decode() - the message at the beginning of @p
 * @ret:	its @data lies in @p
 * @ret_used:	its bytes
 *
 * Return: 0, RDZV_WIRE_E_SHORT, or RDZV_WIRE_E_BAD.
 */
int rdzv_wire_decode(struct rdzv_wire *ret, const void *p, size_t len, size_t *ret_used);
