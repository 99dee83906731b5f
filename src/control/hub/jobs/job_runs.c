/* job_runs.c - see job_runs.h. */
#include "job_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "os/log.h"
#include "store/store.h"

/* How many runs of a network may begin or end at once, and how often one more: each is a commit of
 * its own. So often it may be noted as well who is in them. */
#define PACE_BURST 21
#define PACE_EACH  (100 * NSEC_PER_MSEC)

/* ---- a job's record, on its way to the store ------------------------------------------------ */

/* What is new in the record. */
enum record_save_kind {
    RECORD_SAVE_NEW,     /* there is such a job */
    RECORD_SAVE_REVIVED, /* there is again: it was forgotten, and not yet deleted */
    RECORD_SAVE_RUN,     /* a run begins */
    RECORD_SAVE_END,     /* the run is over */
    RECORD_SAVE_MEMBERS, /* others have the places of the job, or a command has ended */
};

/* The job changes when its record is on the disk, and not before. Until then whoever wants
 * something of the job waits, and asks again. */
struct record_save {
    enum record_save_kind kind;
    struct rdzv_job_record record;
    nsec_t asked_at;     /* when it was asked for */
    struct list waiters; /* who is to be called at the end */
};

struct waiter {
    struct list link; /* in the save's */
    jobs_done_fn done;
    void *ctx; /* pins */
};

static void begin_serving(struct job *job)
{
    job->is_unsaved = false;
    if (job->network->is_served)
        job_network_open_ports(job);
}

/* The record is on the disk: change the job as it says. */
static void apply_record(struct job *job, const struct record_save *s, nsec_t now)
{
    switch (s->kind) {
    case RECORD_SAVE_NEW:
        job_members_begin(&job->members);
        begin_serving(job);
        break;
    case RECORD_SAVE_REVIVED:
        job_set_run(job, s->record.run);
        job->record = s->record;
        job->number = ++job->network->last_number;
        job->heard_at = s->asked_at;
        job_forget_facts(job);
        job_members_begin(&job->members);
        begin_serving(job);
        break;
    case RECORD_SAVE_RUN:
        /* The member that asked for the run asks again now, and comes to this run. */
        job->heard_at = s->asked_at;
        job_network_begin_run(job, s->record.run, now);
        job->record = s->record;
        break;
    case RECORD_SAVE_END:
        job_members_keep_none(&job->members);
        job->record = s->record;
        break;
    case RECORD_SAVE_MEMBERS:
        job->record = s->record;
        break;
    }
}

static void on_saved(void *ctx, const struct store_answer *a)
{
    struct job *job = ctx;
    struct job_network *n = job->network;
    struct record_save *s = TAKE_PTR(job->save);
    nsec_t now = n->env->clock();
    struct waiter *w;
    struct waiter *tmp;

    if (job->is_save_in_vain)
        job->is_unsaved = false;
    else if (a->r == 0)
        apply_record(job, s, now);
    else if (s->kind == RECORD_SAVE_NEW)
        /* If it was stored after all, the next start of the hub finds a job that nobody comes to.
         * Of the other kinds it finds a run that has begun, or ended, and that nobody was told of.
         */
        job_network_free_job(job);
    job_network_sweep(n, now);
    /* Who is called may ask for the same job at once. */
    list_foreach_safe(w, tmp, &s->waiters, link) {
        list_remove(&w->link);
        w->done(w->ctx, a->r > 0 ? -EIO : a->r, a->e);
        free(w);
    }
    free(s);
}

/* Have the record stored. The job changes when that is done. 0 or negative errno with words. */
static int save(struct job *job, enum record_save_kind kind, const struct rdzv_job_record *record,
    nsec_t now, struct err *e)
{
    _cleanup_(freep) char *text = rdzv_job_encode(record);
    struct record_save *s = calloc(1, sizeof(*s));
    char key[RDZV_KEY_MAX];
    struct store_op ops[2] = {{.kind = STORE_OP_PUT,
        .key = rdzv_key_of_job(key, job->network->name, job->name),
        .value = text,
        .expect = STORE_EXPECT_ANY,
        .is_unwatched = true}};
    size_t n_ops = 1 + job_network_add_fence(job->network, &ops[1]);
    int r = -ENOMEM;

    if (text && s)
        r = store_commit(job->network->env->store, ops, n_ops, now, on_saved, job, e);
    else
        (void)err_set(e, r, "no memory for job \"%s\"", job->name);
    if (r != 0) {
        free(s);
        return r;
    }
    /* A job of the name that was forgotten may be about to be deleted. */
    change_queue_forget(&job->network->queue, key);
    *s = (struct record_save){.kind = kind, .record = *record, .asked_at = now};
    list_init(&s->waiters);
    job->save = s;
    job->is_save_in_vain = false;
    return 0;
}

/* ---- who comes and goes --------------------------------------------------------------------- */

static bool keeps_pace(struct job_network *n, nsec_t now)
{
    return rate_take(&n->pace, now, PACE_EACH, PACE_BURST);
}

