/* job_host.c - see job_host.h. */
#include "job_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "hub/jobs/blob_reader.h"
#include "hub/jobs/job_feed.h"
#include "hub/jobs/job_intake.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/jobs_env.h"
#include "hub/jobs/rdzv_child.h"
#include "os/log.h"

/* From the end of a process to the start of the next. */
#define BACKOFF_FIRST (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX   (30 * NSEC_PER_SEC)

/* A process that ran for so long was well: the next one is started at once again. */
#define WELL_AFTER (60 * NSEC_PER_SEC)

/* ---- its end -------------------------------------------------------------------------------- */

/* The process is no more, or is to be no more. */
static void detach(struct job_host *host, nsec_t now)
{
    job_intake_end(host->network, now);
    job_network_set_process(host->network, false);
    job_feed_restart(host->network);
    host->ended_pid = rdzv_child_pid(host->child);
    host->child = rdzv_child_free(host->child);
    host->reader = blob_reader_free(host->reader);
    host->is_behind = false;
    host->is_writable = false;
    host->is_waiting = false;
}

static void wait_longer(struct job_host *host, nsec_t now)
{
    host->backoff = host->backoff == 0 ? BACKOFF_FIRST : nsec_min(2 * host->backoff, BACKOFF_MAX);
    host->start_at = now + host->backoff;
}

/* The process has ended by itself, or has to end: plan the next one. */
static void lose(struct job_host *host, const char *why, nsec_t now)
{
    detach(host, now);
    if (host->is_ending || host->start_at == NSEC_NEVER)
        return;
    if (now - host->started_at > WELL_AFTER)
        host->backoff = 0;
    wait_longer(host, now);
    host->n_restarts++;
    log_warning("rendezvous of network \"%s\": its process %s; it is started again",
        host->network->name, why);
}

/* Wait for the pid of a process that has ended, so that it is no zombie. */
static void reap(struct job_host *host)
{
    int status = 0;

    if (host->ended_pid <= 0 || waitpid(host->ended_pid, &status, WNOHANG) == 0)
        return;
    host->ended_pid = 0;
    if (WIFSIGNALED(status))
        log_info("rendezvous of network \"%s\": its process was ended by signal %d",
            host->network->name, WTERMSIG(status));
}

/* ---- telling -------------------------------------------------------------------------------- */

/* Hand the process the messages that the network's jobs have for it. */
static void pass_on(struct job_host *host)
{
    struct str *text = &host->network->to_process;

    if (text->len == 0 && !text->failed)
        return;
    if (text->failed)
        rdzv_child_kill(host->child);
    rdzv_child_say_bytes(host->child, str_text(text), text->len);
    str_deinit(text);
    rdzv_child_flush(host->child);
}

static void feed(struct job_host *host)
{
    bool has_more =
        host->network->has_news || host->is_writable || blob_reader_has_some(host->reader);

    if (host->is_writable)
        rdzv_child_flush(host->child);
    host->is_writable = false;
    if (host->is_ending || !has_more)
        return;
    host->network->has_news = false;
    host->is_behind = job_feed_run(host->network, host->child, host->reader);
}

