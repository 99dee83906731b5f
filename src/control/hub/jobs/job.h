/*
 * job.h - one job, as the hub knows it.
 *
 * What is in the job only the network's rendezvous process knows. The hub knows its record, which
 * of its blobs are in the store, and how the process said last that it is.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/parse.h"
#include "hub/jobs/job_members.h"
#include "rendezvous/shared/rdzv_record.h"

struct job_health;
struct rdzv_wire;

/* ---- which blobs of a job are in the hub's store --------------------------------------------- */

/*
 * What a blob is, and under which keys it lies, is in rendezvous/shared/rdzv_record.h. The index
 * says what the store has, or will have once all changes on their way are done; the bytes are in
 * the store alone. A blob that does not belong to the job's current run is garbage: it is deleted
 * little by little, by job.c.
 *
 * Pure. Threads: the owner's.
 */

/** Sums over the indexes of all jobs of a network. Only job.c writes them. */
struct blob_totals {
    size_t n_entries; /* garbage too */
    size_t n_garbage; /* of them */
    size_t n_bytes;   /* of the blobs that are not garbage */
};

/** A blob in the store. */
struct blob_entry {
    struct htab_link link; /* in its index */
    struct rdzv_hash hash; /* what it is called */
    uint32_t run;          /* that it belongs to; 0: a hub wrote it that marked no run */
    uint32_t len;          /* bytes; about, if it was loaded from the store */
    uint16_t n_pieces;     /* at least 1 */
    uint8_t kind;          /* enum rdzv_key_kind: ENTRY or NODE */
    char slot;             /* of its other pieces: RDZV_SLOT_... */
};

struct blob_index {
    struct htab entries;        /* owns struct blob_entry */
    struct blob_totals *totals; /* pins: the network's */
    uint32_t run;               /* blobs of this run are current; 0: none is */
    bool takes_unmarked;        /* those that belong to no run are current as well */
    size_t n_garbage;           /* entries that are not current */
    size_t sweep_cursor;        /* where the search for garbage goes on */
};

/** blob_index_is_current() - does it belong to the current run? Otherwise it is garbage. */
bool blob_index_is_current(const struct blob_index *index, const struct blob_entry *entry);

/**
 * blob_index_set_run() - from now on these blobs are current, and all others garbage
 * @run:		0: none is current
 * @takes_unmarked:	blobs that belong to no run are current as well
 */
void blob_index_set_run(struct blob_index *index, uint32_t run, bool takes_unmarked);

/* ---- the listening sockets of one job, on the hub's overlay addresses ------------------------ */

/*
 * The hub opens them and hands copies to the rendezvous process. They stay open here as well: while
 * a process is dead its clients wait in their queues.
 *
 * Threads: the owner's.
 */

/** A job has at most two ports, each on two addresses, ... */
#define JOB_PORTS_OVERLAY 4

/** ... and the same on the loopback, for programs of a member on the hub's own machine. */
#define JOB_PORTS_MAX (2 * JOB_PORTS_OVERLAY)

struct job_ports {
    int fds[JOB_PORTS_MAX]; /* owns; -1: none */
    unsigned n_failures;    /* calls of job_ports_open() in a row that left one closed */
};

/** job_ports_init() - none is open. */
void job_ports_init(struct job_ports *p);

/**
 * job_ports_open() - open those sockets that are not open yet
 * @interface:	its name; only what comes in there is heard
 * @has_own:	the machine is a member too: its own programs are heard as well
 * @at:		@n (at most JOB_PORTS_OVERLAY) addresses with ports; the same in each call until
 *		job_ports_close()
 *
 * Return: 0, or negative errno with words: one of them cannot be opened; the others are.
 */
int job_ports_open(struct job_ports *p, const char *interface, bool has_own,
    const struct endpoint *at, unsigned n, struct err *e);

/** job_ports_close() - all of them, at once. Idempotent. */
void job_ports_close(struct job_ports *p);

/* ---- the blobs of one job: the index of them, and the changes that lead to it ---------------- */

/*
 * Each function here writes the index and the queue of changes together, so that the index is what
 * the store will have. All keys are built here, from the names of the network and of the job.
 *
 * A blob of several pieces is received with its first piece last, one blob at a time in a network.
 * Its pieces are put into the slot that the blob is not in now, and the first piece, which names
 * the slot, is what makes them the blob. Whenever the hub dies, the first piece names pieces that
 * are complete (rendezvous/shared/rdzv_record.h).
 *
 * Pure. Threads: the owner's.
 */

/** What a network may have in the store: entries, and bytes of those that are no garbage. */
#define JOB_BLOBS_MAX       (90u << 10)
#define JOB_BLOBS_BYTES_MAX (68u << 20)

struct job_blobs {
    const char *network;        /* pins: its name */
    const char *job;            /* pins: its name */
    struct change_queue *queue; /* pins: the network's */
    struct blob_index index;    /* see there */
};

/** A blob of which not all pieces have come. One in a network. */
struct blob_upload {
    struct job_blobs *to; /* pins; NULL: there is none */
    enum rdzv_key_kind kind;
    struct rdzv_hash hash;
    unsigned next;     /* the piece that comes next */
    unsigned n_pieces; /* of the blob */
    char slot;         /* where they go */
    size_t len;        /* bytes so far */
};

