/*
 * preflight.h - judges from the members' facts and measurements whether a job would run.
 *
 * Each thing that can be wrong is a row of PREFLIGHT_FAULTS. A finding is one case of such a fault:
 * it names the members that it is about, what was seen, and what would mend it.
 *
 * The level of a pair is that of its gravest finding, and the level of the job is that of the
 * gravest finding of all. A job with nothing worse than notes would run well.
 *
 * Pure: survey.c measures, and preflight_text.c prints.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "measure/coordinator.h"
#include "measure/facts.h"
#include "measure/result.h"

struct str;

/**
 * What can be wrong: identifier, that of its row in health/finding.h (CODE_N: it has none), name in
 * the JSON, meaning. Findings of the same level are printed in this order.
 */
#define PREFLIGHT_FAULTS(X)                                                                        \
    X(INTERFACE, INTERFACE_AWAY, "interface", "this node's interface is not as it should be")      \
    X(HUB, HUB_UNREACHED, "hub",                                                                   \
        "the hub, at which a job's members meet, does not answer this node")                       \
    X(ABSENT, READY_ABSENT, "absent", "a member cannot be asked, so its pairs are not measured")   \
    X(UNREACHABLE, PAIR_UNREACHED, "unreachable", "two members do not reach each other")           \
    X(ONE_WAY, WAY_DEAF, "one-way", "packets pass in one direction only")                          \
    X(MTU, PAIR_HOLE, "mtu", "packets of the size that the kernel sends are lost")                 \
    X(TCP, PAIR_NO_TCP, "tcp", "pings pass, but a TCP connection does not carry data")             \
    X(LOSS, WAY_LOSS, "loss", "packets are lost")                                                  \
    X(SLOW, PAIR_SLOW, "slow", "a pair is far slower than the others, or than was expected")       \
    X(BUFFERS, PAIR_BUFFERS, "buffers", "the kernel's TCP buffers hold a connection back")         \
    X(CLOCK, CLOCKS_DIFFER, "clock", "a clock is wrong")                                           \
    X(NCCL_INTERFACE, READY_NCCL, "nccl-interface",                                                \
        "NCCL would not take the overlay, or not only it")                                         \
    X(GLOO_INTERFACE, READY_GLOO, "gloo-interface", "Gloo would not take the overlay")             \
    X(NAMES, READY_NAMES, "names", "a member's name leads elsewhere")                              \
    X(HOST_NAME, READY_HOST_NAME, "host-name",                                                     \
        "a member's host name, which rank 0 announces, does not lead to it")                       \
    X(FILES, READY_FILES, "open-files", "too few files may be open")                               \
    X(MEMLOCK, READY_MEMLOCK, "memlock", "too little memory may be locked for the RDMA device")    \
    X(VERSIONS, READY_VERSIONS, "versions", "versions differ")                                     \
    X(LIVE, CODE_N, "live", "something uses the network already, so throughput was not measured")  \
    X(PATH, CODE_N, "path", "pairs talk through a hub")

enum preflight_fault {
#define X(id, code, name, help) PREFLIGHT_##id,
    PREFLIGHT_FAULTS(X)
#undef X
        PREFLIGHT_FAULT_N,
};

enum preflight_level {
    PREFLIGHT_OK,   /* nothing was found */
    PREFLIGHT_NOTE, /* worth knowing, and no reason against the job */
    PREFLIGHT_WARN, /* the job will run, but not well, or not always */
    PREFLIGHT_NO,   /* the job will not run */
    PREFLIGHT_LEVEL_N,
};

/**
 * Bits per second on the overlay's interface, both ways together, from which on the traffic is
 * taken for that of a job.
 */
#define PREFLIGHT_LIVE_RATE 10000000