static bool is_port_taken(const struct job_network *n, uint16_t port)
{
    const struct job *job;

    list_foreach(job, &n->jobs, link) {
        if (job->record.port == port && !job->is_forgotten)
            return true;
    }
    return false;
}

/* A free port; 0: there is none. The search begins at a hash of the name, so that a job that was
 * forgotten most likely gets the same port again. */
static uint16_t choose_port(const struct job_network *n, const char *name)
{
    unsigned first = (unsigned)(hash_bytes(0, name, strlen(name)) % JOBS_JOBS_MAX);

    if (strcmp(name, JOBS_DEFAULT) == 0)
        return JOBS_DEFAULT_C10D;
    for (unsigned i = 0; i < JOBS_JOBS_MAX; i++) {
        uint16_t port = (uint16_t)(JOBS_PORT_FIRST + (first + i) % JOBS_JOBS_MAX);

        if (!is_port_taken(n, port))
            return port;
    }
    return 0;
}

static int refuse_full(const struct job_network *n, struct err *e)
{
    return err_set(e, JOBS_E_FULL,
        "network \"%s\" has %d jobs already; one is forgotten %d hours after its last member has "
        "gone",
        n->name, JOBS_JOBS_MAX, (int)(JOBS_IDLE / NSEC_PER_SEC / 3600));
}

/* Make a job with a port of its own. It is served once its record is stored. 0, JOBS_E_FULL or
 * negative errno, with words. */
static int make(
    struct job_network *n, const char *name, nsec_t now, struct job **ret, struct err *e)
{
    struct rdzv_job_record record = {.port = choose_port(n, name), .run = 1, .has_heads = true};
    struct job *job = job_network_find_job(n, name);
    int r;

    if (record.port == 0)
        return refuse_full(n, e);
    *ret = job;
    if (job) {
        /* It was forgotten, and something of it is left: it goes on with its runs. */
        record.run = job->record.run + 1;
        return save(job, RECORD_SAVE_REVIVED, &record, now, e);
    }
    *ret = job = job_network_add(n, name, &record, now);
    if (!job)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", name);
    job->is_unsaved = true;
    r = save(job, RECORD_SAVE_NEW, &record, now, e);
    if (r != 0)
        job_network_free_job(job);
    return r;
}

/* @goes_on: the members of the present one are awaited in it. */
static int save_next_run(struct job *job, bool goes_on, nsec_t now, struct err *e)
{
    struct rdzv_job_record next = job->record;

    if (!goes_on) {
        job_members_keep_none(&job->members);
        next.members[0] = '\0';
    }
    next.ended_on[0] = '\0';
    next.run++;
    next.ended = false;
    next.has_heads = true;
    return save(job, RECORD_SAVE_RUN, &next, now, e);
}

/* Does who comes now begin a new run? */
static bool is_over_or_left(const struct job *job, nsec_t now)
{
    /* All were killed, say, without a word. Its keys are of no use to who comes now. */
    return job_is_over(job, now) ||
           (job_members_are_gone(&job->members, now) && !job_is_busy(job, NULL));
}

const char *job_runs_ended_on(const struct job *job, nsec_t now)
{
    const char *noted = job->record.ended_on;
    const char *name;

    if (noted[0] != '\0' && !job_members_is_back(&job->members, noted, now))
        return noted;
    name = job_members_ended_on(&job->members, now);
    return name ? name : "";
}

/* A member comes to a job that is there: a new run begins if the last one is over, has been left by
 * all, or is the one that cannot go on. */
static int enter(struct job *job, const char *member, const char *broken, nsec_t now, struct err *e)
{
    bool is_broken = broken && job_is_run(job, broken);
    bool is_left = is_over_or_left(job, now);
    const char *ended_on = job_runs_ended_on(job, now);

    if (!is_left && !is_broken)
        return 0;
    /* Without that node it cannot go on, which has done its work or was ended by a person. */
    if (is_broken && ended_on[0] != '\0' && strcmp(ended_on, member) != 0)
        return err_set(e, JOBS_E_OVER,
            "the command of the job has ended on %s in the run %s, so that run is not begun again",
            ended_on, broken);
    if (is_broken && !job_members_may_be(&job->members, member))
        return err_set(e, JOBS_E_STRANGER,
            "\"%s\" has not come to the run \"%s\", and cannot say that it is broken", member,
            broken);
    if (!keeps_pace(job->network, now))
        return err_set(e, JOBS_E_PACE, "jobs of network \"%s\" begin and end too often: try again",
            job->network->name);
    return save_next_run(job, is_broken && !job->record.ended, now, e);
}

static int leave(struct job *job, const struct ip_addr *who, nsec_t now, struct err *e)
{
    struct rdzv_job_record over = job->record;

    if (job_is_busy(job, who))
        return err_set(
            e, JOBS_E_BUSY, "other members of job \"%s\" are still connected", job->name);
    if (job->record.ended)
        return 0;
    if (!keeps_pace(job->network, now))
        return err_set(e, JOBS_E_PACE, "jobs of network \"%s\" begin and end too often: try again",
            job->network->name);
    over.ended = true;
    return save(job, RECORD_SAVE_END, &over, now, e);
}

