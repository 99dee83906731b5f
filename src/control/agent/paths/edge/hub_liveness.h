/*
 * hub_liveness.h - does the hub still answer, while it relays data of this node?
 *
 * Theory of operation. A relay that is a node has a direct path of ours, which
 * tells whether it lives. The hub has none. So it is asked by STUN while data goes
 * through it and there is another relay to go to. When several requests in a row
 * have had no answer it is dead: it is told to peers no more, and their edges with
 * us move to the other relay. It is asked on until it answers, or data could not
 * go through it anyway.
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
    nsec_t moved_at;     /* when that changed last; 0: never */
    bool has_other;      /* there is another relay */
    bool is_dead;
    nsec_t next_at;          /* request */
    nsec_t unanswered_since; /* first of the requests since the last answer */
    unsigned n_unanswered;
};

/**
 * hub_liveness_look() - what the engine shows
 * @hub:	where it has the hub; none: not known
 * @n_bytes:	received and sent, since any start, of all edges that the hub relays
 * @has_other:	there is another relay to go to
 */
void hub_liveness_look(struct hub_liveness *h, const struct endpoint *hub, uint64_t n_bytes,
    bool has_other, nsec_t now);

/** hub_liveness_tick() - after a look, and when it is due. Return: ask @h->hub by STUN now. */
bool hub_liveness_tick(struct hub_liveness *h, nsec_t now);

/** hub_liveness_on_answer() - to a request. @from: who was asked. Return: it was the hub. */
bool hub_liveness_on_answer(struct hub_liveness *h, const struct endpoint *from, nsec_t now);

/** hub_liveness_due() - when hub_liveness_tick() is to be called; NSEC_NEVER: not at all. */
nsec_t hub_liveness_due(const struct hub_liveness *h, nsec_t now);
