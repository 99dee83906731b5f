/*
 * request.h - the bodies that strangers, members and administrators send, checked.
 *
 * One struct and one decoder for each call that takes more than an object
 * (docs/API.md). Pure: what a body means is decided elsewhere.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/content/token.h"
#include "base/addr.h"
#include "base/parse.h"
#include "crypto/x25519.h"
#include "health/finding.h"
#include "health/fitness.h"
#include "mesh/object/daily.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/object.h"
#include "mesh/object/node_status.h"
#include "mesh/object/subnets.h"
#include "mesh/object/traffic.h"

struct relay_line_report;

struct err;

/* ---- where a hub is reached: addresses and names, as its nodes are told them ----------------- */

/*
 * Pure but for looking at the text of an address: names are looked up by public_addresses.h.
 */

/** A place: "HOST:PORT". */
struct hub_public {
    char text[HOST_PORT_MAX + 1];
    bool is_name;                             /* else it is its one endpoint */
    struct endpoint at[OBJECT_ENDPOINTS_MAX]; /* UDP, in the resolver's order */
    unsigned n;                               /* 0: a name that was not found yet */
};

/** Places, best first. */
struct hub_places {
    struct hub_public items[OBJECT_ENDPOINTS_MAX];
    unsigned n;
};

/**
 * hub_public_parse() - "HOST", "HOST:PORT", "1.2.3.4", "[v6]:PORT" or "v6"; no name is looked up
 * @dflt_port:	when the text has none
 *
 * Return: 0, or -EINVAL with words; also for an address at which no other machine reaches this one.
 */
int hub_public_parse(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e);

/**
 * hub_places_tell() - as nodes are told: endpoints, and names
 * @ret:	its other fields stay
 */
void hub_places_tell(
    struct node_hub *ret, const struct hub_places *here, const struct hub_places *next);

/** hub_places_encode() - their texts as an array; gives a reference, NULL: no memory. */
json_t *hub_places_encode(const struct hub_places *places);

/* ---- bodies ---------------------------------------------------------------------------------- */

/** Longest "engine" and "version" of a node. */
#define REQUEST_WORD_MAX 31

/** Longest name of a job's run. */
#define REQUEST_RUN_MAX (NAME_MAX_LEN + 16)

/** Longest texts of what NCCL took. */
#define REQUEST_NCCL_NETWORK_MAX 200
#define REQUEST_NCCL_TEXT_MAX    700

/** The "engine" of a machine without an agent. */
#define REQUEST_ENGINE_STOCK "stock"

/** Most ciphers for which a node may report its speed. */
#define REQUEST_CIPHERS_MAX 8
#define REQUEST_TTL_MIN     1
#define REQUEST_TTL_MAX     (366 * 86400)
#define REQUEST_TTL_DEFAULT 3600
#define REQUEST_USES_MAX    1000000
#define REQUEST_EVERY_MAX   3600

/** POST /v1/enrol; and POST /v1/networks/NET/nodes, which has no more than a key, a name, labels
 * and routes */
struct enrol_request {
    struct token_secret secret; /* wipe after use */
    struct x25519_public key;
    char name[NAME_MAX_LEN + 1]; /* "": the hub chooses */
    const json_t *labels;        /* borrowed from the body; NULL: none */
    char engine[REQUEST_WORD_MAX + 1];
    struct subnets routes; /* that it asks for */
    bool wants_no_peers;   /* its watch will tell it of them: the answer leaves them out */
    bool is_dry_run;       /* it asks what would become of it, and is not taken in */
};

/** POST /v1/networks/NET/tokens */
struct token_request {
    uint32_t ttl_seconds;  /* until it expires */
    uint32_t uses;         /* machines that it admits */
    bool ephemeral;        /* its nodes are removed when they are away for too long */
    bool relay;            /* its nodes may be relays */
    struct subnets routes; /* its nodes may have routes inside these */
};

/** POST /v1/web/logins: a login for the page is to be made. */
struct web_request {
    unsigned role;                  /* enum role; 0: that of who asks */
    char network[NAME_MAX_LEN + 1]; /* the only one that it is for; "": all that who asks may see */
    uint32_t ttl_seconds;           /* how long it waits for its use */
};

/** How long that may be, s. */
#define REQUEST_LOGIN_TTL_MIN     60
#define REQUEST_LOGIN_TTL_DEFAULT 600
#define REQUEST_LOGIN_TTL_MAX     86400

/** Longest text of a login, which is checked elsewhere. */
#define REQUEST_LOGIN_MAX 64