/* JOBS_E_AGAIN, and @done will be called; or 0 when the job is not being saved. @job: may be NULL.
 */
int job_runs_await(struct job *job, jobs_done_fn done, void *ctx, struct err *e)
{
    struct waiter *w;

    if (!job || !job->save)
        return 0;
    w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(e, -ENOMEM, "no memory for job \"%s\"", job->name);
    w->done = done;
    w->ctx = ctx;
    list_add_tail(&job->save->waiters, &w->link);
    return JOBS_E_AGAIN;
}

int job_runs_join(struct job_network *n, const char *name, const char *member, const char *broken,
    nsec_t now, jobs_done_fn done, void *ctx, struct job **ret, struct err *e)
{
    struct job *job = job_network_find_job(n, name);
    int r = job_runs_await(job, done, ctx, e);

    if (r != 0)
        return r;
    if (job && !job->is_forgotten)
        r = enter(job, member, broken, now, e);
    else if (keeps_pace(n, now))
        r = make(n, name, now, &job, e);
    else
        r = err_set(
            e, JOBS_E_PACE, "jobs of network \"%s\" are made too often: try again", n->name);
    if (r == 0)
        r = job_runs_await(job, done, ctx, e);
    if (r != 0)
        return r;
    job->heard_at = now;
    job_members_come(&job->members, member, now);
    *ret = job;
    return 0;
}

int job_runs_look(const struct job_network *n, const char *name, nsec_t now,
    struct job_outlook *ret, struct err *e)
{
    const struct job *job = job_network_find_job(n, name);
    struct job_outlook o = {.record = {.run = 1}};

    if (job && job_exists(job)) {
        o.job = job;
        o.record = job->record;
        o.begins = is_over_or_left(job, now);
        o.record.run += o.begins;
    } else {
        /* One that was forgotten goes on with its runs. */
        o.begins = true;
        o.record.run = job ? job->record.run + !job->is_unsaved : 1;
        o.record.port = job && job->is_unsaved ? job->record.port : choose_port(n, name);
    }
    if (o.record.port == 0)
        return refuse_full(n, e);
    *ret = o;
    return 0;
}

int job_runs_end(struct job *job, const struct ip_addr *who, nsec_t now, jobs_done_fn done,
    void *ctx, struct err *e)
{
    int r = job_runs_await(job, done, ctx, e);

    if (r == 0)
        r = leave(job, who, now, e);
    return r == 0 ? job_runs_await(job, done, ctx, e) : r;
}

/* ---- the clock ------------------------------------------------------------------------------ */

void job_runs_make_default(struct job_network *n, nsec_t now)
{
    struct job *job = job_network_find_job(n, JOBS_DEFAULT);
    struct err e = ERR_NULL;

    if (!n->is_served || (job && (job->save || !job->is_forgotten)))
        return;
    if (make(n, JOBS_DEFAULT, now, &job, &e) != 0)
        log_limited(&n->env->log_limit, now, LOG_LEVEL_WARNING,
            "job \"%s\" of network \"%s\" is not served: %s", JOBS_DEFAULT, n->name, err_text(&e));
}

void job_runs_note(struct job *job, nsec_t now)
{
    struct rdzv_job_record record = job->record;
    bool has_names;

    if (job->save || job->is_forgotten || job->record.ended)
        return;
    has_names = job_members_names(&job->members, now, record.members, sizeof(record.members));
    (void)snprintf(record.ended_on, sizeof(record.ended_on), "%s", job_runs_ended_on(job, now));
    if (strcmp(record.members, job->record.members) == 0 &&
        strcmp(record.ended_on, job->record.ended_on) == 0)
        job->members.is_noted |= has_names;
    else if (rate_take(&job->network->notes, now, PACE_EACH, PACE_BURST))
        (void)save(job, RECORD_SAVE_MEMBERS, &record, now, NULL);
}

static void tick_job(struct job *job, nsec_t now)
{
    struct job_network *n = job->network;
    struct err e = ERR_NULL;

    if (job->is_forgotten || job->save)
        return;
    job_runs_note(job, now);
    if (job->save)
        return;
    if (job->ports.n_failures > 0 && n->is_served)
        job_network_open_ports(job);
    if (now - job->heard_at <= JOBS_IDLE || job_is_busy(job, NULL))
        return;
    if (!job_is_default(job))
        job_network_forget_job(job, now);
    else if (job->facts.n_keys > 0 && save_next_run(job, false, now, &e) != 0)
        log_limited(&n->env->log_limit, now, LOG_LEVEL_WARNING,
            "job \"%s\" of network \"%s\" stays as it is: %s", job->name, n->name, err_text(&e));
}

void job_runs_tick(struct job_network *n, nsec_t now)
{
    struct job *job;

    job_runs_make_default(n, now);
    list_foreach(job, &n->jobs, link)
        tick_job(job, now);
    job_network_sweep(n, now);
}
