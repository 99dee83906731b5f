/*
 * job_intake.h - what a rendezvous process says, and what of it the hub does.
 *
 * The process reads what strangers send, so it may be theirs: nothing that it says is trusted. It
 * names jobs by numbers that the hub gave to jobs of this network; every key of the store is built
 * here. How much it may keep is counted here. What it says of a run that is over is late, and
 * ignored.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct job_network;
struct rdzv_wire;

/** job_intake_take() - take what a process has said. False: it may not say that: end it. */
bool job_intake_take(struct job_network *n, const struct rdzv_wire *m, nsec_t now);

/**
 * job_intake_has_to_wait() - may the message be taken only later?
 *
 * Until there is room for more changes. And until all before it is on the disk, if it begins a blob
 * of several pieces: those pieces may go where others still have to be deleted.
 */
bool job_intake_has_to_wait(const struct job_network *n, const struct rdzv_wire *m);

/** job_intake_end() - the process has ended: what it began to say is forgotten. */
void job_intake_end(struct job_network *n, nsec_t now);