/** A member: what it said of itself, and how names resolve. */
struct preflight_node {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address;        /* on the overlay */
    bool present;                  /* it could be asked, and has sent its @facts */
    bool is_stock;                 /* no agent runs there that could be asked */
    char why[COORDINATOR_WHY_MAX]; /* why it could not be asked; "" when it could */
    char no_path[160]; /* why this machine's packets do not reach it, of its agent; "": they may */
    struct facts facts;
    unsigned names_missing; /* how many of the other members' names do not resolve on it */
    /* What is wrong with its own host name on another member, as words; "" if nothing is. */
    char host_name_wrong[160];
    /* The first of the members' names that resolves to another address on it, and that address, as
     * words; "" if there is none. */
    char names_wrong[160];
};

/** What was measured between two members. */
struct preflight_pair {
    size_t a;                 /* index of a member; a < b */
    size_t b;                 /* index of the other member */
    bool has_idle[2];         /* which of @idle are set */
    struct idle_test idle[2]; /* [0]: as a measured b; [1]: as b measured a */
    uint32_t heard[2];        /* [0]: pings from a that reached b; [1]: from b that reached a */
    bool has_loss[2];         /* which of @loss are set */
    struct loss_test loss[2]; /* [0]: datagrams from a to b; [1]: from b to a */
    bool has_bulk;    /* @one and @many are set; a measured them, so their out is towards b */
    struct bulk one;  /* throughput of one TCP connection */
    struct bulk many; /* throughput of several TCP connections together */
};

/** The job's environment, as far as it decides about interfaces and names. */
struct preflight_environment {
    const char *nccl_ifname; /* borrowed; NCCL_SOCKET_IFNAME; NULL or "": not set */
    const char *nccl_family; /* borrowed; NCCL_SOCKET_FAMILY; NULL or "": not set */
    const char *gloo_ifname; /* borrowed; GLOO_SOCKET_IFNAME; NULL or "": not set */
    bool keeps_host_name;    /* the job sees the machine's own host name, not the node's name */
    bool plain; /* the job is started without `weft run`, which sets the variables above */
};

/** What is judged. */
struct preflight_input {
    const struct preflight_node *nodes; /* borrowed */
    size_t n_nodes;
    const struct preflight_pair *pairs; /* borrowed; all pairs of members, by rounds_index() */
    size_t n_pairs;
    struct preflight_environment env;
    const char *own_fault; /* borrowed; why the interface of the first of @nodes, this machine's, is
                              not as it should be; NULL: it is */
    const char *hub_away;  /* borrowed; the hub that does not answer this machine's agent; NULL: it
                              answers */
    uint64_t expect_bps;   /* rate that every pair must reach; 0: nothing is expected */
    bool skipped_bulk; /* neither throughput nor loss was measured, because the network is in use */
    bool is_quick;     /* neither was to be measured */
};

/** In place of a member's index: no member. */
#define PREFLIGHT_NOBODY SIZE_MAX

/** One thing that is wrong. */
struct preflight_finding {
    enum preflight_fault fault;
    enum preflight_level level;
    size_t a;       /* the member that it is about; PREFLIGHT_NOBODY: the whole job */
    size_t b;       /* the other member of the pair; PREFLIGHT_NOBODY: it is not about a pair */
    char text[256]; /* what was seen: a sentence without its full stop */
    char fix[256];  /* what would mend it, without a full stop; "": no advice */
};

/** What preflight_assess() has found. */
struct preflight_report {
    struct preflight_finding *items; /* owns; sorted by level, gravest first, then by fault */
    size_t n;
    size_t cap;                        /* room in @items */
    bool failed;                       /* memory ran out, and a finding is missing */
    enum preflight_level *pair_levels; /* owns; level of each pair, by rounds_index() */
    enum preflight_level level;        /* level of the whole job */
};

#define PREFLIGHT_REPORT_NULL {0}

/** preflight_report_deinit() - free the lists; idempotent, safe on PREFLIGHT_REPORT_NULL. */
void preflight_report_deinit(struct preflight_report *r);

/**
 * preflight_assess() - find what is wrong, which members it is about, and what would mend it
 * @ret:	to be released with preflight_report_deinit(); untouched on failure
 * @in:		borrowed during the call
 *
 * Return: 0 or -ENOMEM.
 */
