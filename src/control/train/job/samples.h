/*
 * samples.h - what the hub is told of a command while it runs: what its connections move, and how
 * its processes are (health/job_sample.h). The script is not touched for it.
 *
 * Theory of operation. Each second it is looked how the command's processes are, and every few
 * seconds the kernel is asked for the TCP connections from this node's address on the overlay
 * (sock_diag(7)). Those that a process of the command has open are the job's, which /proc/PID/fd
 * says; it is read only when there is a connection that was not seen before. What they have moved
 * since the time before is added up for each address at the other end, and told to the hub by the
 * agent, with what its ranks say of themselves (script_reports.h), and what NCCL's RAS
 * (ras_watch.h) and PyTorch's flight recorder (flight_watch.h) say of them. A connection counts
 * from the second time on that it is seen.
 *
 * What cannot be seen from here is not told: the processes of a container, or of another user.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "net/netlink/netlink.h"
#include "net/socket/tcp.h"
#include "train/job/flight_watch.h"
#include "train/job/ras_watch.h"

struct job_sample;
struct nccl_faults;
struct process_stat;
struct script_reports;
struct run;

/** Own addresses on the overlay, processes, and connections that are looked at, at most. */
#define SAMPLES_LOCALS_MAX    8
#define SAMPLES_PROCESSES_MAX 256
#define SAMPLES_FLOWS_MAX     8192

/** Whose connection it is. */
enum samples_owner {
    SAMPLES_OWNER_UNKNOWN,
    SAMPLES_OWNER_JOB,
    SAMPLES_OWNER_OTHER,
};

struct samples_flow {
    struct tcp_flow flow;
    enum samples_owner owner;
};

/** Connections, sorted by cookie. */
struct samples_flows {
    struct samples_flow *items; /* owns */
    size_t n;
    size_t cap;
};

/** A process of the command, since the last sample. */
struct samples_process {
    int pid;
    uint64_t user_ticks; /* when the time of the sample began, or the process */
    uint64_t kernel_ticks;
    uint64_t user_now; /* at the last look */
    uint64_t kernel_now;
    unsigned n_running; /* looks at which it wanted a core */
    unsigned n_waiting; /* looks at which it waited and could not be interrupted */
    bool is_stopped;    /* at the last look */
    unsigned seen_at;   /* number of that look */
};

/** The processes of the command. */
struct samples_processes {
    struct samples_process items[SAMPLES_PROCESSES_MAX];
    unsigned n;
    unsigned look;        /* number of the present look; it wraps */
    unsigned n_looks;     /* since the last sample */
    nsec_t stopped_since; /* at each look since then one was stopped; 0: none is */
};

struct samples {
    const struct run *run;          /* pins */
    struct script_reports *reports; /* pins: what its ranks say of themselves */
    const struct nccl_faults *nccl; /* pins: what NCCL's log says; NULL: it is not read */
    uint64_t n_nccl;                /* lines of it that the hub was told of */
    struct ras_watch ras;           /* owns; how its ranks are, as NCCL knows it */
    struct flight_watch flight;     /* where they are, as PyTorch's flight recorder knows it */
    uint64_t most_moved;            /* bytes in a sample, both ways */
    nsec_t moved_at;                /* the last sample in which something moved; 0: none yet */
    unsigned n_still;               /* samples since then */
    struct netlink nl;              /* owns */
    struct ip_addr locals[SAMPLES_LOCALS_MAX];
    unsigned n_locals;
    struct samples_flows flows; /* as of the last sample */
    struct samples_processes processes;
    nsec_t begun_at; /* when the time of the sample that is being made has begun */
    nsec_t look_at;  /* NSEC_NEVER: it is not looked */
};

#define SAMPLES_NULL                                                                               \
    {                                                                                              \
        .ras = RAS_WATCH_NULL, .look_at = NSEC_NEVER                                               \
    }

/** samples_begin() - before the command starts. Nothing is looked at if it does not meet at the
 * hub, or the kernel does not tell. */
void samples_begin(struct samples *s, const struct run *run, struct script_reports *reports);

/** samples_look() - look now, if it is time, and tell the hub. Blocks while the agent is asked. */
void samples_look(struct samples *s);

/** samples_end() - the command has ended: tell the hub what it was not told of NCCL's log, if
 * anything. Blocks while the agent is asked. */
void samples_end(struct samples *s);

/** samples_has_records() - has PyTorch's flight recorder written anything into the directory of the
 * run? */
bool samples_has_records(struct samples *s);

/** samples_deinit() - idempotent. */
void samples_deinit(struct samples *s);

/* ---- parts, for tests ------------------------------------------------------------------------ */

/** samples_add_flows() - add what the job's connections have moved from @before to @now, the nodes
 * with which most was exchanged. @ret: its time is set. */
void samples_add_flows(
    struct job_sample *ret, const struct samples_flows *before, const struct samples_flows *now);

/** samples_see() - a process, at the present look. */
void samples_see(struct samples_processes *p, int pid, const struct process_stat *stat);

/** samples_looked() - all processes were seen. */
void samples_looked(struct samples_processes *p, nsec_t now);

/** samples_note_moved() - does the job move anything, by what that sample has? */
void samples_note_moved(struct samples *s, const struct job_sample *sample, nsec_t now);

/** samples_is_still() - has nothing moved for a while, though it had before? */
bool samples_is_still(const struct samples *s, nsec_t now);

/**
 * samples_add_processes() - say how they were since the last call, and begin anew
 * @ret:		its time is set
 * @ticks_per_s:	of the kernel's count of time
 */
void samples_add_processes(
    struct job_sample *ret, struct samples_processes *p, nsec_t now, long ticks_per_s);
