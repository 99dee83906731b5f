/*
 * node_meter.h - this node's meter (meter.h) and the file in which it is kept.
 *
 * Threads: the loop's.
 */
#pragma once

#include "agent/meter.h"
#include "base/clock.h"
#include "os/log.h"

/** Between two writes of the file, unless a job has ended. */
#define NODE_METER_EACH (10 * NSEC_PER_SEC)

/** How often what moves is reported while a job runs here; else it goes with other reports. */
#define NODE_METER_JOB_EACH (15 * NSEC_PER_SEC)

struct node_meter {
    struct meter meter;
    const char *dir;   /* pins: the state directory */
    bool is_damaged;   /* the file is left as it is */
    bool is_urgent;    /* a job has ended: report at once */
    nsec_t settled_at; /* monotonic; 0: not yet */
    struct log_limit limit;
};

/** node_meter_open() - read the file, or begin a new meter. @dir: pinned. @id: random. */
void node_meter_open(struct node_meter *nm, const char *dir, uint64_t id);

/**
 * node_meter_close() - release; idempotent
 * @is_kept:	the node stays in the network: what is not written yet is
 */
void node_meter_close(struct node_meter *nm, bool is_kept, nsec_t now);

/** node_meter_look() - after each poll. */
void node_meter_look(struct node_meter *nm, const struct meter_facts *facts, nsec_t now);

/** node_meter_settle() - a report is about to be made: have the sums written, if it is time. */
void node_meter_settle(struct node_meter *nm, nsec_t now);

/** node_meter_is_due() - is a report wanted only because of what has moved? */
bool node_meter_is_due(const struct node_meter *nm, nsec_t now);
