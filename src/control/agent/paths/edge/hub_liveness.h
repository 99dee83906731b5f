/*
 * hub_liveness.h - does the hub still answer, while it relays data of this node?
 *
 * Theory of operation. There is a direct path to each relay that is a node, and that
 * path shows whether the relay answers. There is none to the hub. So the hub is asked
 * by STUN while data goes through it and there is another relay to go to. When several
 * requests in a row have had no answer it counts as dead: it is no longer reported to
 * peers as a relay, and edges move to the other relay. The requests go on until it
 * answers, or until packets to it go in TLS or nowhere.
 *
 * Pure: counts, answers and times in; a verdict, requests and a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct hub_liveness {
    struct endpoint hub; /* where the engine has it; none: not known */
    uint64_t n_bytes;    /* counted of what it relays */
    nsec_t moved_at;     /* time when @n_bytes last changed; 0: never */
    bool has_other;      /* there is another relay */
    bool is_dead;
    nsec_t next_at;          /* time of the next request */
    nsec_t unanswered_since; /* time of the first request since the last answer */
    unsigned n_unanswered;
};

/**
 * hub_liveness_look() - what the engine shows of the hub
 * @hub:	where it has the hub; none: not known
 * @n_bytes:	received and sent, since any start, of all edges that the hub relays
 * @has_other:	there is another relay to go to
 */
void hub_liveness_look(struct hub_liveness *h, const struct endpoint *hub, uint64_t n_bytes,
    bool has_other, nsec_t now);

/** hub_liveness_tick() - after a look, and when it is due. Return: ask @h->hub by STUN now. */
bool hub_liveness_tick(struct hub_liveness *h, nsec_t now);

/** hub_liveness_on_answer() - a request to @from was answered. Return: true if that is the hub. */
bool hub_liveness_on_answer(struct hub_liveness *h, const struct endpoint *from, nsec_t now);

/** hub_liveness_due() - when hub_liveness_tick() is to be called; NSEC_NEVER: not at all. */
nsec_t hub_liveness_due(const struct hub_liveness *h, nsec_t now);
