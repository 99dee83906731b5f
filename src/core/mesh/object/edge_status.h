/*
 * edge_status.h - the status of a MeshEdge: its parts, one for each writer.
 *
 * Theory of operation. Each part has exactly one writer. The agent of a node writes "agent/NAME":
 * how it has applied the edge. The probe of a node writes "probe/NAME": whether the other end is
 * reached from there. Nobody but these two programs of that node may write them (docs/EDGES.md).
 * The hub writes "hub": the state of the edge, which health/pair.h derives from both ends' parts
 * and from what is asked for.
 *
 * Pure: it takes JSON, facts and times, and gives structs, JSON and words; no I/O, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "crypto/x25519.h"
#include "path/loss.h"
#include "path/path.h"
#include "path/rtt.h"

/** Longest sentence in which an agent says what failed, bytes. */
#define EDGE_ERROR_MAX 300

/** Longest clause in which an agent says why packets take no better path, bytes. */
#define EDGE_SAID_WHY_MAX 200

/** Who writes a part. */
enum edge_owner {
    EDGE_OWNER_AGENT,
    EDGE_OWNER_PROBE,
    EDGE_OWNER_N,
};

/** edge_owner_names - "agent", "probe". */
extern const char *const edge_owner_names[];

/** The part of an agent: how it has applied its edge to one peer. */
struct edge_said {
    int64_t handshake_at; /* time of the last handshake, s since 1970; 0: there was none */
    int64_t fell_at;      /* when its direct path was lost, s since 1970; 0: it was not lost, or is
                             direct again */
    int64_t path_at;      /* since when @path is what it is, by the hub's clock, s since 1970; 0:
                             not known */
    char *error;          /* owns; why the agent cannot apply this edge; NULL: it can */
    char *why;            /* owns; why @path is no better one, a clause; NULL: not reported */
    struct endpoint endpoint; /* where the agent sends to; none: not reported */
    struct x25519_public key; /* the peer's key as applied; none: not reported */
    struct loss_rate loss;    /* of what the peer sends to the agent's node; as it was reported, and
                                 that was when it began, ended, or the handshake changed */
    struct rtt_spread spread; /* round trips of its direct path; as it was reported, and that was
                                 when it differed much from before */
    uint8_t path;             /* enum path_kind; PATH_KIND_N: not reported */
    bool has_handshake;       /* @handshake_at was reported */
    bool is_alarm;            /* a direct path is wanted, and there is none */
    bool is_relay_better;     /* there was a direct path, and the relay was chosen over it */
};

/** Does the other end answer a probe? */
enum edge_reach {
    EDGE_REACH_UNKNOWN, /* not asked yet, or there is nobody to ask */
    EDGE_REACH_REACHED,
    EDGE_REACH_SILENT,
    EDGE_REACH_N,
};

/** The part of a probe: whether its node reaches one peer. */
struct edge_probed {
    struct endpoint endpoint; /* the peer's underlay endpoint that answered, or was asked last */
    uint32_t rtt_us;          /* round trip through the tunnel, us; 0: not measured */
    uint32_t underlay_rtt_us; /* round trip to @endpoint, us; 0: not measured */
    uint8_t tunnel;           /* enum edge_reach: pings through the tunnel */
    uint8_t underlay;         /* enum edge_reach: UDP to the endpoint, and its answer */
    bool is_heard;            /* UDP of the peer arrives at this node, whether or not it answers */
};

#define EDGE_SAID_NULL                                                                             \
    {                                                                                              \
        .path = PATH_KIND_N                                                                        \
    }

/** edge_loss_encode() - a rate as JSON, a new reference; NULL: nothing is known, or no memory. */
json_t *edge_loss_encode(const struct loss_rate *r);

/** edge_spread_encode() - round trips as JSON, a new reference; NULL: not known, or no memory. */
json_t *edge_spread_encode(const struct rtt_spread *s);

/** edge_probed_encode() - as JSON; a new reference, NULL: no memory. */
json_t *edge_probed_encode(const struct edge_probed *p);

/* ---- the parts of one writer for all its edges, by the other end's name ---------------------- */

/*
 * A writer reports what has changed: for each peer either a new part, or null when the part is
 * gone. A report belongs to a run of the writer and has a number in that run. A report is taken in
 * if it is the next one, or the last one again because its answer was lost. With any other number a
 * report is missing between, and the writer is asked to begin anew. It then reports all its parts,
 * in as many reports as needed. The first of them is marked as the begin and the last one as the
 * end. At the end, the parts of peers that none of them named are removed; until then they stay.
 * Fields that this version does not know are ignored, because the node may be newer.
 */

/** The part of one writer for one edge. On the heap; the peer's name is its last member. */
struct edge_part {
    union {
        struct edge_said said;     /* EDGE_OWNER_AGENT */
        struct edge_probed probed; /* EDGE_OWNER_PROBE */
    };
    int64_t since; /* in what is kept: when it became what it says, s since 1970; 0: not known */
    bool is_old;   /* in what is kept: not reported since the writer began anew */
    bool is_gone;  /* in a report: the part is to be removed */
    char peer[];   /* the other end's name */
};

struct edge_parts {
    struct edge_part **items; /* owns, also what they point to; sorted by peer in byte order */
    size_t n;
    size_t cap;
    enum edge_owner owner;
};

/** edge_parts_deinit() - release all. */
void edge_parts_deinit(struct edge_parts *p);

/** edge_parts_find() - lends the part for @peer; NULL: there is none. */
struct edge_part *edge_parts_find(const struct edge_parts *p, const char *peer);

/**
 * edge_parts_put() - replace, or add, one part
 * @part:	taken, also on failure
 *
 * Return: 0; -ENOSPC: EDGE_PARTS_MAX are kept; -ENOMEM.
 */
int edge_parts_put(struct edge_parts *p, struct edge_part *part);

/** edge_parts_remove() - remove the part for @peer, if there is one. */
void edge_parts_remove(struct edge_parts *p, const char *peer);

/** edge_parts_begin() - the writer begins anew: mark all parts as old. */
void edge_parts_begin(struct edge_parts *p);

/** edge_parts_end() - the writer has reported all its parts: remove those that are still old. */
void edge_parts_end(struct edge_parts *p);

/**
 * edge_parts_decode() - {"PEER": {...}, "GONE": null}
 * @ret:	all zero but for its owner; untouched on failure
 * @json:	borrowed; NULL: none
 * @at:		s since 1970: the time by which ages count
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int edge_parts_decode(struct edge_parts *ret, const json_t *json, int64_t at, struct err *e);

/** edge_part_encode() - one part as JSON, by the clock @at; a new reference, NULL: no memory. */
json_t *edge_part_encode(const struct edge_part *part, enum edge_owner owner, int64_t at);

/**
 * edge_parts_encode() - as many parts as fit into @max bytes of JSON text, those in trouble first
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *edge_parts_encode(const struct edge_parts *p, size_t max, int64_t at);

/* ---- which report follows which ------------------------------------------------------------- */

/** Which report of a writer was taken in last. */
struct edge_sequence {
    uint64_t run;  /* of the writer, random; 0: none has been heard */
    uint64_t last; /* number of the last one that was taken in */
};

/**
 * edge_sequence_takes() - the report number @n of @run has come; @begins: it begins anew
 *
 * Return: true if it follows, or begins anew; false: something between was lost, and the writer has
 * to begin anew.
 */
bool edge_sequence_takes(struct edge_sequence *s, uint64_t run, uint64_t n, bool begins);
