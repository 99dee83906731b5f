/*
 * rendezvous.h - asks the hub where the nodes of a job meet (docs/API.md, "Jobs").
 *
 * Requests go through the agent's socket, because the hub accepts only requests that are signed
 * with the node's key, which the agent has. All functions block. Times are in ms.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/parse.h"
#include "train/job/env.h"

struct err;
struct interrupt;
struct str;

/** What a command says of itself when it asks where its job meets. Texts are borrowed. */
struct rendezvous_arrival {
    const char *broken; /* the id of a run that cannot go on: the hub begins a new one, unless
                           another node had it do that already; NULL: none */
    const char *nnodes; /* of how many nodes the job is, "4" or "2:4"; refused where others run it
                           with another number; NULL: it is not said */
    bool is_dry_run;    /* it does not come to the job, which stays as it is; names no @broken */
};

/**
 * rendezvous_ask() - ask the hub where the job meets, and under which id
 * @socket_path:	the agent's socket
 * @job:	the job's name, the same on all its nodes
 * @ret:	untouched on failure; `backend` and `endpoint` are left to the caller
 *
 * While none of several hubs serves the jobs, it asks again, for about 20 s at most.
 *
 * Return: 0; RENDEZVOUS_E_AWAY with words: no hub answers the agent, or none serves the jobs; or
 * another non-zero with words.
 */
#define RENDEZVOUS_E_AWAY 100 /* no other outcome of run_prepare() is the same */
int rendezvous_ask(const char *socket_path, const char *job, const struct rendezvous_arrival *a,
    struct env_meeting *ret, struct err *e);

/** What has become of a meeting. */
enum rendezvous_state {
    RENDEZVOUS_STATE_SAME,    /* it goes on where it was */
    RENDEZVOUS_STATE_MOVED,   /* another hub, or another process of the hub, serves the job now */
    RENDEZVOUS_STATE_BROKEN,  /* a new run of the job has begun */
    RENDEZVOUS_STATE_UNKNOWN, /* no hub answers, or none knows the job */
};

/** rendezvous_look() - what has become of the meeting @m, which rendezvous_ask() gave? */
enum rendezvous_state rendezvous_look(
    const char *socket_path, const char *job, const struct env_meeting *m);

/** At most so many nodes are named of those that are lost, and of those whose command has ended. */
#define RENDEZVOUS_NAMED_MAX 8

/** Nodes that the hub has named, and how many there are. */
struct rendezvous_nodes {
    unsigned n_all;
    unsigned n; /* so many are named */
    char names[RENDEZVOUS_NAMED_MAX][NAME_MAX_LEN + 1];
};

/** Bytes of a run's id, with its zero. */
#define RENDEZVOUS_RUN_MAX sizeof(((struct env_meeting *)0)->id)

/** What a command says of itself. */
struct rendezvous_word {
    const char *command; /* what it calls itself, as no other one does */
    unsigned every_s;    /* it says so again after this time */
    bool ended;          /* it has ended, and nobody is to wait for it */
};

/** How the commands of a run are, by what they have said. */
struct rendezvous_presence {
    bool is_known;                 /* else the hub does not say */
    unsigned n_present;            /* so many are there */
    nsec_t silent_for;             /* the longest time for which one that is there was not heard */
    struct rendezvous_nodes lost;  /* whose command is not heard any more, and has not ended */
    struct rendezvous_nodes ended; /* whose command has ended; @n_all: so many commands */
    struct rendezvous_nodes
        ended_without;                    /* those of a run that this node, which was lost, was
                                             awaited in, while nobody else is there; none: no run */
    char run_without[RENDEZVOUS_RUN_MAX]; /* that run; "": the present one */
};

/** rendezvous_format_nodes() - append "gpu-1, gpu-2", and how many more there are */
void rendezvous_format_nodes(struct str *out, const struct rendezvous_nodes *nodes);

/**
 * rendezvous_say() - as rendezvous_look(), and tell the hub how the command is
 * @ret:	always set
 */
enum rendezvous_state rendezvous_say(const char *socket_path, const char *job,
    const struct env_meeting *m, const struct rendezvous_word *word,
    struct rendezvous_presence *ret);

/**
 * rendezvous_members() - the names of the nodes that have come to one run of the job
 * @run:	the run's id, as in struct env_meeting
 *
 * Return: a new reference to an array of names, which the caller releases; NULL when the hub does
 * not say, or when another run of the job has begun.
 */
json_t *rendezvous_members(const char *socket_path, const char *job, const char *run);

/**
 * rendezvous_wait() - wait until the hub answers, or one of several that serves the jobs
 * @patience_ms:	no new attempt begins after this time; the last one may take 3 s longer
 * @i:	begun; a signal ends the wait
 *
 * Return: true if the hub answers; false if the time is over, or a person does not wait.
 */
bool rendezvous_wait(
    const char *socket_path, const char *job, unsigned patience_ms, struct interrupt *i);

/**
 * rendezvous_say_nccl() - tell the hub and the agent which network NCCL took here
 * @said:	of POST /v1/jobs/JOB/nccl; taken
 *
 * A failure does no harm: then weft jobs and weft status do not know of it.
 */
void rendezvous_say_nccl(const char *socket_path, const char *job, json_t *said);

/**
 * rendezvous_end() - tell the hub that the job has ended on this node
 *
 * If no other node is connected, this ends the run, and the next node that asks begins a new one.
 * A failure does no harm: the run then ends when the hub has heard nobody for a minute.
 */
void rendezvous_end(const char *socket_path, const char *job);