int preflight_assess(struct preflight_report *ret, const struct preflight_input *in);

/**
 * preflight_is_slow() - is the pair slower than an eighth of the median pair?
 * @median:	from preflight_median_rate(), in bits per second
 *
 * Return: false also when the pair's throughput was not measured.
 */
bool preflight_is_slow(const struct preflight_pair *p, uint64_t median);

/** preflight_compare_rates() - of two uint64_t, for qsort(). */
int preflight_compare_rates(const void *a, const void *b);

/** preflight_encode_rates() - those of @b, which was measured if @has. */
json_t *preflight_encode_rates(bool has, const struct bulk *b);

/**
 * preflight_restarts() - does TCP between these two begin with a small window after a pause?
 * @a:		the first node of @p
 * @b:		the second
 *
 * By the connections that were tested, or else by how the machines are set up.
 *
 * Return: true if it does at one of them at least, and for a node that has not said.
 */
bool preflight_restarts(
    const struct preflight_pair *p, const struct preflight_node *a, const struct preflight_node *b);

/** How much of what is sent in one direction of a pair is lost. */
struct preflight_loss {
    bool by_datagrams; /* else by the pings of a train, too few to show less than a few percent */
    uint32_t sent;
    uint32_t lost;
    uint32_t ppm; /* @lost of a million that are sent, rounded down */
};

/**
 * preflight_find_loss() - what is known of the loss in a direction of a pair
 * @from_b:	false: from a to b; true: from b to a
 *
 * Return: false: nothing is known, since nothing was answered or measured.
 */
bool preflight_find_loss(const struct preflight_pair *p, bool from_b, struct preflight_loss *ret);

/**
 * preflight_loss_level() - what does a loss do to a job?
 * @ppm:	of a million packets so many are lost
 * @rtt_us:	median round trip time; with a longer one TCP recovers more slowly
 *
 * A thousandth is worth a look. From one percent, over more than 5 ms, a connection has a tenth of
 * its rate, and a job that waits for the slowest pair has no more. From a fifth, nothing works.
 */
enum preflight_level preflight_loss_level(uint32_t ppm, uint32_t rtt_us);

/**
 * preflight_tcp_rate() - bits per second that one TCP connection gets in spite of a loss
 * @mss:	bytes
 *
 * The macroscopic behaviour of Mathis, Semke, Mahdavi and Ott (1997), of Reno and of CUBIC where
 * that does as Reno (RFC 9438, section 4.3). BBR does better.
 */
double preflight_tcp_rate(uint32_t mss, uint32_t rtt_us, uint32_t ppm);

/** preflight_loses() - is more lost in either direction than chance explains, or than does not
 * matter? */
bool preflight_loses(const struct preflight_pair *p);

/**
 * preflight_median_rate() - median of the rates of those pairs that were measured
 * @pairs:	@n of them
 *
 * Return: bits per second; 0 when no pair was measured, or without memory.
 */
uint64_t preflight_median_rate(const struct preflight_pair *pairs, size_t n);

/** The names of faults in the JSON, such as "mtu". */
extern const char *const preflight_fault_names[];

/** "ok", "note", "warn" and "no". */
extern const char *const preflight_level_names[];

/*
 * A report of preflight.h as JSON, and as text for people.
 *
 * Programs rely on the JSON: fields may be added to it, but none is renamed. Pure.
 */

/**
 * preflight_encode() - the report as JSON
 * @in:		what was judged; borrowed
 * @elapsed:	how long the measuring took, ns
 *
 * Return: a new reference; NULL for no memory.
 */
json_t *preflight_encode(
    const struct preflight_report *r, const struct preflight_input *in, nsec_t elapsed);

/**
 * preflight_format() - the report as text for people
 * @in:		what was judged; borrowed
 * @elapsed:	how long the measuring took, ns
 * @out:	appended to; remembers a failure
 */
void preflight_format(const struct preflight_report *r, const struct preflight_input *in,
    nsec_t elapsed, struct str *out);
