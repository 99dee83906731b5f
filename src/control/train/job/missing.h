/*
 * missing.h - says which nodes a job still waits for, and which ones were not met.
 *
 * torchrun waits for ten minutes and says nothing meanwhile. A script that makes a process group of
 * one waits for nobody, and says nothing either (met.h).
 *
 * Those that ask the hub and the agent block for some seconds at most.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct run;
struct str;

/** Milliseconds from the start to the first report of who is missing. */
#define MISSING_FIRST_MS 20000

/** Who has come, and who there is. All are borrowed. */
struct missing_facts {
    json_t *present; /* names of the nodes that have come to the run */
    json_t *status;  /* of the agent, GET /v1/status */
    json_t *jobs;    /* of the network, GET /v1/jobs; NULL: not known */
    const char *job;
    const char *self; /* this node's name */
    unsigned min_nodes;
};

/** missing_format() - append which nodes have not come, and what helps: "n2: start the same command
 * there; n3 is in the job b: give all the same --job" */
void missing_format(const struct missing_facts *f, struct str *out);

/** missing_format_unmet() - append how the other nodes are, none of which was met: "n2 has started
 * it, too, and was not met; n3 has not started it" */
void missing_format_unmet(const struct missing_facts *f, struct str *out);

/**
 * missing_report() - say on standard error which nodes have not come
 *
 * Return: in how many ms it is to be called again; 0: never, because the job has enough nodes or
 * the hub does not say.
 */
unsigned missing_report(const struct run *run);

/**
 * missing_unmet() - ask for what missing_format_unmet() says, and append it; nothing when they do
 * not answer
 *
 * Return: have enough nodes come?
 */
bool missing_unmet(const struct run *run, struct str *out);
