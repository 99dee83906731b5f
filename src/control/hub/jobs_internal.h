/*
 * jobs_internal.h - jobs, as the hub's own files about them see them.
 *
 *     jobs.c         networks, and which jobs they have
 *     job.c          one job: its life, and its runs
 *     jobs_index.c   what of a job is in the hub's store
 *     jobs_load.c    all of that, out of the store
 *     jobs_saving.c  a job's own record, on its way to the store, and who waits for it
 *     jobs_commit.c  changes, on their way to the store
 *     jobs_intake.c  what a rendezvous process says, none of which is trusted
 *     jobs_host.c    the processes: started, fed, ended
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/htab.h"
#include "base/list.h"
#include "os/log.h"
#include "base/rate.h"
#include "hub/jobs.h"
#include "hub/model/model.h"
#include "rendezvous/rdzv_wire.h"

/** A job has at most two ports, each on two addresses. */
#define JOBS__LISTENERS_MAX 4

/** What a network may have in the store: entries, and bytes of those of the current runs. */
#define JOBS__ITEMS_MAX (90u << 10)
#define JOBS__BYTES_MAX (68u << 20)

/** Garbage beyond which nothing more is taken from a process until some is deleted. */
#define JOBS__GARBAGE_MAX 8192u

/** Changes that wait for the disk, beyond which nothing more is taken: how many, and bytes. */
#define JOBS__PENDING_MAX       4096u
#define JOBS__PENDING_BYTES_MAX (2u << 20)

/** Questions of a process for when its changes are on the disk, that are told apart. */
#define JOBS__SYNCS_MAX 64u

struct jobs_host;
struct store;

struct jobs {
    struct uv_loop_s *loop; /* pins */
    struct model *model;    /* pins */
    uint64_t seed;          /* for the hash tables */
    uint64_t epoch;         /* of this life of the hub */
    struct list networks;   /* of struct jobs_network; who commits next is first */
    uv_timer_t timer;       /* to the next commit */
    nsec_t free_at;         /* until then nothing is committed: the loop is for others */
    size_t batch;           /* changes in one commit */
    uint32_t next_number;   /* of a job, or of a process */
    uint64_t n_commits;     /* since the start */
    uint64_t n_failed;      /* of them */
    uint64_t n_restarts;    /* processes that ended by themselves */
    struct log_limit limit; /* of the words about commits that failed */
    bool started;           /* between jobs_start() and jobs_stop() */
};

/** Changes on their way to the store. */
struct jobs_commit {
    struct htab by_key; /* of struct jobs_change: the same as in @order */
    struct list order;  /* owns them; what changed first is first */
    struct list coming; /* the same; those that are on their way to the store */
    size_t n_coming;    /* of them */
    size_t bytes;       /* of the texts of all of them */
    uint64_t next;      /* number of the next change */
    nsec_t due;         /* NSEC_NEVER: there is nothing to commit */
    nsec_t began;       /* the commit that is on its way; 0: none is */
    nsec_t ended;       /* the last commit */
    nsec_t cost;        /* of it */
    bool is_failing;    /* the last one failed */
    struct {
        uint64_t seq;    /* what the process calls it */
        uint64_t before; /* all changes before that number */
    } syncs[JOBS__SYNCS_MAX];
    unsigned n_syncs;
};

/** A blob of which not all pieces have come. */
struct jobs_partial {
    struct job *job; /* pins; NULL: there is none */
    enum rdzv_key_kind kind;
    struct rdzv_hash hash;
    unsigned next;     /* the piece that comes next */
    unsigned n_pieces; /* of the blob */
    char slot;         /* where they go */
    size_t len;        /* bytes so far */
};

