/*
 * spending.h - how much of each budget of the networks is spent today, and who is told of it.
 *
 * What a network with budgets has moved today is in its account (spending_account.h). Every quarter
 * of a minute the budgets are judged. When a budget's share passes 80 or 100 percent it is an
 * event, and so is its end: the next day, or a greater budget. What has no price counts for
 * nothing, and is said beside it.
 *
 * When the network's budget has a cap and is spent, each node is told to send no more than that,
 * beside what its object says. It is one of desired state's rates, so an agent does nothing of its
 * own. A job's cap is told to the nodes of its run with who else is in it (handlers_jobs.c), and
 * holds between these only. A cap goes with the day, or when the budget is greater.
 *
 * No member's word alone slows another one: a cap counts what both ends of edges bear out, and of a
 * node beside what it tells of itself. Where two ends go on to contradict each other it is an
 * event.
 *
 * Of several hubs each does this by itself, and has events of its own.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "hub/traffic/spending_account.h"

struct edge_events;
struct model;
struct traffic_book;
struct watcher;

/** How often budgets are judged. */
#define SPENDING_EACH (15 * NSEC_PER_SEC)

struct spending {
    struct model *model;        /* pins, like the next two */
    struct edge_events *events; /* who is told */
    struct watcher *watcher;    /* tells nodes how much they may send */
    struct spending_accounts accounts;
    nsec_t looked_at;
};

/** spending_init() - nothing is looked at yet. @prices: pinned; NULL: budgets of money stand still.
 * @seed: random, unknown to strangers. */
void spending_init(struct spending *s, struct model *model, struct traffic_book *book,
    struct edge_events *events, struct watcher *watcher, const struct prices *prices,
    uint64_t seed);

/** spending_deinit() - as spending_accounts_deinit(). */
void spending_deinit(struct spending *s);

/** spending_tick() - each second. @wall_s: s since 1970. */
void spending_tick(struct spending *s, nsec_t now, int64_t wall_s);
