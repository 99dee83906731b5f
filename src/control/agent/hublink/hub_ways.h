/*
 * hub_ways.h - where the hub may be: as it says itself, and where its names lead today.
 *
 * Theory of operation. A hub tells its members its endpoints and, where its operator gave it one,
 * its name. While it is heard the endpoints are enough. When it is silent it may have got another
 * address, so the names are looked up, at once and then less and less often, without the loop
 * waiting for it (net/address/resolve_task.h). What was found is kept beside what the hub says,
 * until the next answer of a name server, and is a candidate like the others: whoever answers there
 * has to have the hub's key.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "agent/state/state.h"
#include "base/addr.h"
#include "base/clock.h"
#include "mesh/object/object.h"
#include "os/log.h"

struct resolve_answer;
struct resolve_task;

/** Most endpoints: those that the hub says, and as many that are found. */
#define HUB_WAYS_MAX ((unsigned)(2 * OBJECT_ENDPOINTS_MAX))

/** Most addresses of its public API: its names, those of the join token, its endpoints. */
#define HUB_WAYS_API_MAX (OBJECT_HUB_NAMES_MAX + TOKEN_WAYS_MAX + OBJECT_ENDPOINTS_MAX)

/** "HOST:PORT" of the hub's public API, best first. */
struct hub_ways_api {
    char items[HUB_WAYS_API_MAX][HOST_PORT_MAX + 1];
    unsigned n;
};

struct hub_ways {
    struct endpoint all[HUB_WAYS_MAX]; /* UDP, best first; what was found, then what it says */
    unsigned n;

    struct endpoint found[OBJECT_ENDPOINTS_MAX]; /* where its names led last */
    unsigned n_found;
    struct resolve_task *task; /* owns; NULL: nothing is being looked up */
    nsec_t look_up_at;         /* time of the next look-up; 0: as soon as the hub is silent */
    nsec_t wait_for;           /* time from the last look-up to the next; 0: the hub is heard */
    struct log_limit limit;
};

/** hub_ways_deinit() - does not wait for a name server. Idempotent. */
void hub_ways_deinit(struct hub_ways *w);

/**
 * hub_ways_poll() - begin and end look-ups, and compose @w->all; to be called about each second
 * @hub:	what the hub says of itself: its endpoints and its names
 * @net:	the network; an address inside its blocks is not a way to the hub
 * @is_silent:	the hub is not heard
 */
void hub_ways_poll(struct hub_ways *w, const struct node_hub *hub, const struct network *net,
    bool is_silent, nsec_t now);

/**
 * hub_ways_take() - what the name servers say
 * @answers:	of the hub's names, @n of them
 *
 * Part of hub_ways_poll(). Names that lead nowhere change nothing.
 */
void hub_ways_take(struct hub_ways *w, const struct node_hub *hub, const struct network *net,
    const struct resolve_answer *answers, unsigned n);

/** hub_ways_list_api() - @ways: of the join. Names first, as they are true for longest. */
void hub_ways_list_api(
    struct hub_ways_api *ret, const struct state_ways *ways, const struct node_hub *hub);