/** A network's jobs; there from the first of them on, or from when it is served. */
struct jobs_network {
    struct list link;            /* in jobs.networks */
    struct jobs *jobs;           /* pins */
    char name[NAME_MAX_LEN + 1]; /* of the network */
    struct list list;            /* of struct job, by name; also those that are forgotten */
    struct model_network *net;   /* pins; NULL: it is not served now */
    char interface[16];          /* where it is served */
    size_t n_items;              /* in the indexes of all jobs, garbage too */
    size_t n_garbage;            /* of them */
    size_t n_bytes;              /* of those that are none */
    struct jobs_commit commit;   /* see there */
    struct jobs_partial partial; /* see there */
    struct jobs_host *host;      /* owns; NULL: there is no process */
    pid_t ended;                 /* a process that is not reaped yet; 0: none */
    nsec_t start_at;             /* when the next process is started; NSEC_NEVER: never */
    nsec_t backoff;              /* what the next one waits for after this one's end */
    struct rdzv_wire counts;     /* as the process told them last */
    uint64_t n_store_requests;   /* of processes that have ended */
    uint64_t n_etcd_requests;    /* likewise */
    uint64_t n_hung_up;          /* likewise */
    uint64_t n_deferred;         /* likewise */
    struct rate pace;            /* see jobs__keeps_pace() */
};

struct job {
    struct list link;                   /* in the network's */
    struct jobs_network *network;       /* pins */
    uint32_t number;                    /* by which a process knows it */
    char name[NAME_MAX_LEN + 1];        /* see parse_name() */
    struct rdzv_job_record record;      /* as it is in the store */
    struct htab items;                  /* owns struct jobs_item: what of it is in the store */
    size_t n_garbage;                   /* of them */
    size_t cursor;                      /* where the search for garbage goes on */
    bool is_forgotten;                  /* it goes when the last of its garbage has gone */
    bool is_unsaved;                    /* it is being made: nobody is told of it */
    struct jobs_saving *saving;         /* owns: the record that is on its way; NULL: none is */
    int listeners[JOBS__LISTENERS_MAX]; /* owns; -1: none */
    unsigned n_tries;                   /* to open them, that failed */
    /* What the process knows of it. */
    bool is_told;    /* that there is such a job */
    bool is_loaded;  /* and what is in it */
    size_t loaded;   /* buckets of @items that were told, until then */
    unsigned handed; /* bits: listeners that were handed over */
    /* As the process told it. */
    uint32_t n_connections;
    unsigned n_members;    /* that are connected: 0, 1 (it is @member), or 2 for more */
    struct ip_addr member; /* see @n_members */
    nsec_t heard;          /* when somebody spoke last */
    uint64_t n_keys;       /* entries */
    uint64_t n_bytes;      /* that they take */
    uint64_t n_refused;    /* requests over a limit */
    char last_limit[80];   /* which one it was; "": none */
};

/** A blob in the store. */
struct jobs_item {
    struct htab_link link; /* in its job's items */
    struct rdzv_hash hash; /* what it is called */
    uint32_t run;          /* that it belongs to */
    uint32_t len;          /* bytes */
    uint16_t n_pieces;     /* at least 1 */
    uint8_t kind;          /* enum rdzv_key_kind */
    char slot;             /* of its other pieces */
};

/** A change of a key that is not on the disk yet. */
struct jobs_change {
    struct list link;      /* in jobs_commit.order or .coming */
    struct htab_link hash; /* in jobs_commit.by_key */
    uint64_t number;       /* in order of change */
    bool is_coming;        /* it is on its way, and not in by_key */
    char *text;            /* owns; NULL: the key goes */
    char key[];            /* with the zero */
};

/* ---- job.c ---- */

/** jobs__new() - as @record has it; not saved, not served. NULL: no memory. */
struct job *jobs__new(
    struct jobs_network *n, const char *name, const struct rdzv_job_record *record, nsec_t now);

/**
 * jobs__make() - one with a port of its own; it is being saved, and is served when it is
 *
 * Return: 0; JOBS_E_FULL with words: there is no port left; or negative errno with words.
 */
