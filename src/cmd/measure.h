/*
 * measure.h - what the measuring commands share: whom to measure, and how it is going.
 */
#pragma once

#include <jansson.h>

#include "train/names/members.h"
#include "train/survey/survey.h"

/** A survey that is being made. */
struct measure {
    struct members members;
    struct survey survey;
    struct survey_plan plan;
    const char *agent_socket;    /* pins; of the agent, which proves the orders */
    char socket_path[4096 + 16]; /* of the measuring service on this machine */
    nsec_t started_at;           /* monotonic */
};

/**
 * measure_open() - ask the agent who is there, and the members for their facts
 * @command:	for messages, and as the survey's purpose where its @plan has none
 * @m:		its @plan says how much to measure; the rest is filled in here. Always
 * measure_close() it
 * @agent_socket:	pinned
 * @nodes:	"a,b,c"; NULL: all
 *
 * Return: CMD_OK, CMD_FAILED or CMD_USAGE, after a sentence on standard error.
 */
int measure_open(
    struct measure *m, const char *command, const char *agent_socket, const char *nodes);

/**
 * measure_keep() - keep what was measured between all members, for the advice of weft run
 * @json:	as weft bench --json or weft preflight --json has it
 *
 * Says so when it cannot be written by who should be able to; that is no failure.
 */
void measure_keep(const char *command, const char *state_dir, const json_t *json);

/**
 * measure_kept() - what measure_keep() has kept in the last seven days
 *
 * Return: gives it; NULL: there is nothing, it may not be read, or it is older.
 */
json_t *measure_kept(const char *state_dir);

/** measure_close() - release it, also after a measure_open() that failed. */
void measure_close(struct measure *m);
