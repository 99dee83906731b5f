/*
 * behavior.h - how the NAT before a node behaves, in the words of RFC 4787.
 *
 * A node asks several servers from one socket where they see it. One answer for
 * all: the mapping is endpoint-independent, and what one peer sees all can use.
 * Different ones: it depends on the destination ("symmetric"), and a peer must
 * guess. The steps between the ports, in the order in which they were opened,
 * tell whether guessing has a chance.
 *
 * Pure: answers in, facts out. The facts travel with a node's candidates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

/** What a mapping or a filter depends on (RFC 4787 sections 4.1 and 5). */
enum behavior_rule {
    BEHAVIOR_UNKNOWN,
    BEHAVIOR_ENDPOINT_INDEPENDENT, /* on nothing of the other end */
    BEHAVIOR_ADDRESS_DEPENDENT,    /* on the other end's address */
    BEHAVIOR_PORT_DEPENDENT,       /* on its address and port */
    BEHAVIOR_RULE_N,
};

/** The facts; zeroes: nothing is known. */
struct behavior {
    enum behavior_rule mapping;   /* towards IPv4; IPv6 is taken to be without a NAT */
    enum behavior_rule filtering; /* of what comes in; mostly unknown */
    bool is_natted;               /* servers see the node at an address that is none of its own */
    bool is_blocked;              /* no server answered over UDP */
    int16_t port_step;  /* from one mapping's port to the next one's; 0: no step was found */
    uint16_t last_port; /* of the newest mapping; 0: none */
};

#define BEHAVIOR_SAMPLES_MAX 16

/** One server's answer. */
struct behavior_sample {
    struct endpoint server;
    struct endpoint mapped; /* where it saw us */
    nsec_t at;              /* when the answer came */
};

/** What the servers said, newest last; one for each server. */
struct behavior_survey {
    struct behavior_sample samples[BEHAVIOR_SAMPLES_MAX];
    unsigned n;
};

/** behavior_rule_names - "unknown", "endpoint-independent", ... as RFC 4787 has them. */
extern const char *const behavior_rule_names[];

/** behavior_rule_parse() - of that name; BEHAVIOR_UNKNOWN for any other. */
enum behavior_rule behavior_rule_parse(const char *text);

/**
 * behavior_survey_add() - a server has answered a request from WireGuard's port
 *
 * The same server's earlier answer is replaced; the oldest makes room.
 */
void behavior_survey_add(struct behavior_survey *s, const struct endpoint *server,
    const struct endpoint *mapped, nsec_t at);

/**
 * behavior_of() - what the answers mean
 * @own:	@n_own addresses of this node's interfaces, with WireGuard's port
 *
 * Two servers at different addresses tell whether the mapping depends on the
 * address; two ports of one address, whether on the port. Filtering is not
 * asked for here: set it where a server could test it (RFC 5780).
 */
struct behavior behavior_of(
    const struct behavior_survey *s, const struct endpoint *own, size_t n_own);

/** behavior_is_hard() - is a mapping that was made for a server of no use to a peer? ("symmetric"
 * NAT) */
bool behavior_is_hard(const struct behavior *b);

/**
 * behavior_predict() - port that a new mapping may get
 * @i:		0 for the likeliest
 *
 * Return: 0 when there is nothing to go by, or no more guesses.
 */
uint16_t behavior_predict(const struct behavior *b, unsigned i);

/** Guesses that behavior_predict() has. */
#define BEHAVIOR_GUESSES 24