int jobs__make(
    struct jobs_network *n, const char *name, nsec_t now, struct job **ret, struct err *e);

/**
 * jobs__enter() - a member comes to a job that is not being saved: a new run if the last one is
 * over
 *
 * Return: 0: @job's saving says whether one is beginning; JOBS_E_PACE or negative errno with words.
 */
int jobs__enter(struct job *job, nsec_t now, struct err *e);

/** jobs__leave() - the same for a member that says that the run is over. Also JOBS_E_BUSY. */
int jobs__leave(struct job *job, const struct ip_addr *who, nsec_t now, struct err *e);

/** jobs__is_made() - its record is on the disk: it is served. */
void jobs__is_made(struct job *job);

/** jobs__is_revived() - the same, of one that was forgotten. */
void jobs__is_revived(struct job *job, const struct rdzv_job_record *record, nsec_t now);

/** jobs__has_begun() - the record of a new run is on the disk. */
void jobs__has_begun(struct job *job, const struct rdzv_job_record *record);

/** jobs__job_tick() - forget it, or what is in the default one, once nobody came for JOBS_IDLE. */
void jobs__job_tick(struct job *job, nsec_t now);

/** jobs__forget() - it is no more; what is in the store goes with jobs__sweep(). */
void jobs__forget(struct job *job);

/** jobs__free() - from memory alone. */
void jobs__free(struct job *job);

/** jobs__listen() - open the job's ports; what cannot be opened is tried again each second. */
void jobs__listen(struct job *job);

/** jobs__unlisten() - close them. */
void jobs__unlisten(struct job *job);

/* ---- jobs.c ---- */

/** jobs__network() - finds it, or makes it. NULL: no memory. */
struct jobs_network *jobs__network(struct jobs *jobs, const char *name);

/** jobs__find() - lends, also one that is forgotten; NULL if there is none. */
struct job *jobs__find(struct jobs_network *n, const char *name);

/** jobs__find_number() - the same, by number, of those that are not forgotten. */
struct job *jobs__find_number(struct jobs_network *n, uint32_t number);

/** jobs__keeps_pace() - may a run of the network begin or end now? It then has. */
bool jobs__keeps_pace(struct jobs_network *n, nsec_t now);

/** jobs__set_aside() - the record of that key cannot be read: model_set_aside(). */
void jobs__set_aside(struct jobs *jobs, const char *key, const char *why);

/* ---- jobs_saving.c ---- */

/** What a record says that is new. */
enum jobs_save {
    JOBS_SAVE_NEW,     /* that there is such a job */
    JOBS_SAVE_REVIVED, /* that there is again */
    JOBS_SAVE_RUN,     /* that a run begins */
    JOBS_SAVE_END,     /* that it is over */
};

/** jobs__save() - have the record stored; what it says comes true when it is. 0 or -errno. */
int jobs__save(struct job *job, enum jobs_save what, const struct rdzv_job_record *record,
    nsec_t now, struct err *e);

/** jobs__save_in_vain() - it does not come true: the job is forgotten. */
void jobs__save_in_vain(struct job *job);

/** jobs__wait() - @done is called when the job is not being saved any more. 0 or -ENOMEM. */
int jobs__wait(struct job *job, jobs_done_fn done, void *ctx);

/* ---- jobs_index.c ---- */

/** jobs__find_item() - lends; NULL: it is not in the store. */
struct jobs_item *jobs__find_item(
    const struct job *job, enum rdzv_key_kind kind, const struct rdzv_hash *hash);

/** jobs__is_current() - does it belong to the job's run? Else it is garbage. */
bool jobs__is_current(const struct job *job, const struct jobs_item *item);

/**
 * jobs__set_item() - the blob is, or will be, in the store
 * @item:	@kind and @hash are its name
 *
 * Return: 0 or -ENOMEM.
 */
int jobs__set_item(struct job *job, const struct jobs_item *item);

