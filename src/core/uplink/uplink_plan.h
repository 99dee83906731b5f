/*
 * uplink_plan.h - when a machine sends trains to find what its uplink carries, and to whom.
 *
 * Theory of operation. From a random time after the start on one peer after the other gets trains,
 * some tens of seconds apart, until the uplink is known (uplink/uplink.h), or until it has been
 * tried so often that nothing will come of it now. Then it begins anew after hours: a line changes
 * rarely, and each train takes a part of it for a moment.
 *
 * Asked first is who has had the fewest trains; of these, who is near, since one who is reached
 * faster than the others contradicts all of them; then whose turn was longest ago. One who could
 * not be measured is left alone for a while.
 *
 * Pure: peers, times and a random number in, names out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "uplink/uplink.h"

/** Peers of which it is known when their turn was. */
#define UPLINK_PLAN_TRIED_MAX 16

struct uplink_plan {
    struct {
        char peer[NAME_MAX_LEN + 1];
        nsec_t at;
    } tried[UPLINK_PLAN_TRIED_MAX]; /* @n_tried */
    unsigned n_tried;
    unsigned n_tries; /* peers that were asked since something was known last */
    nsec_t due_at;    /* of the next train, monotonic; 0: none is ever sent */
    uint32_t scatter; /* a random number */

    /* Of the choice that is being made. */
    char best[NAME_MAX_LEN + 1]; /* "": nobody yet */
    bool best_is_near;
    unsigned best_trains;
    nsec_t best_at;
};

/** uplink_plan_init() - begin five to ten minutes from @now. @random: any number. */
void uplink_plan_init(struct uplink_plan *p, uint32_t random, nsec_t now);

/** uplink_plan_restart() - the machine is elsewhere: begin in a minute or so. */
void uplink_plan_restart(struct uplink_plan *p, nsec_t now);

/** uplink_plan_is_due() - is somebody to be asked at @now? Then offer all who may be. */
bool uplink_plan_is_due(const struct uplink_plan *p, nsec_t now);

/**
 * uplink_plan_offer() - one who may be asked
 * @u:		what is known of the uplink
 * @is_near:	it is in the same LAN
 */
void uplink_plan_offer(struct uplink_plan *p, const struct uplink *u, const char *peer,
    bool is_near, nsec_t now, int64_t wall_s);

/**
 * uplink_plan_choose() - who of those that were offered is asked now
 * @state:	what is known of the uplink
 *
 * It counts as asked, and the next one is planned.
 *
 * Return: its name, borrowed until the next call; NULL: nobody was offered who is fit.
 */
const char *uplink_plan_choose(struct uplink_plan *p, enum uplink_state state, nsec_t now);

/** uplink_plan_on_train() - trains have come to something, and so much is known now. */
void uplink_plan_on_train(struct uplink_plan *p, enum uplink_state state, nsec_t now);
