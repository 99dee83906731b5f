/*
 * rule.h - the Rule among the objects: who may reach which ports of whom; see object.h.
 *
 * A rule allows; there is none that denies. While a network has no rule, and is not isolated, all
 * members reach each other; from the first one on, what no rule allows is refused. The answer to a
 * connection that is allowed is allowed with it.
 *
 * Text: `members`, `hub`, `node:gpu-1`, `island:east`, `role=gpu` (a label) and, as a destination,
 * `10.9.0.0/24`, a block in a subnet that a node is the way to. `any`, `icmp`, `tcp`, `udp`,
 * `tcp/22`, `udp/5000-5999`.
 *
 * A rule of a job is the hub's own, while the job runs with `weft run --isolate`. It allows as any
 * other one; and beside that its destinations refuse, at the TCP ports of the job, whoever is not
 * among its sources, whatever other rules allow. A network with no other rules is as one without
 * any.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "mesh/object/node.h"
#include "mesh/object/object_meta.h"

struct object;
struct object_kind;

/** Most of each kind in one rule. */
#define RULE_PEERS_MAX    512
#define RULE_SERVICES_MAX 64

enum rule_peer_kind {
    RULE_PEER_MEMBERS, /* every member that is no hub */
    RULE_PEER_HUB,     /* the hubs */
    RULE_PEER_NODE,
    RULE_PEER_ISLAND,
    RULE_PEER_LABEL,
    RULE_PEER_SUBNET, /* addresses behind a node; as a destination only */
};

/** Whom a rule is about. */
struct rule_peer {
    enum rule_peer_kind kind;
    struct label label; /* of NODE and ISLAND the value is the name */
    struct ip_prefix subnet;
};

enum rule_protocol {
    RULE_PROTOCOL_ANY,
    RULE_PROTOCOL_ICMP, /* of both versions */
    RULE_PROTOCOL_TCP,
    RULE_PROTOCOL_UDP,
    RULE_PROTOCOL_N,
};

/** What may be reached there. */
struct rule_service {
    enum rule_protocol protocol;
    uint16_t first; /* with TCP and UDP; from 0 to 65535: all ports */
    uint16_t last;
};

struct rule {
    struct rule_peer *from;        /* owns; at least one */
    struct rule_peer *to;          /* owns; at least one */
    struct rule_service *services; /* owns; at least one */
    unsigned n_from;
    unsigned n_to;
    unsigned n_services;
    char job[NAME_MAX_LEN + 1]; /* whose it is; "": no job's */
    uint32_t run;               /* the number of the job's run; 0: no job's */
};

/** The row of the kind; kinds.c lists it. */
extern const struct object_kind rule_kind;

/** rule_of() - lends the spec of an object of that kind. */
const struct rule *rule_of(const struct object *o);

/** rule_peer_parse() - 0, or -EINVAL with words that name @text and what is allowed. */
int rule_peer_parse(struct rule_peer *ret, const char *text, bool is_destination, struct err *e);

/** rule_service_parse() - the same. */
int rule_service_parse(struct rule_service *ret, const char *text, struct err *e);

/** Room for the two that follow. */
#define RULE_TEXT_MAX (2 * OBJECT_LABEL_MAX + 16)

/** rule_peer_format() - as rule_peer_parse() takes it. Returns @buf. */
const char *rule_peer_format(const struct rule_peer *peer, char buf[static RULE_TEXT_MAX]);

/** rule_service_format() - as rule_service_parse() takes it. Returns @buf. */
const char *rule_service_format(const struct rule_service *s, char buf[static RULE_TEXT_MAX]);

/* ---- what is allowed ------------------------------------------------------------------------- */

/** One end of a packet. Borrowed. */
struct rule_end {
    const struct node *node; /* NULL: an address behind a node that is the way to it */
    struct ip_addr address;  /* of such a one */
};

/** A packet that begins something. */
struct rule_packet {
    struct rule_end from;
    struct rule_end to;
    struct rule_service service; /* @first is its port */
};

/** rule_is_about() - is @end one of those? */
bool rule_is_about(const struct rule_peer *peers, unsigned n, const struct rule_end *end);

/** rule_names() - does the rule allow something from the one to the other? */
bool rule_names(const struct rule *r, const struct rule_end *from, const struct rule_end *to);

/** rule_allows() - does the rule allow the packet? */
bool rule_allows(const struct rule *r, const struct rule_packet *p);

/** Whether a packet passes, and why. */
struct rule_answer {
    bool is_allowed;
    const struct object *rule; /* lends the one that allows it; NULL: no rule decides */
    const struct object *job;  /* lends the job's that refuses it all the same where the port is
                                  one of the job's; NULL: none does */
};

/** rules_are_open() - is what no rule allows let in? So it is where all are rules of jobs. */
bool rules_are_open(const struct object *const *rules, size_t n, bool is_strict);

/**
 * rules_decide() - does the packet pass?
 * @rules:	@n objects of the kind, borrowed; the first one that allows it is the one that is
 * named
 * @is_strict:	the network is isolated: what no rule allows is refused, also while there is none
 */
struct rule_answer rules_decide(
    const struct object *const *rules, size_t n, bool is_strict, const struct rule_packet *p);