/** POST /v1/web/login: somebody uses one. */
struct web_login_request {
    char login[REQUEST_LOGIN_MAX + 1];
};

/** Longest number of nodes in text, as in "65536:65536". */
#define REQUEST_NNODES_MAX 15

/** POST /v1/jobs/JOB/rendezvous */
struct job_request {
    char broken_run[REQUEST_RUN_MAX + 1]; /* a run that cannot go on, NAME.NUMBER; "": none */
    char nnodes[REQUEST_NNODES_MAX + 1];  /* how many nodes: "4" or "2:4"; "": it does not say */
    bool is_dry_run; /* it is only said where the job would meet; names no broken run */
};

/** POST /v1/jobs/JOB/nccl: what NCCL took on a node of a job, by its log. Texts are of one line. */
struct nccl_request {
    char run[REQUEST_RUN_MAX + 1];
    char verdict[8];                            /* "wanted", "other" or "unknown" */
    char profile[NAME_MAX_LEN + 1];             /* of the fabric that was wanted */
    char network[REQUEST_NCCL_NETWORK_MAX + 1]; /* as NCCL calls it; "": it has not said */
    char text[REQUEST_NCCL_TEXT_MAX + 1];       /* all of that in a sentence, with the cause */
};

/** nccl_request_encode() - but for the run, as it is shown; gives a reference. NULL: no memory. */
json_t *nccl_request_encode(const struct nccl_request *rq);

/** PUT /v1/jobs/JOB/rendezvous: a command of the job says how it is */
struct presence_request {
    char run[REQUEST_RUN_MAX + 1];      /* that it is in, NAME.NUMBER */
    char command[REQUEST_WORD_MAX + 1]; /* what it calls itself; another one does otherwise */
    uint32_t every_seconds;             /* it says this again after so long */
    bool ended;                         /* it has ended, and nobody is to wait for it */
};

/** What a node wants that says how its health check is. */
enum drain_ask {
    DRAIN_ASK_NOTHING,
    DRAIN_ASK_DRAIN,
    DRAIN_ASK_UNDRAIN, /* its scheduler gives it work again */
    DRAIN_ASK_N,
};

/** PUT /v1/drain: how the health check of a node is (health/fitness.h) */
struct drain_request {
    uint32_t n_failed;               /* checks that have failed, one after the other; 0: none */
    uint32_t every_seconds;          /* one is made after so long */
    enum drain_ask ask;              /* DRAIN only with FITNESS_CHECKS failed ones */
    char codes[FITNESS_CODES_MAX];   /* of the last one; "": it has passed */
    char reason[FITNESS_REASON_MAX]; /* a clause; "" likewise */
    char hook[FITNESS_REASON_MAX];   /* why its hook has failed; "": it has not */
};

/**
 * move_request_decode() - PUT /v1/move: {"public": ["HOST:PORT", ...]}; none: it stays
 * @dflt_port:	of those without a port
 *
 * Return: 0; or negative errno with words.
 */
int move_request_decode(
    struct hub_places *ret, const json_t *json, uint16_t dflt_port, struct err *e);

/** On which machine the agent runs that reports. */
struct report_machine {
    char place[REQUEST_WORD_MAX + 1]; /* as machine_place() has it; "": not said */
    char host[REQUEST_WORD_MAX + 1];  /* its name, for people; "": not said */
    bool has_origin;                  /* it is said whether the node joined on this machine: */
    bool is_origin;                   /* it looks so (machine_traits_agree()) */
};

/** How long the NAT of a node keeps a silent UDP mapping, as its agent has measured it. */
struct report_nat {
    bool is_measured;      /* the rest is said */
    bool is_natted;        /* there is a NAT; else a firewall may forget as well */
    uint32_t survived_ms;  /* the longest rest that a mapping has survived; 0: none */
    uint32_t forgotten_ms; /* the shortest that none has; 0: none was as long */
};

/** PUT /v1/status. Texts are JSON; NULL: not said. */
struct report {
    bool has_node; /* something is said about the node, and then what is left out is not so any more
                    */
    char engine[REQUEST_WORD_MAX + 1];
    char version[REQUEST_WORD_MAX + 1];
    char hostname[NAME_MAX_LEN + 1]; /* of its machine, without a domain; "": not said */
    struct report_machine machine;
    char *candidates; /* owns; an array */
    char *paths;      /* owns; an object: what goes with the candidates */
    char *aead;       /* owns; an object of MB/s by cipher */
    char *fabric;     /* owns; an object: node_status.h */
    /* Owns; how its line is, where it relays; NULL: not said. */
    struct relay_line_report *line;
    struct subnets routes; /* that it asks for; what it has is the hub's word */
    uint16_t metrics_port; /* where its agent has figures for Prometheus, at its overlay address; 0:
                              nowhere */
    struct report_nat nat;
    struct uplink_report uplink;

