/*
 * preflight.h - would this job run? Facts in, verdicts out.
 *
 * Pure: survey.c measures, preflight_text.c prints. Each thing that can be
 * wrong is a row of PREFLIGHT_FAULTS; each finding of one names who it is
 * about, what was seen, and what would mend it.
 *
 * A pair's verdict is that of its gravest finding; the job's that of the
 * gravest of all. Notes change no verdict.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "measure/coordinator.h"
#include "measure/facts.h"
#include "measure/result.h"

/** What can be wrong: identifier, name in the JSON, what it means. Ordered as they are told. */
#define PREFLIGHT_FAULTS(X)                                                                        \
    X(ABSENT, "absent", "a member cannot be asked, so its pairs are not measured")                 \
    X(UNREACHABLE, "unreachable", "two members do not reach each other")                           \
    X(ONE_WAY, "one-way", "packets pass in one direction only")                                    \
    X(MTU, "mtu", "packets of the size that the kernel sends are lost")                            \
    X(TCP, "tcp", "pings pass, but a TCP connection does not carry data")                          \
    X(LOSS, "loss", "packets are lost")                                                            \
    X(SLOW, "slow", "a pair is far slower than the others, or than was expected")                  \
    X(BUFFERS, "buffers", "the kernel's TCP buffers hold a connection back")                       \
    X(CLOCK, "clock", "a clock is wrong")                                                          \
    X(NCCL_INTERFACE, "nccl-interface", "NCCL would not take the overlay, or not only it")         \
    X(GLOO_INTERFACE, "gloo-interface", "Gloo would not take the overlay")                         \
    X(NAMES, "names", "a member's name leads elsewhere")                                           \
    X(HOST_NAME, "host-name", "a member's host name, which rank 0 announces, does not lead to it") \
    X(FILES, "open-files", "too few files may be open")                                            \
    X(MEMLOCK, "memlock", "too little memory may be locked for the RDMA device")                   \
    X(VERSIONS, "versions", "versions differ")                                                     \
    X(LIVE, "live", "something uses the network already, so throughput was not measured")          \
    X(PATH, "path", "pairs talk through a hub")

enum preflight_fault {
#define X(id, name, help) PREFLIGHT_##id,
    PREFLIGHT_FAULTS(X)
#undef X
        PREFLIGHT_FAULT_N,
};

enum preflight_level {
    PREFLIGHT_OK,
    PREFLIGHT_NOTE, /* good to know */
    PREFLIGHT_WARN, /* it will run, but not well, or not always */
    PREFLIGHT_NO,   /* it will not run */
    PREFLIGHT_LEVEL_N,
};

/** What two clocks may differ by: more breaks elastic rendezvous, which compares heartbeats. */
#define PREFLIGHT_CLOCK_NO_US   5000000
#define PREFLIGHT_CLOCK_WARN_US 500000

/** Percent of a train's pings that may be lost. */
#define PREFLIGHT_LOSS_WARN 5
#define PREFLIGHT_LOSS_NO   20

/** A pair is slow below this part of the median pair. */
#define PREFLIGHT_SLOW_PART 8

/** Bits per second on the overlay that are somebody's job. */
#define PREFLIGHT_LIVE_RATE 10000000

/** Open files that a rank needs, whatever its peers, and for each member of the network. */
#define PREFLIGHT_FILES_BASE 1024
#define PREFLIGHT_FILES_EACH 64

struct preflight_node {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address;
    bool present;                  /* it could be asked, and @facts are there */
    char why[COORDINATOR_WHY_MAX]; /* it could not */
    struct facts facts;
    unsigned names_missing;    /* of the other members, that lead nowhere */
    char host_name_wrong[160]; /* where its host name does not lead to it, and where to; "" */
    char names_wrong[160];     /* the first that leads elsewhere, and where; "" if none */
};

struct preflight_pair {
    size_t a; /* a < b */
    size_t b;
    bool has_idle[2]; /* [0]: a measured b; [1]: b measured a */
    struct idle_test idle[2];
    uint32_t heard[2]; /* pings that reached b from a; a from b */
    bool has_bulk;     /* measured by a: out is towards b */
    struct bulk one;   /* one stream */
    struct bulk many;  /* several */
};

/** Variables of the job that decide about interfaces; NULL or "": not set. */
struct preflight_environment {
    const char *nccl_ifname;
    const char *nccl_family;
    const char *gloo_ifname;
    bool keeps_host_name; /* it announces the machine's, not one that weft run gives it */
    bool plain;           /* it is not started with `weft run`, which sets what is not set */
};

struct preflight_input {
    const struct preflight_node *nodes; /* borrowed */
    size_t n_nodes;
    const struct preflight_pair *pairs; /* borrowed; all of them, by rounds_index() */
    size_t n_pairs;
    struct preflight_environment env;
    uint64_t expect_bps; /* that every pair must reach; 0: nothing is expected */
    bool skipped_bulk;   /* because of a job that runs */
};

#define PREFLIGHT_NOBODY SIZE_MAX

struct preflight_finding {
    enum preflight_fault fault;
    enum preflight_level level;
    size_t a;       /* about this member; PREFLIGHT_NOBODY: about the job */
    size_t b;       /* and this one; PREFLIGHT_NOBODY: about @a, or @a and all others */
    char text[256]; /* what was seen, a sentence without its end */
    char fix[256];  /* what would mend it; "" for a note */
};

struct preflight_report {
    struct preflight_finding *items; /* owns; by level, gravest first, then by fault */
    size_t n;
    size_t cap;
    bool failed;                       /* there was no memory for all of them */
    enum preflight_level *pair_levels; /* owns; by rounds_index() */
    enum preflight_level level;        /* of the job */
};

#define PREFLIGHT_REPORT_NULL                                                                      \
    {                                                                                              \
        0                                                                                          \
    }

/** preflight_report_deinit() - idempotent, safe on PREFLIGHT_REPORT_NULL. */
void preflight_report_deinit(struct preflight_report *r);

/**
 * preflight_judge() - find what is wrong, with whom it is about and what would mend it
 * @ret:	to be released with preflight_report_deinit(); untouched on failure
 * @in:		borrowed during the call
 *
 * Return: 0 or -ENOMEM.
 */
int preflight_judge(struct preflight_report *ret, const struct preflight_input *in);

/** preflight_is_slow() - is it slower than an eighth of @median, in bits per second? */
bool preflight_is_slow(const struct preflight_pair *p, uint64_t median);

/** preflight_loses() - does a train of this pair lose more than it should? */
bool preflight_loses(const struct preflight_pair *p);

/** preflight_median_rate() - median of the pairs' rates, in bits per second; 0: none was measured.
 */
uint64_t preflight_median_rate(const struct preflight_pair *pairs, size_t n);

/** preflight_fault_name() - "mtu", as in the JSON. */
const char *preflight_fault_name(enum preflight_fault f);

/** preflight_level_name() - "ok", "note", "warn", "no". */
const char *preflight_level_name(enum preflight_level l);
