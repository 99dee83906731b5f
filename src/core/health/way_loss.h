/*
 * way_loss.h - what is lost on the way from one node to another, as a finding.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct findings;
struct loss_rate;

/**
 * way_loss_find() - find WAY_LOSS or WAY_LOSS_CRITICAL, if too much of what @from sends to @to does
 * not arrive; and WAY_LOSS_WORSE, if it is much more than was usual in the last hour, when that was
 * as bad by the limits of these two, so that they do not tell it
 * @f:		between findings_look() and findings_done() of the subject "FROM>TO"; what was found
 *		before says how bad it was, so that nothing begins and ends about a limit
 * @r:		what @to has counted; NULL, or a rate of which nothing is known: nothing is found
 * @is_relayed:	it goes through a relay, so there are two lines to look at
 * @at:		s since 1970
 *
 * The caller passes NULL for what is old: @to's agent is silent, or the pair has no path.
 */
void way_loss_find(struct findings *f, const char *from, const char *to, const struct loss_rate *r,
    bool is_relayed, int64_t at);
