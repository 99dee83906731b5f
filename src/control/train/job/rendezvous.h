/*
 * rendezvous.h - asks the hub where the nodes of a job meet (docs/API.md, "Jobs").
 *
 * Through the agent, which has the node's key: the hub takes nothing without a proof of it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "train/job/env.h"

struct err;

/**
 * rendezvous_ask() - ask the hub where the job meets, and under which id
 * @socket_path:	the agent's
 * @job:	a name, the same on all nodes of the job
 * @ret:	untouched on failure; `backend` and `endpoint` are left to the caller
 *
 * Return: 0; or non-zero with words.
 */
int rendezvous_ask(
    const char *socket_path, const char *job, struct env_meeting *ret, struct err *e);

/** rendezvous_has_epoch() - does the hub answer, and has it not been started anew since @epoch? */
bool rendezvous_has_epoch(const char *socket_path, const char *job, const char *epoch);

/**
 * rendezvous_members() - the names of the nodes that have come to that run of the job
 *
 * Return: gives a reference to an array of names; NULL: not known.
 */
json_t *rendezvous_members(const char *socket_path, const char *job, const char *run);

/** rendezvous_wait() - wait until the hub answers, at most @patience_ms. Return: does it answer? */
bool rendezvous_wait(const char *socket_path, const char *job, unsigned patience_ms);

/**
 * rendezvous_end() - tell the hub that the job has ended on this node
 *
 * When this node was the last, whoever asks next begins a new run at once. Nothing depends on it:
 * without it the run ends when nobody was heard for a minute.
 */
void rendezvous_end(const char *socket_path, const char *job);