    char owner_node[NAME_MAX_LEN + 1]; /* whose part this is; "": the caller's */
    bool has_applied;                  /* the agent says what it has applied: the next two */
    uint64_t applied;                  /* the revision; 0: none yet */
    char *error;                       /* owns; why its last pass failed; NULL: it did not */
    bool has_cpu;                      /* the next is said */
    uint16_t cpu_percent;              /* of its machine's cores, in the last minute */
    uint32_t every_seconds;  /* of a probe: a report comes at least so often; 0: it does not say */
    bool has_edges;          /* something is said about edges */
    struct edge_parts edges; /* owns; it has the owner. What is gone is in it where @run is set */
    bool has_findings;       /* something is said about what is wrong */
    struct findings found;   /* owns; all of it: self_decode() */
    struct daily daily;      /* owns; what its lines carry, day by day: edge_view.h shows it */
    bool has_traffic;        /* something is said about what the node has moved */
    struct traffic traffic;  /* owns; hub/traffic/ keeps it */
    uint64_t run;            /* the writer's; 0: an older one, which says all its edges each time */
    uint64_t number;         /* of the report in that run */
    bool begins;             /* the writer says all anew, from this report on */
    bool ends;               /* up to this one */
};

#define REPORT_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** report_deinit() - idempotent. */
void report_deinit(struct report *r);

/** report_nat_equal() - do both say the same? */
bool report_nat_equal(const struct report_nat *a, const struct report_nat *b);

/** report_nat_encode() - as it is reported: a new reference; NULL: not measured, or no memory. */
json_t *report_nat_encode(const struct report_nat *n);

/** report_is_same_text() - are the two texts of reports the same? NULL: nothing is said. */
bool report_is_same_text(const char *a, const char *b);

/** report_is_seen_otherwise() - do the two differ in what other nodes see of the node? */
bool report_is_seen_otherwise(const struct report *a, const struct report *b);

/*
 * The decoders check a body and take it in. @json is borrowed, and NULL (no body) is a body without
 * fields. Each returns 0; -EINVAL with words; or -ENOMEM; @ret is untouched on failure.
 */

/** enrol_request_decode() - @ret: its secret is to be wiped; its labels are borrowed from @json. */
int enrol_request_decode(struct enrol_request *ret, const json_t *json, struct err *e);

/** web_request_decode() - no body at all is one that says nothing. */
int web_request_decode(struct web_request *ret, const json_t *json, struct err *e);

/** web_login_request_decode() - @ret: a secret, to be wiped. */
int web_login_request_decode(struct web_login_request *ret, const json_t *json, struct err *e);

/** job_request_decode() - no body at all is one that says nothing. */
int job_request_decode(struct job_request *ret, const json_t *json, struct err *e);

/** nccl_request_decode() - 0, or -EINVAL with words. */
int nccl_request_decode(struct nccl_request *ret, const json_t *json, struct err *e);

/** presence_request_decode() - @ret: see there. */
int presence_request_decode(struct presence_request *ret, const json_t *json, struct err *e);

/** drain_request_decode() - 0, or -EINVAL with words. */
int drain_request_decode(struct drain_request *ret, const json_t *json, struct err *e);

/** node_request_decode() - @ret: its labels are borrowed from @json. */
int node_request_decode(struct enrol_request *ret, const json_t *json, struct err *e);

/** token_request_decode() - what is not said has its default. */
int token_request_decode(struct token_request *ret, const json_t *json, struct err *e);

/** network_request_decode() - POST /v1/networks; what is not said has its default, or stays for
 * networks_add(). */
int network_request_decode(struct network *ret, const json_t *json, struct err *e);

/**
 * report_drop_candidates() - leave out the candidates in the blocks of the network itself
 *
 * No path to a node may lead through the overlay, whoever reports that it is reached there. An
 * older agent may, of an interface that was renamed. 0, or -ENOMEM with words.
 */
int report_drop_candidates(
    struct report *rp, const struct ip_prefix *cidr4, const struct ip_prefix *cidr6, struct err *e);

/** report_decode() - @ret: for report_deinit(). @at: s since 1970, by which its ages count. */
int report_decode(struct report *ret, const json_t *json, int64_t at, struct err *e);
