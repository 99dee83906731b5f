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

/** path__tell_relay() - the action that says: through the relay, or not at all. NULL: no memory. */
struct paths_item *path__tell_relay(struct path *pp);

/** path__relay_enter() - no pair is chosen any more: choose one without asking what was before. */
void path__relay_enter(struct path *pp);

/** path__announces_relay() - does @now tell of one that @before does not? */
bool path__announces_relay(const struct path_side *before, const struct path_side *now);

/** path__release_relay() - what the other end had against a relay may be over. */
void path__release_relay(struct path *pp, nsec_t now);

/** path__check_relay() - one end's relays have changed, or what they cost. */
void path__check_relay(struct path *pp, nsec_t now);
void path__relay_tick(struct path *pp, nsec_t now);

/** path__on_relayed() - the other end has moved the edge to that one. */
void path__on_relayed(struct path *pp, const struct x25519_public *via, nsec_t now);

size_t path__relays(const struct path *pp, struct path_relay_view *ret, size_t cap);
