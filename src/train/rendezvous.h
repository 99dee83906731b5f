/* rendezvous.h - asks the hub where the nodes of a job meet (docs/API.md, "Jobs"). */
#pragma once

#include <stdbool.h>

#include "train/env.h"

struct endpoint;
struct err;

/**
 * rendezvous_ask() - where and under which id
 * @hub:	its API on the overlay
 * @interface:	the overlay's; the hub knows the network by it
 * @job:	a name, the same on all nodes of the job
 * @ret:	untouched on failure; `backend` and `endpoint` are left to the caller
 *
 * Return: 0; or non-zero with words.
 */
int rendezvous_ask(const struct endpoint *hub, const char *interface, const char *job,
    struct env_meeting *ret, struct err *e);

/** rendezvous_has_epoch() - does the hub answer, and is it in that life still? */
bool rendezvous_has_epoch(
    const struct endpoint *hub, const char *interface, const char *job, const char *epoch);

/** rendezvous_wait() - until the hub answers, at most @patience_ms; does it? */
bool rendezvous_wait(
    const struct endpoint *hub, const char *interface, const char *job, unsigned patience_ms);

/**
 * rendezvous_end() - the job has ended on this node
 *
 * When it was the last, the next one that asks begins a new run at once. It is
 * a courtesy: nothing depends on its arrival.
 */
void rendezvous_end(const struct endpoint *hub, const char *interface, const char *job);