static void say_now(struct job_host *host, const struct rdzv_wire *m)
{
    pass_on(host);
    rdzv_child_say(host->child, m);
    rdzv_child_flush(host->child);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* Take the messages that were received, as many as there is room for. False: the process is lost.
 */
static bool take_messages(struct job_host *host, nsec_t now)
{
    struct rdzv_wire m;
    int r;

    host->is_waiting = false;
    while ((r = rdzv_child_next(host->child, &m)) == 0) {
        host->is_waiting = job_intake_has_to_wait(host->network, &m);
        if (host->is_waiting)
            return true;
        if (!job_intake_take(host->network, &m, now))
            break;
        rdzv_child_drop(host->child);
    }
    if (r == RDZV_WIRE_E_SHORT)
        return true;
    lose(host, "says what it may not say", now);
    return false;
}

/* Take what was received before, and then receive one portion more if there is room for it. */
static void hear(struct job_host *host, nsec_t now)
{
    if (!take_messages(host, now) || host->is_waiting)
        return;
    if (rdzv_child_receive(host->child) == RDZV_CHILD_E_ENDED)
        lose(host, "has ended", now);
    else
        (void)take_messages(host, now);
}

static void on_child(void *ctx, bool is_readable, bool is_writable)
{
    struct job_host *host = ctx;

    host->is_writable |= is_writable;
    if (is_readable)
        hear(host, host->network->env->clock());
}

/* Say what the loop is to wait for. While nothing is taken from the process, its end is not asked
 * for either: the loop would report it again and again. While blobs are read, the store's answers
 * say when to go on telling. */
static void watch(struct job_host *host)
{
    bool hears = !host->is_waiting && job_network_has_room(host->network);
    bool tells = rdzv_child_unsent(host->child) > 0 ||
                 (host->is_behind && blob_reader_count(host->reader) == 0);

    rdzv_child_poll(host->child, hears, tells);
}

bool job_host_has_unread(const struct job_host *host)
{
    return host->child && rdzv_child_has_unread(host->child);
}

/* ---- its beginning -------------------------------------------------------------------------- */

/* Tell a new process whose rendezvous it is, and who is a member. job_feed_run() tells the rest. */
static void introduce(struct job_host *host)
{
    const struct job_network *n = host->network;

    rdzv_child_say(host->child, &(struct rdzv_wire){.type = RDZV_WIRE_NETWORK,
                                    .address = n->address4,
                                    .address6 = n->address6,
                                    .data = (const uint8_t *)n->name,
                                    .len = strlen(n->name)});
    for (size_t i = 0; i < host->n_members; i++)
        rdzv_child_say(host->child,
            &(struct rdzv_wire){.type = RDZV_WIRE_MEMBER, .address = host->members[i]});
}

static int start(struct job_host *host, nsec_t now, struct err *e)
{
    struct job_network *n = host->network;
    int r;

    host->reader = blob_reader_new(n->env->store);
    if (!host->reader)
        return err_set(e, -ENOMEM, "no memory for a rendezvous");
    r = rdzv_child_start(&host->child, n->env->loop, n->name, on_child, host, e);
    if (r != 0) {
        host->reader = blob_reader_free(host->reader);
        return r;
    }
    host->started_at = now;
    host->is_ending = false;
    job_network_set_process(n, true);
    n->has_news = true;
    introduce(host);
    return 0;
}

nsec_t job_host_due(const struct job_host *host)
{
    const struct job_network *n = host->network;

    /* The next process is told what is in the store, so all changes have to be there first. */
    return host->child || !n->is_served || !change_queue_is_empty(&n->queue) ? NSEC_NEVER
                                                                             : host->start_at;
}

static void start_if_due(struct job_host *host, nsec_t now)
{
    struct err e = ERR_NULL;

    if (job_host_due(host) > now)
        return;
    if (host->ended_pid > 0) {
        host->start_at = now + BACKOFF_FIRST;
        return;
    }
    if (start(host, now, &e) == 0)
        return;
    wait_longer(host, now);
    log_warning(
        "rendezvous of network \"%s\" is not served: %s", host->network->name, err_text(&e));
}

void job_host_turn(struct job_host *host, nsec_t now)
{
    reap(host);
    start_if_due(host, now);
    /* There may be room now for messages that had to wait. */
    if (host->child && host->is_waiting)
        (void)take_messages(host, now);
    if (!host->child)
        return;
    pass_on(host);
    feed(host);
    watch(host);
}

/* ---- life ----------------------------------------------------------------------------------- */

void job_host_init(struct job_host *host, struct job_network *network)
{
    *host = (struct job_host){.network = network, .start_at = NSEC_NEVER};
}

void job_host_deinit(struct job_host *host)
{
    free(host->members);
}

void job_host_start(struct job_host *host, nsec_t now)
{
    host->start_at = now;
}

void job_host_stop(struct job_host *host)
{
    host->start_at = NSEC_NEVER;
    if (!host->child)
        return;
    host->is_ending = true;
    say_now(host, &(struct rdzv_wire){.type = RDZV_WIRE_END});
}

void job_host_kill(struct job_host *host)
{
    host->start_at = NSEC_NEVER;
    if (host->child)
        detach(host, host->network->env->clock());
}

void job_host_end(struct job_host *host, nsec_t deadline)
{
    struct err e = ERR_NULL;

    while (host->child && rdzv_child_wait(host->child, deadline)) {
        hear(host, host->network->env->clock());
        while (host->child && host->is_waiting) {
            if (job_network_commit_all(host->network, &e) != 0)
                break;
            (void)take_messages(host, host->network->env->clock());
        }
        if (!host->child || host->is_waiting)
            break;
        pass_on(host);
    }
    job_host_kill(host);
    if (host->ended_pid > 0)
        (void)waitpid(host->ended_pid, NULL, 0);
    host->ended_pid = 0;
}

/* ---- members -------------------------------------------------------------------------------- */

void job_host_add_member(struct job_host *host, const struct ip_addr *address)
{
    if (host->n_members == host->cap_members) {
        size_t cap = host->cap_members ? 2 * host->cap_members : 16;
        struct ip_addr *grown = realloc(host->members, cap * sizeof(*grown));

        /* Without memory for it the member is hung up on until the hub is started anew. */
        if (!grown)
            return;
        host->members = grown;
        host->cap_members = cap;
    }
    host->members[host->n_members++] = *address;
    if (host->child)
        say_now(host, &(struct rdzv_wire){.type = RDZV_WIRE_MEMBER, .address = *address});
}

void job_host_remove_member(struct job_host *host, const struct ip_addr *address)
{
    /* A walk: a network has a few thousand members at most, and they rarely go. */
    for (size_t i = host->n_members; i-- > 0;)
        if (ip_addr_equal(&host->members[i], address))
            host->members[i] = host->members[--host->n_members];
    if (host->child)
        say_now(host, &(struct rdzv_wire){.type = RDZV_WIRE_NO_MEMBER, .address = *address});
}

void job_host_forget_members(struct job_host *host)
{
    host->n_members = 0;
}
