/* nat_pmp.h - a router that speaks NAT-PMP (RFC 6886), which is the test itself. */
#pragma once

#include <stdint.h>

struct netlink;

struct nat_pmp {
    int fd;
    uint16_t external;  /* the port that it grants, of 203.0.113.60 */
    unsigned n_granted; /* requests for a mapping */
    uint16_t asked;     /* internal port of the last one */
    uint16_t suggested; /* external port of the last one */
    uint32_t lifetime;  /* of the last one; 0: the mapping is to end */
};

/** nat_pmp_start() - the default route leads to it, through "lan", which has an address of
 * 192.0.2.0/24. @lo: the loopback interface, which gets the router's. */
void nat_pmp_start(struct nat_pmp *r, struct netlink *nl, unsigned lo);
void nat_pmp_stop(struct nat_pmp *r);

/** nat_pmp_answer() - one request, if there is any. */
void nat_pmp_answer(struct nat_pmp *r);
