/*
 * rendezvous.h - asks the hub where the nodes of a job meet (docs/API.md, "Jobs").
 *
 * Through the agent, which has the node's key: the hub takes nothing without a proof of it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "train/env.h"

struct err;

/**
 * rendezvous_ask() - where and under which id
 * @socket_path:	the agent's
 * @job:	a name, the same on all nodes of the job
 * @ret:	untouched on failure; `backend` and `endpoint` are left to the caller
 *
 * Return: 0; or non-zero with words.
 */
int rendezvous_ask(
    const char *socket_path, const char *job, struct env_meeting *ret, struct err *e);

/** rendezvous_has_epoch() - does the hub answer, and is it in that life still? */
bool rendezvous_has_epoch(const char *socket_path, const char *job, const char *epoch);

/**
 * rendezvous_members() - who has come to that run of the job
 *
 * Return: gives a reference to an array of names; NULL: not known.
 */
json_t *rendezvous_members(const char *socket_path, const char *job, const char *run);

/** rendezvous_wait() - until the hub answers, at most @patience_ms; does it? */
bool rendezvous_wait(const char *socket_path, const char *job, unsigned patience_ms);

/**
 * rendezvous_end() - the job has ended on this node
 *
 * When it was the last, the next one that asks begins a new run at once. It is
 * a courtesy: nothing depends on its arrival.
 */
void rendezvous_end(const char *socket_path, const char *job);
