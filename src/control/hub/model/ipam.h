/*
 * ipam.h - which host numbers of a network are taken, and which is next.
 *
 * A node has one number, and from it both its addresses: number 7 of
 * 10.77.0.0/16 and fd5a::/64 is 10.77.0.7 and fd5a::7. Number 1 is the hub's.
 *
 * Theory of operation. Numbers are given out in rising order, from a cursor
 * that is stored with the network and starts again at the beginning only when
 * it has come to the end; so the address of a removed node stays unused for as
 * long as the block allows. The numbers in use are kept as runs, in order: a
 * block that is nearly full is a few runs, however large, and the next free
 * number behind the cursor is a binary search away.
 *
 * The highest number that was ever given out is stored with the cursor. While
 * it is not known who has which number, because a node's record is damaged, a
 * number is free only if it is above that one.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/** The hub's own number. */
#define IPAM_HUB 1

/** Numbers @first to @last are all taken. */
struct ipam_run {
    uint32_t first;
    uint32_t last; /* inclusive */
};

struct ipam {
    uint32_t capacity;     /* numbers are 1 to this */
    uint32_t next;         /* the cursor: where the search for a free one begins */
    uint32_t high;         /* the highest number that was ever taken */
    bool forgot;           /* @next and @high are not what was stored: that is damaged */
    struct ipam_run *runs; /* owns; in order, none touching the next */
    size_t n_runs;         /* how many */
    size_t cap;            /* room in the array */
};

/** ipam_capacity() - how many numbers both blocks have: no network and broadcast address. */
uint32_t ipam_capacity(const struct ip_prefix *cidr4, const struct ip_prefix *cidr6);

/** ipam_init() - all numbers from 1 to @capacity are free; the cursor is at the first. */
void ipam_init(struct ipam *p, uint32_t capacity);

/** ipam_deinit() - release. */
void ipam_deinit(struct ipam *p);

/** ipam_take() - number @n is in use; fine when it was already. 0 or -ENOMEM. */
int ipam_take(struct ipam *p, uint32_t n);

/** ipam_release() - it is not any more; fine when it was not. 0 or -ENOMEM. */
int ipam_release(struct ipam *p, uint32_t n);

/**
 * ipam_next() - the free number that is next, without taking it; 0 when there is none
 * @is_wary:	a number may be somebody's although it is not taken
 */
uint32_t ipam_next(const struct ipam *p, bool is_wary);

/** ipam_address() - address number @n of @cidr. */
struct ip_addr ipam_address(const struct ip_prefix *cidr, uint32_t n);

/** ipam_number() - the number of an address in @cidr; 0 when it is none of a node. */
uint32_t ipam_number(const struct ip_prefix *cidr, const struct ip_addr *address);
