/* node_jobs.c - see node_jobs.h. */
#include "agent/node_jobs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "agent/hublink/job_calls.h"
#include "agent/meter.h"
#include "api/server/server.h"

/* How often the hub is asked who is in a run: at first its nodes are still coming. */
#define ASK_SOON  (2 * NSEC_PER_SEC)
#define ASK_LATER (10 * NSEC_PER_SEC)
#define AT_FIRST  (60 * NSEC_PER_SEC)

void node_jobs_init(struct node_jobs *nj, struct job_calls *calls, struct meter *meter)
{
    *nj = (struct node_jobs){.calls = calls, .meter = meter};
}

static void forget_answer(struct node_job *j)
{
    struct deferred *d = j->ask;

    j->ask = NULL;
    if (!d)
        return;
    response_deinit(&d->rs);
    d->on_closed(d);
}

static void drop(struct node_jobs *nj, unsigned i)
{
    struct node_job *j = &nj->items[i];

    forget_answer(j);
    json_decref(j->nccl);
    json_decref(j->budget);
    if (j->pid_fd >= 0)
        (void)close(j->pid_fd);
    *j = nj->items[--nj->n];
}

void node_jobs_stop(struct node_jobs *nj)
{
    while (nj->n > 0)
        drop(nj, nj->n - 1);
}

/* The command's place; @nj->n: it is not known. */
static unsigned find(const struct node_jobs *nj, const char *job, int32_t pid)
{
    unsigned i = 0;

    while (i < nj->n && (nj->items[i].pid != pid || strcmp(nj->items[i].job, job) != 0))
        i++;
    return i;
}

void node_jobs_begin(struct node_jobs *nj, const char *job, int32_t pid, nsec_t now)
{
    struct node_job *j = &nj->items[nj->n];
    int pid_fd;

    if (nj->n == NODE_JOBS_MAX || find(nj, job, pid) < nj->n)
        return;
    pid_fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    /* It was killed before its request was read, and will never say that it has ended. */
    if (pid > 0 && pid_fd < 0 && errno == ESRCH)
        return;
    *j = (struct node_job){.pid = pid, .pid_fd = pid_fd, .began_at = now, .ask_at = now};
    (void)snprintf(j->job, sizeof(j->job), "%s", job);
    nj->n++;
    meter_job_begin(nj->meter, job);
}

static void end(struct node_jobs *nj, unsigned i)
{
    meter_job_end(nj->meter, nj->items[i].job);
    drop(nj, i);
    nj->has_ended = true;
}

void node_jobs_end(struct node_jobs *nj, const char *job, int32_t pid)
{
    unsigned i = find(nj, job, pid);

    if (i < nj->n)
        end(nj, i);
}

void node_jobs_set_nccl(struct node_jobs *nj, const char *job, int32_t pid, json_t *said)
{
    unsigned i = find(nj, job, pid);

    if (i == nj->n) {
        json_decref(said);
        return;
    }
    json_decref(nj->items[i].nccl);
    nj->items[i].nccl = said;
}

/* What the commands of that job here have said; one that has another network than was wanted
 * counts most. */
static json_t *nccl_of(const struct node_jobs *nj, const char *job)
{
    json_t *nccl = NULL;

    for (unsigned i = 0; job && i < nj->n; i++) {
        json_t *said = strcmp(nj->items[i].job, job) == 0 ? nj->items[i].nccl : NULL;
        const char *verdict = json_string_value(json_object_get(said, "verdict"));

        if (said && (!nccl || (verdict && strcmp(verdict, "other") == 0)))
            nccl = said;
    }
    return nccl;
}

void node_jobs_add_nccl(const struct node_jobs *nj, json_t *list)
{
    json_t *job;
    size_t i;

    json_array_foreach(list, i, job) {
        json_t *nccl = nccl_of(nj, json_string_value(json_object_get(job, "job")));

        (void)json_object_set_new(job, "nccl", nccl ? json_copy(nccl) : json_null());
    }
}

/* ---- budgets -------------------------------------------------------------------------------- */

/* The fields that are known, as far as they are what they should be; NULL: there is no budget. */
static json_t *read_budget(const json_t *said)
{
    static const char *const numbers[] = {
        "share", "bytes", "cost", "unpricedBytes", "bytesPerDay", "costPerDay"};
    const json_t *level = json_object_get(said, "level");
    json_t *budget = json_is_string(level) ? json_object() : NULL;

    if (budget) {
        (void)json_object_set(budget, "level", (json_t *)level);
        (void)json_object_set_new(budget, "capBitsPerSecond", json_null());
    }
    for (size_t i = 0; budget && i < sizeof(numbers) / sizeof(*numbers); i++) {
        json_t *number = json_object_get(said, numbers[i]);

        if (json_is_number(number))
            (void)json_object_set(budget, numbers[i], number);
    }
    return budget;
}

/* The first command of that job of which a budget is known; NULL: none. */
static const struct node_job *find_budget(const struct node_jobs *nj, const char *job)
{
    for (unsigned i = 0; job && i < nj->n; i++)
        if (nj->items[i].budget && strcmp(nj->items[i].job, job) == 0)
            return &nj->items[i];
    return NULL;
}

void node_jobs_add_budgets(const struct node_jobs *nj, json_t *list)
{
    json_t *job;
    size_t i;

    json_array_foreach(list, i, job) {
        const struct node_job *j = find_budget(nj, json_string_value(json_object_get(job, "job")));

        (void)json_object_set_new(job, "budget", j ? json_copy(j->budget) : json_null());
    }
}

static bool has_exited(const struct node_job *j)
{
    struct pollfd p = {.fd = j->pid_fd, .events = POLLIN};

    return j->pid_fd >= 0 && poll(&p, 1, 0) == 1;
}

/* An answer without the names is a hub's that is away: those of before stay. */
static void take_answer(struct node_jobs *nj, struct node_job *j, nsec_t now)
{
    const json_t *names = json_object_get(j->ask->rs.body, "members");
    struct meter_job *job = meter_job_find(nj->meter, j->job);

    if (job && json_array_size(names) > 0) {
        meter_job_members(job, names);
        json_decref(j->budget);
        j->budget = read_budget(json_object_get(j->ask->rs.body, "budget"));
    }
    j->ask_at = now + (now - j->began_at < AT_FIRST ? ASK_SOON : ASK_LATER);
    forget_answer(j);
}

static void ask(struct node_jobs *nj, struct node_job *j, nsec_t now)
{
    struct response rs = {0};

    job_calls_begin(nj->calls, "GET", j->job, "rendezvous", NULL, &rs);
    j->ask = rs.deferred;
    j->ask_at = now + ASK_LATER;
    rs.deferred = NULL;
    response_deinit(&rs);
}

void node_jobs_poll(struct node_jobs *nj, nsec_t now)
{
    for (unsigned i = nj->n; i-- > 0;) {
        struct node_job *j = &nj->items[i];

        if (has_exited(j)) {
            end(nj, i);
            continue;
        }
        if (j->ask && j->ask->is_ready)
            take_answer(nj, j, now);
        else if (!j->ask && now >= j->ask_at)
            ask(nj, j, now);
    }
}

nsec_t node_jobs_within(const struct node_jobs *nj)
{
    return nj->n > 0 ? NSEC_PER_SEC : NSEC_NEVER;
}