/** jobs__remove_item() - it is not, or will not be. */
void jobs__remove_item(struct job *job, struct jobs_item *item);

/** jobs__begin_run() - what there is is garbage from now on. */
void jobs__begin_run(struct job *job, uint32_t run);

/** jobs__end_runs() - the same, and the job is forgotten. */
void jobs__end_runs(struct job *job);

/** jobs__forget_items() - from memory alone. */
void jobs__forget_items(struct job *job);

/* ---- jobs_load.c ---- */

/** jobs__load() - all that is kept, into an empty @jobs. 0 or negative errno with words. */
int jobs__load(struct jobs *jobs, struct err *e);

/* ---- jobs_commit.c ---- */

/** jobs__commit_init() - empty. */
void jobs__commit_init(struct jobs_commit *c, uint64_t seed);

/** jobs__commit_deinit() - forget what is not on the disk. */
void jobs__commit_deinit(struct jobs_commit *c);

/** jobs__put() - the key's value is to be @text, which is taken; NULL deletes it. 0 or -ENOMEM. */
int jobs__put(struct jobs_network *n, const char *key, char *text);

/** jobs__forget_put() - what waits to be done with the key, and is not on its way, is not done. */
void jobs__forget_put(struct jobs_network *n, const char *key);

/** jobs__delete_pieces() - of the blob at @first, in @slot, from @from to before @to. */
void jobs__delete_pieces(
    struct jobs_network *n, const char *first, char slot, unsigned from, unsigned to);

/** jobs__arm() - after loading: what is to be committed will be. */
void jobs__arm(struct jobs *jobs);

/** jobs__sync() - the process is to be told when all of the above is on the disk. */
void jobs__sync(struct jobs_network *n, uint64_t seq);

/** jobs__can_take() - is there room for more changes? */
bool jobs__can_take(const struct jobs_network *n);

/** jobs__is_saved() - is everything on the disk? */
bool jobs__is_saved(const struct jobs_network *n);

/** jobs__commit_all() - now; waits for the disk: the hub ends. 0 or negative errno with words. */
int jobs__commit_all(struct jobs_network *n, struct err *e);

/** jobs__sweep() - delete some garbage of the network, if the store is not busy. */
void jobs__sweep(struct jobs_network *n);

/** jobs__on_timer() - commits what is due. */
void jobs__on_timer(uv_timer_t *timer);

/* ---- jobs_intake.c ---- */

/** jobs__take() - what a process has said. False: it may not say that. */
bool jobs__take(struct jobs_network *n, const struct rdzv_wire *m);

/** jobs__forget_partial() - a blob of which not all pieces have come is not kept. */
void jobs__forget_partial(struct jobs_network *n);

/** jobs__take_no_more() - the process has ended: what it began to say is forgotten. */
void jobs__take_no_more(struct jobs_network *n);

/* ---- jobs_host.c ---- */

/** jobs__host_due() - when the network's process is to be started; NSEC_NEVER: not now. */
nsec_t jobs__host_due(const struct jobs_network *n);

/** jobs__host_tick() - start it if it is time; each second, and when that comes. */
void jobs__host_tick(struct jobs_network *n, nsec_t now);

/** jobs__host_kill() - end it at once. */
void jobs__host_kill(struct jobs_network *n);

/** jobs__host_end() - let it say what is left, and wait for it, at most @deadline. */
void jobs__host_end(struct jobs_network *n, nsec_t deadline);

/** jobs__host_say() - to the process, if there is one. */
void jobs__host_say(struct jobs_network *n, const struct rdzv_wire *m);

/** jobs__host_unread() - has it said something that was not heard yet? 1 or 0. */
unsigned jobs__host_unread(const struct jobs_network *n);

/** jobs__host_feed() - some job is not told completely; go on, or begin. */
void jobs__host_feed(struct jobs_network *n);

/** jobs__host_hear() - there is room again: go on hearing the process. */
void jobs__host_hear(struct jobs_network *n);
