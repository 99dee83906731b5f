/*
 * node_machine.h - what an agent finds of its machine: is the clock right, does a copy of it exist,
 * which fabric has it, how are its kernel and its GPUs?
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "os/timestamp_file.h"

struct state;

/* ---- its clock ------------------------------------------------------------------------------- */

/*
 * Is this machine's clock right, and does it lock the node out?
 *
 * Two different things. A clock that differs from the hub's disturbs jobs and whoever compares
 * logs, and no handshake. A clock that was set back does: WireGuard's peers take no initiation that
 * is dated before one that they have seen. The userspace engine dates its own after those all the
 * same (os/timestamp_file.h). The kernel's cannot, so here it is kept what its clock has said, and
 * people are told what is the matter instead of being sent to look at their firewalls.
 *
 * Pure but for the file: times in, sentences out.
 */

#define NODE_CLOCK_TEXT_MAX 240

struct node_clock {
    char path[PATH_MAX];           /* of the file; "": nothing is kept */
    struct timestamp_file file;    /* beside the kernel's engine */
    nsec_t before;                 /* the latest that the clock is known to have said; 0: nothing */
    char off[NODE_CLOCK_TEXT_MAX]; /* how it differs from the hub's, a sentence; "": little */
    char lockout[NODE_CLOCK_TEXT_MAX]; /* why handshakes are refused, a clause; "": they are not */
};

/** node_clock_init() - @state_dir has the file of an earlier run. */
void node_clock_init(struct node_clock *nc, const char *state_dir);

/**
 * node_clock_look() - each poll: has the clock been set back?
 * @is_kernel:	the engine is the kernel's
 *
 * Logs news.
 */
void node_clock_look(struct node_clock *nc, bool is_kernel, nsec_t wall, nsec_t now);

/** node_clock_compare() - the hub has said its time, and this clock is @ahead_s ahead of it. Logs
 * news. */
void node_clock_compare(struct node_clock *nc, int64_t ahead_s);

/** node_clock_why() - what is wrong with the clock, for people; "": nothing that is known. */
const char *node_clock_why(const struct node_clock *nc);

/* ---- a copy of it ---------------------------------------------------------------------------- */

/*
 * Does another machine use this node's key as well?
 *
 * Whoever copies a disk or an image copies the node that is on it. Then two machines are one node,
 * and each takes the other's sessions away again and again. Only the hub sees both: an agent tells
 * it on which machine it runs, and the hub answers that another one speaks in turn with it
 * (hub/model/copies.h). Which of the two is the copy is told by what an agent finds of the machine
 * on which the node joined.
 */

/** What the hub says of the other machine, of which a sentence is made. */
#define NODE_COPY_TEXT_MAX 520

struct node_copy {
    json_t *machine;              /* owns: what the hub is told of this machine; NULL: no memory */
    char why[NODE_COPY_TEXT_MAX]; /* the hub's sentence; "": there is no other machine */
    bool is_copy;                 /* this machine's state is the copy, not the other's */
};

/** node_copy_init() - look at this machine. @st: borrowed: on which machine the node joined. */
void node_copy_init(struct node_copy *nc, const struct state *st);

/** node_copy_on_answer() - the hub has answered a report with @body; NULL: nothing. Logs news. */
void node_copy_on_answer(struct node_copy *nc, const json_t *body);

/* ---- its fabric ------------------------------------------------------------------------------ */

/*
 * Finds out which fabric this machine has, on a thread: a cloud's metadata service
 * may take its time.
 *
 * Threads: the agent's main thread calls; "fabric" reads, once, and ends.
 */

/** node_fabric_new() - begin to find out. NULL: no memory, or no thread; then nothing is told. */
struct node_fabric *node_fabric_new(void);

/**
 * node_fabric_report() - what there is to tell others
 * @nf:	NULL is fine
 *
 * Return: borrowed until node_fabric_free(); NULL: it is not known yet, or the machine has neither
 * a fabric nor GPUs nor a place that its cloud names.
 */
const struct fabric_report *node_fabric_report(const struct node_fabric *nf);

/** node_fabric_free() - wait for the thread, and release it. */
struct node_fabric *node_fabric_free(struct node_fabric *nf);

/* ---- what it loses and lacks ----------------------------------------------------------------- */

/*
 * Reads what the kernel counts, each minute, on a thread: some drivers take their time.
 * health/machine.h says what follows from two samples.
 *
 * Threads: the loop's; "machine" reads.
 */

struct machine_watch;

/** How often it is read. */
#define NODE_WATCH_EACH (60 * NSEC_PER_SEC)

/** node_watch_new() - of this machine, and of the disk of @state_dir. NULL: no memory, or no
 * thread; then nothing is seen. */
struct node_watch *node_watch_new(const char *state_dir);

/**
 * node_watch_look() - each poll: take what was read, and have it read again when it is time
 * @nw:	NULL is fine
 *
 * Return: borrowed until the next call; NULL: nothing was read yet.
 */
const struct machine_watch *node_watch_look(struct node_watch *nw, nsec_t now);

/** node_watch_free() - wait for the thread, and release it. */
struct node_watch *node_watch_free(struct node_watch *nw);

/* ---- its GPUs -------------------------------------------------------------------------------- */

/*
 * Asks NVIDIA's driver how the GPUs are, each minute, by a process of its own: `weft gpus`
 * (fabric/gpu_sampler.h). One that says nothing is killed, and where the kernel cannot even do
 * that, since the driver hangs, no other one is started meanwhile. On a machine without a driver it
 * is asked again each ten minutes. health/gpu.h says what follows.
 */

struct gpu_watch;

/** How often it is asked, of a driver that has answered, and of one that has not. */
#define NODE_GPUS_EACH       (60 * NSEC_PER_SEC)
#define NODE_GPUS_EACH_NEVER (600 * NSEC_PER_SEC)
/** A process that says nothing for so long is killed. */
#define NODE_GPUS_SILENT (30 * NSEC_PER_SEC)

/** node_gpus_new() - @program: is started with the words "gpus TIME", copied; NULL: this one. NULL:
 * no memory. */
struct node_gpus *node_gpus_new(const char *program);

/**
 * node_gpus_look() - each poll: take what was said, and have it asked again when it is time
 * @ng:		NULL is fine
 * @wall_s:	s since 1970
 *
 * Never waits.
 *
 * Return: borrowed until the next call; NULL: nothing is known yet.
 */
const struct gpu_watch *node_gpus_look(struct node_gpus *ng, nsec_t now, int64_t wall_s);

/** node_gpus_seen() - what the last look has returned. */
const struct gpu_watch *node_gpus_seen(const struct node_gpus *ng);

/** node_gpus_free() - kill the process, and release it. Does not wait. */
struct node_gpus *node_gpus_free(struct node_gpus *ng);
