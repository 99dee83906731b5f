/*
 * nat.h - a NAT as RFC 4787 describes them, for the simulation.
 *
 * What a mapping looks at, what the filter looks at, how ports are given out,
 * whether packets may come back to the inside (hairpin), and for how long an
 * idle mapping lives. A stateful firewall without translation is one of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "path/behavior.h"

enum sim_ports {
    SIM_PORTS_PRESERVE,   /* the inner port if it is free (RFC 4787 section 4.2.1) */
    SIM_PORTS_SEQUENTIAL, /* the next one */
    SIM_PORTS_RANDOM,
};

struct sim_nat_kind {
    const char *name;
    enum behavior_rule mapping; /* UNKNOWN: no translation, a firewall */
    enum behavior_rule filtering;
    enum sim_ports ports;
    bool hairpins;
    bool is_blocked; /* no UDP at all */
    bool is_absent;  /* a public address, and nothing in between */
    /*
     * Linux that masquerades and drops nothing on INPUT: a packet that no mapping expects is taken
     * for the gateway itself, and its connection tracking keeps that port for that sender. Whoever
     * inside sends to it from the same port meanwhile is given another one.
     */
    bool takes_strangers;
};

struct sim_mapping;

/** A stranger's packets that the gateway itself has taken. */
struct sim_taken {
    struct endpoint from;
    uint16_t port; /* ours, that they came to */
    nsec_t at;     /* the last one */
};

/** So long connection tracking remembers a packet that was not answered. */
#define SIM_TAKEN_FOR (30 * NSEC_PER_SEC)

struct sim_nat {
    struct sim_nat_kind kind;
    struct ip_addr address;        /* public; not for a firewall */
    nsec_t timeout;                /* of idle mappings; outbound packets refresh */
    struct sim_mapping **mappings; /* owns */
    unsigned n_mappings;
    unsigned cap_mappings;
    struct sim_taken *taken; /* owns; of takes_strangers */
    unsigned n_taken;
    uint16_t next_port;
    uint64_t *seed; /* pins */
};

void sim_nat_init(struct sim_nat *n, const struct sim_nat_kind *kind, const struct ip_addr *address,
    nsec_t timeout, uint64_t *seed);

/** sim_nat_reset() - a reboot: all mappings are gone. */
void sim_nat_reset(struct sim_nat *n);

/** sim_nat_out() - a packet from @inner to @to leaves; false when it does not. */
bool sim_nat_out(struct sim_nat *n, const struct endpoint *inner, const struct endpoint *to,
    nsec_t now, struct endpoint *ret_outer);

/** sim_nat_in() - a packet from @from comes to @outer; false when it is filtered. */
bool sim_nat_in(struct sim_nat *n, const struct endpoint *from, const struct endpoint *outer,
    nsec_t now, struct endpoint *ret_inner);
