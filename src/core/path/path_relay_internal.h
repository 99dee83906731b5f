/*
 * path_relay_internal.h - path_relay.c's part of an edge: through which relay, while no pair is
 * chosen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct path;
struct path_relay;
struct path_relay_view;
struct path_side;
struct paths_item;
struct x25519_public;

/** path__relay_best() - the best common relay, and its RTT, both ends' together; 0: none known. */
nsec_t path__relay_best(const struct path *pp, struct path_relay *ret);

/** path__relay_rtt() - the same of the one in use. */
nsec_t path__relay_rtt(const struct path *pp, struct path_relay *ret_via);

/** path__relay_mtu() - inner bytes that it carries in both directions; 0: not known. */
uint16_t path__relay_mtu(const struct path *pp, const struct x25519_public *key);

/** path__relay_carries() - does that relay carry as much as @mtu? Where one is not known, the least
 * that every path carries is taken for it. */
bool path__relay_carries(const struct path *pp, const struct x25519_public *key, uint16_t mtu);

/** path__tell_relay() - the action that says: through the relay, or not at all. NULL: no memory. */
struct paths_item *path__tell_relay(struct path *pp);

/** path__relay_enter() - no pair is chosen any more: go to the best relay, if any is measured. */
void path__relay_enter(struct path *pp);

/** path__announces_relay() - does @now tell of one that @before does not? */
bool path__announces_relay(const struct path_side *before, const struct path_side *now);

/** path__release_relay() - the edge need not stay with the relay that the other end has led to. */
void path__release_relay(struct path *pp, nsec_t now);

/** path__check_relay() - the relays of one end have changed, or their round trips: leave a lost one
 * at once, and plan to move to a better one. */
void path__check_relay(struct path *pp, nsec_t now);

/** path__relay_tick() - move to a better relay, if one has been better for long enough. */
void path__relay_tick(struct path *pp, nsec_t now);

/** path__on_relayed() - the other end has moved the edge to the relay @via: follow it. */
void path__on_relayed(struct path *pp, const struct x25519_public *via, nsec_t now);

/** path__relays() - those that this node reaches: at most @cap into @ret; returns how many. */
size_t path__relays(const struct path *pp, struct path_relay_view *ret, size_t cap);
