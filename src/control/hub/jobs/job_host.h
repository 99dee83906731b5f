/*
 * job_host.h - the rendezvous process of one network: started, told, heard, ended, started again.
 *
 * Theory of operation. A network that is served has one process (rdzv_child.h). It is told
 * everything: whose rendezvous it is, who is a member, and then the jobs. What it says is taken in
 * portions, and only while there is room for changes on their way to the disk. When it ends by
 * itself, or says what it may not say, what it has said before is committed, and another is
 * started: at once, and then after longer and longer.
 *
 * job_host_turn() carries between the process and the network's jobs what has come up since the
 * turn before; the owner calls it in each turn of the loop, before the loop sleeps, and no later
 * than at job_host_due().
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/clock.h"

struct rdzv_wire;

struct job_host {
    struct job_network *network; /* pins: its jobs are served */
    struct ip_addr *members;     /* owns: their addresses, in no order */
    size_t n_members;            /* of them */
    size_t cap_members;          /* room for them */
    struct rdzv_child *child;    /* owns; NULL: there is no process */
    struct blob_reader *reader;  /* owns; of the process */
    nsec_t started_at;           /* when the process was started */
    bool is_ending;              /* it was told to end */
    bool is_behind;              /* it has not been told everything */
    bool is_writable;            /* it takes more */
    bool is_waiting;             /* what it has said is taken when there is room */
    pid_t ended_pid;             /* a process that is not waited for yet; 0: none */
    nsec_t start_at;     /* when the next one is started, of a network that is served; jobs.c
                            sets it; NSEC_NEVER: never */
    nsec_t backoff;      /* how long the next one waits after this one's end */
    uint64_t n_restarts; /* processes that ended by themselves */
};

/** job_host_init() - there is no process. @network: pinned. */
void job_host_init(struct job_host *host, struct job_network *network);

/** job_host_stop() - tell it to end, and start no other. */
void job_host_stop(struct job_host *host);

/** job_host_kill() - end it at once, and start no other. */
void job_host_kill(struct job_host *host);

/**
 * job_host_end() - wait for the end of one that was told to end; the hub ends
 * @deadline:	then it is killed
 *
 * What it says until then is taken, and committed where there is no room for it.
 */
void job_host_end(struct job_host *host, nsec_t deadline);

/** job_host_add_member() - who has this address is a member from now on. */
void job_host_add_member(struct job_host *host, const struct ip_addr *address);

/** job_host_remove_member() - it is no member any more: the process hangs up on it. */
void job_host_remove_member(struct job_host *host, const struct ip_addr *address);

/** job_host_due() - when job_host_turn() has something to do by the clock; NSEC_NEVER: not now. */
nsec_t job_host_due(const struct job_host *host);

/** job_host_turn() - carry messages between the process and the jobs; see above. */
void job_host_turn(struct job_host *host, nsec_t now);

/* ---- what a rendezvous process says, and what of it the hub does ----------------------------- */

/*
 * The process reads what strangers send, so it may be theirs: nothing that it says is trusted. It
 * names jobs by numbers that the hub gave to jobs of this network; every key of the store is built
 * here. How much it may keep is counted here. What it says of a run that is over is late, and
 * ignored.
 *
 * Threads: the hub's loop only.
 */

/** job_intake_take() - take what a process has said. False: it may not say that: end it. */
bool job_intake_take(struct job_network *n, const struct rdzv_wire *m, nsec_t now);

/** job_intake_end() - the process has ended: what it began to say is forgotten. */
void job_intake_end(struct job_network *n, nsec_t now);
