/*
 * rendezvous.h - asks the hub where the nodes of a job meet (docs/API.md, "Jobs").
 *
 * Requests go through the agent's socket, because the hub accepts only requests that are signed
 * with the node's key, which the agent has. All functions block. Times are in ms.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"

struct interrupt;
struct str;

/** Where the processes of a job meet. A text is empty when it is not known. */
struct env_rendezvous {
    char id[128];      /* rendezvous id of the job's present run */
    char epoch[32];    /* the hub's random epoch; a hub that was started anew has another */
    char c10d[64];     /* HOST:PORT of a TCPStore */
    char etcd[64];     /* HOST:PORT of an etcd with the v2 keys API */
    char backend[16];  /* the backend that torchrun is to use, such as "c10d" or "etcd-v2" */
    char endpoint[64]; /* HOST:PORT of that backend: c10d or etcd from above */
    bool begins;       /* nobody has come to it, and there are no stores yet: it was only asked
                          where the job would meet */
};

/** What a command says of itself when it asks where its job meets. Texts are borrowed. */
struct rendezvous_arrival {
    const char *broken; /* the id of a run that cannot go on: the hub begins a new one, unless
                           another node had it do that already; NULL: none */
    const char *nnodes; /* of how many nodes the job is, "4" or "2:4"; refused where others run it
                           with another number; NULL: it is not said */
    bool is_isolated;   /* its ports here are for members of the job alone */
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
 * Return: 0; RENDEZVOUS_E_AWAY with words: no hub answers the agent, or none serves the jobs;
 * RENDEZVOUS_E_OVER with words: the broken run has ended on another node, and is not begun again;
 * or another non-zero with words.
 */
#define RENDEZVOUS_E_AWAY 100 /* no other outcome of run_prepare() is the same */
#define RENDEZVOUS_E_OVER 101 /* likewise */
int rendezvous_ask(const char *socket_path, const char *job, const struct rendezvous_arrival *a,
    struct env_rendezvous *ret, struct err *e);

/** What has become of a meeting. */
enum rendezvous_state {
    RENDEZVOUS_STATE_SAME,    /* it goes on where it was */
    RENDEZVOUS_STATE_MOVED,   /* another hub, or another process of the hub, serves the job now */
    RENDEZVOUS_STATE_BROKEN,  /* a new run of the job has begun */
    RENDEZVOUS_STATE_UNKNOWN, /* no hub answers, or none knows the job */
};

/** rendezvous_look() - what has become of the meeting @m, which rendezvous_ask() gave? */
enum rendezvous_state rendezvous_look(
    const char *socket_path, const char *job, const struct env_rendezvous *m);

/** At most so many nodes are named of those that are lost, and of those whose command has ended. */
#define RENDEZVOUS_NAMED_MAX 8

/** Nodes that the hub has named, and how many there are. */
struct rendezvous_nodes {
    unsigned n_all;
    unsigned n; /* so many are named */
    char names[RENDEZVOUS_NAMED_MAX][NAME_MAX_LEN + 1];
};

/** Bytes of a run's id, with its zero. */
#define RENDEZVOUS_RUN_MAX sizeof(((struct env_rendezvous *)0)->id)

/** Longest reason why a node is drained that is shown, with its zero. */
#define RENDEZVOUS_WHY_MAX 256

/** A node that is drained: it fails its health check, and gets no new work. */
struct rendezvous_drained {
    char name[NAME_MAX_LEN + 1];
    char why[RENDEZVOUS_WHY_MAX];
};

/** How the commands of a run are, by what they have said. */
struct rendezvous_presence {
    bool is_known;                 /* else the hub does not say */
    unsigned n_present;            /* so many are there */
    nsec_t silent_for;             /* the longest time for which one that is there was not heard */
    struct rendezvous_nodes lost;  /* whose command is not heard any more, and has not ended */
    struct rendezvous_nodes ended; /* whose command has ended; @n_all: so many commands */
    /* those of a run that this node, which was lost, was
                                             awaited in, while nobody else is there; none: no run */
    struct rendezvous_nodes ended_without;
    char run_without[RENDEZVOUS_RUN_MAX];                    /* that run; "": the present one */
    struct rendezvous_drained drained[RENDEZVOUS_NAMED_MAX]; /* @n_drained that have come to it */
    unsigned n_drained;
};

/** rendezvous_format_nodes() - append "gpu-1, gpu-2", and how many more there are */
void rendezvous_format_nodes(struct str *out, const struct rendezvous_nodes *nodes);

/**
 * rendezvous_say() - as rendezvous_look(), and tell the hub how the command is
 * @command:	what it calls itself, as no other one does
 * @every_s:	it says so again after this time
 * @ended:	it has ended, and nobody is to wait for it
 * @ret:	always set
 */
enum rendezvous_state rendezvous_say(const char *socket_path, const char *job,
    const struct env_rendezvous *m, const char *command, unsigned every_s, bool ended,
    struct rendezvous_presence *ret);

/**
 * rendezvous_members() - the names of the nodes that have come to one run of the job
 * @run:	the run's id, as in struct env_rendezvous
 * @ret_answers: set to whether the hub answers; NULL: whoever asks does not want to know
 *
 * Return: a new reference to an array of names, which the caller releases; NULL when the hub does
 * not say, or when another run of the job has begun.
 */
json_t *rendezvous_members(
    const char *socket_path, const char *job, const char *run, bool *ret_answers);

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
 * rendezvous_say_sample() - tell the hub what the command has done here in the last seconds
 * @sample:	as job_sample_encode() gives it; taken; NULL: nothing is said
 *
 * Return: false: the agent or the hub is of a version that does not know of it. Whatever else it
 * is, the next sample may get there.
 */
bool rendezvous_say_sample(const char *socket_path, const char *job, json_t *sample);

/**
 * rendezvous_say_ports() - tell the agent where the job listens here
 * @ports:	as job_ports_word_encode() gives it; taken
 * @ret_enforced:	set to whether the agent has nobody but members of the job reach its ports
 *
 * Return: 0; or non-zero with words: the agent does not answer, is of a version without it, or
 * cannot enforce it on this machine.
 */
int rendezvous_say_ports(
    const char *socket_path, const char *job, json_t *ports, bool *ret_enforced, struct err *e);

/**
 * rendezvous_end() - tell the hub that the job has ended on this node
 *
 * If no other node is connected, this ends the run, and the next node that asks begins a new one.
 * A failure does no harm: the run then ends when the hub has heard nobody for a minute.
 */
void rendezvous_end(const char *socket_path, const char *job);

/*
 * One node of a job finds something out, and all nodes of the job take its result.
 *
 * A plan that each node made for itself could differ from node to node, and a job whose nodes
 * exchange at different steps hangs. And only one node can measure the network at a time. So the
 * first node that comes claims the work with a key in the job's store at the hub (the v2 keys API
 * of etcd), does it, and writes the result there; the others wait for the result. The keys belong
 * to one run of the job. A claim ends by itself when its node does not finish in time, and then
 * another node claims the work.
 */

/**
 * agree_make_fn - find it out
 * @out:	the result is appended
 *
 * Return: 0; or non-zero with words, which the other nodes get, too.
 */
typedef int (*agree_make_fn)(void *ctx, struct str *out, struct err *e);

/** What is to be found out, and by whom. Texts are borrowed. */
struct agree_options {
    const struct env_rendezvous *rendezvous; /* where the job meets; its id is "": not at the hub */
    const struct str *kept; /* what was found out before, which this node hands on; "": nothing */
    const char *what;       /* the key's name: letters and dashes */
    const char *doing;   /* what a node does for it, for those that wait: "measures the network" */
    const char *node;    /* this node's name, which the others are told */
    unsigned patience_s; /* how long a node may take for it; at most twice as long is waited */
};

/**
 * agree_once() - the result of whichever node of the job has found it out
 * @out:	the result is appended
 *
 * A job that does not meet at the hub finds it out for itself.
 *
 * A node that waits for another one says on standard error which one it is, after some seconds and
 * then each minute.
 *
 * Return: 0; or non-zero with words: it could not be found out, the store does not answer, or the
 * time is over.
 */
int agree_once(
    const struct agree_options *opt, agree_make_fn make, void *ctx, struct str *out, struct err *e);

/*
 * The rank of each node of a job, by order of arrival, and where its rank 0 is reached.
 *
 * For commands that are no launcher that is known here: a plain script calls
 * init_process_group("env://"), or "tcp://ADDRESS:PORT" with the address and the port of rank 0,
 * and has to know its rank. Each node of a run adds one key to the job's store at the hub, below
 * one directory, whose keys the store numbers (the v2 keys API of etcd, "in-order keys"). A node's
 * rank is the place of its first key, so it is the same when the command is started again on that
 * node. The key also has the node's overlay address and a port that was free there, so that those
 * of rank 0 are known before any command starts.
 */

/** Who asks. Texts are borrowed. */
struct ranks_options {
    const struct env_rendezvous *rendezvous; /* with an id, and an etcd at the hub */
    const char *node;                        /* this node's name */
    const char *address4;                    /* its address on the overlay */
    unsigned first_port;                     /* of those that the kernel chooses; 0: not known */
    bool starts; /* the command is about to start; false: nothing is written, and the rank is that
                    which the node would get now */
};

/** What a command is told. */
struct ranks {
    bool is_known; /* the other fields are set */
    unsigned rank;
    char address[IP_ADDR_TEXT_MAX]; /* of rank 0 */
    uint16_t port;                  /* free on rank 0 when it came; 0: not known before it starts */
};

/**
 * ranks_find() - find this node's rank, and rank 0's address and port
 * @ret:	untouched on failure
 *
 * Blocks while the store is asked, some seconds at most.
 *
 * Return: 0; or non-zero with words: the store does not answer, or no port is free.
 */
int ranks_find(const struct ranks_options *opt, struct ranks *ret, struct err *e);