/** job_blobs_init() - none, and no run: what is loaded is garbage until blob_index_set_run(). All
 * parameters are pinned but @seed, which is random and unknown to strangers. */
void job_blobs_init(struct job_blobs *b, const char *network, const char *job,
    struct change_queue *queue, struct blob_totals *totals, uint64_t seed);

/** job_blobs_deinit() - forget all of them; the store is not touched. */
void job_blobs_deinit(struct job_blobs *b);

/**
 * job_blobs_put() - a message RDZV_WIRE_PUT: keep a blob, or a piece of one
 * @u:	the network's; written
 * @m:	its run is the current one
 *
 * Without memory the change is lost: it lives in the rendezvous process alone.
 *
 * Return: false when a process may not say that: the piece is not the one that comes next, or the
 * network has more than it may.
 */
bool job_blobs_put(
    struct job_blobs *b, struct blob_upload *u, const struct rdzv_wire *m, nsec_t now);

/** job_blobs_drop() - forget a blob; one that is not there is fine. */
void job_blobs_drop(
    struct job_blobs *b, enum rdzv_key_kind kind, const struct rdzv_hash *hash, nsec_t now);

/** job_blobs_abort() - the rest of the blob will not come: delete the pieces that have. */
void job_blobs_abort(struct blob_upload *u, nsec_t now);

/** job_blobs_sweep() - delete some garbage, as long as few changes wait. */
void job_blobs_sweep(struct job_blobs *b, nsec_t now);

/** job_blobs_may_delete() - do so few changes wait that more may be deleted? */
bool job_blobs_may_delete(const struct change_queue *queue);

/**
 * job_blobs_load() - a record of a blob was found in the store
 * @k:		of @key; the pieces of a blob come in their order
 * @text:	its value
 *
 * A piece that no first piece names is what a hub left behind that died while it wrote the blob:
 * it is deleted.
 *
 * Return: 0; -EINVAL with words: the value cannot be understood; or -ENOMEM with words.
 */
int job_blobs_load(struct job_blobs *b, const struct rdzv_key *k, const char *key, const char *text,
    nsec_t now, struct err *e);

/* ---- the job --------------------------------------------------------------------------------- */

/** How a job is, as its rendezvous process said last. */
struct job_facts {
    uint32_t n_connections; /* to it */
    unsigned n_members;     /* that are connected: 0, 1 (it is @member), or 2 for more */
    struct ip_addr member;  /* see @n_members */
    uint64_t n_keys;        /* entries */
    uint64_t n_bytes;       /* that they take */
    uint64_t n_refused;     /* requests over a limit */
    char last_limit[80];    /* which one it was; "": none */
};

/** What the rendezvous process has been told of a job. Only job_host.c writes it. */
struct job_sent {
    uint32_t
        number;     /* that there is a job of this number; another than the job's: it is not told */
    bool is_loaded; /* it has been told all that the store has of the job */
    size_t cursor;  /* how far the telling of blobs is: a cursor of htab_each() */
    unsigned handed; /* bit i: listening socket i was handed over */
};

struct job {
    struct list link;              /* in the network's jobs */
    struct job_network *network;   /* pins */
    uint32_t number;               /* by which a process knows it; new when it is revived */
    char name[NAME_MAX_LEN + 1];   /* see parse_name() */
    struct rdzv_job_record record; /* as it is in the store */
    struct record_save *save;      /* owns: job_runs.c's, the record that is on its way; NULL: none
                                      is */
    bool is_save_in_vain;          /* the job was forgotten meanwhile, and does not change */
    bool is_forgotten;             /* it is freed when the last of its garbage is deleted */
    bool is_unsaved;               /* it is being made: nobody is told of it */
    nsec_t heard_at;               /* when somebody spoke last */
    struct job_blobs blobs;        /* what of it is in the store */
    struct job_ports ports;        /* where it is served */
    struct job_facts facts;        /* see there */
    struct job_members members;    /* who has come to its present run */
    struct job_health *health; /* owns: what its nodes have said of how it goes; NULL: nothing */
    struct job_sent sent;      /* see there */
};

/** job_exists() - is it there for members? Not while it is being made, and not once forgotten. */
bool job_exists(const struct job *job);

/** job_is_default() - is it the one that is always there? */
bool job_is_default(const struct job *job);

/** job_is_busy() - is a member connected other than @who? @who: NULL: nobody is left out. */
bool job_is_busy(const struct job *job, const struct ip_addr *who);

/** job_is_over() - has its run ended, so that who comes now begins a new one? */
bool job_is_over(const struct job *job, nsec_t now);

/** job_is_run() - is this the name of its present run? */
bool job_is_run(const struct job *job, const char *run);

/** job_set_run() - record.run, and the blobs of all other runs are garbage from now on. */
void job_set_run(struct job *job, uint32_t run);

/** job_forget_facts() - a run begins: nobody is connected, and nothing is in the stores. */
void job_forget_facts(struct job *job);

/** job_read_words() - what a process says in words, as people may see it; into @buf. */
void job_read_words(char *buf, size_t cap, const struct rdzv_wire *m);
