/* job_host.c - see job_host.h. */
#include "job_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "hub/jobs/job.h"
#include "hub/jobs/job_network.h"
#include "hub/jobs/rdzv_child.h"
#include "os/log.h"
#include "rendezvous/shared/rdzv_record.h"
#include "rendezvous/shared/rdzv_wire.h"
#include "store/store.h"

/* With more garbage than this a process is not listened to until some is deleted. */
#define GARBAGE_MAX 8192u

/* ---- reading a job's blobs out of the store, as messages for a rendezvous process ------------ */

/*
 * A few blobs are read at once. Each that is complete, or cannot be read, waits in the order in
 * which that was known until its owner takes it with blob_reader_take().
 *
 * Threads: the hub's loop only.
 */

/* A blob that was read. */
struct blob_read {
    struct list link;           /* the reader's */
    struct blob_reader *reader; /* the reader's */
    struct rdzv_wire m;         /* RDZV_WIRE_LOAD, without bytes: the job, its run, the name */
    struct blob_entry entry;    /* of the index, as it was; in no index */
    char first[RDZV_KEY_MAX];   /* the key of its first piece */
    unsigned piece;             /* that comes next */
    struct str messages;        /* of the pieces so far */
    int r;                      /* 0; or of the first piece that cannot be read: STORE_E_ABSENT,
                                   -EINVAL: it cannot be understood, -EIO: the store is away, ... */
    struct err e;               /* its words */
    char bad[RDZV_KEY_MAX];     /* its key */
};

struct blob_reader {
    struct store *store; /* pins */
    struct list done;    /* owns struct blob_read: those that can be taken */
    unsigned n_asked;    /* blobs asked of the store and not in @done; they pin this */
    unsigned n;          /* blobs of both kinds */
    size_t bytes;        /* of all of them */
    bool is_freed;       /* blob_reader_free() was called: freed with the store's last answer */
};

static void blob_read_free(struct blob_read *read)
{
    str_deinit(&read->messages);
    free(read);
}

/* The next one that was read; gives it: blob_read_free(). NULL: none. */
static struct blob_read *blob_reader_take(struct blob_reader *reader)
{
    struct blob_read *read = list_first(&reader->done, struct blob_read, link);

    if (!read)
        return NULL;
    list_remove(&read->link);
    reader->n--;
    reader->bytes -= read->entry.len;
    return read;
}

/*
 * What is not taken is forgotten
 *
 * Answers of the store may come later still; they are ignored. NULL is fine. Always NULL.
 */
static struct blob_reader *blob_reader_free(struct blob_reader *reader)
{
    struct blob_read *read;

    if (!reader)
        return NULL;
    while ((read = blob_reader_take(reader)))
        blob_read_free(read);
    reader->is_freed = true;
    if (reader->n_asked == 0)
        free(reader);
    return NULL;
}

static void read_piece(struct blob_read *read, const char *text)
{
    uint8_t buf[RDZV_CHUNK];
    struct rdzv_head head;
    struct rdzv_wire m = read->m;
    size_t len = 0;

    read->r = rdzv_piece_decode(read->piece == 0 ? &head : NULL, buf, &len, text, &read->e);
    if (read->r != 0)
        return;
    m.data = buf;
    m.len = len;
    m.has_more = read->piece + 1 < read->entry.n_pieces;
    rdzv_wire_encode(&read->messages, &m);
}

static void on_piece(void *ctx, const struct store_answer *a)
{
    struct blob_read *read = ctx;
    bool was_good = read->r == 0;

    if (was_good && a->r == 0)
        read_piece(read, a->items[0].value);
    else if (was_good && (read->r = a->r) != 0)
        read->e = *a->e;
    if (was_good && read->r != 0)
        (void)rdzv_key_of_piece(read->bad, read->first, read->entry.slot, read->piece);
    if (++read->piece < read->entry.n_pieces)
        return;
    read->reader->n_asked--;
    list_add_tail(&read->reader->done, &read->link);
    if (read->reader->is_freed)
        (void)blob_reader_free(read->reader);
}

/*
 * Have a blob read
 * @entry:	one of @job's index
 *
 * Return: false: neither memory nor the store has room for it now.
 */
static bool blob_reader_add(
    struct blob_reader *reader, const struct job *job, const struct blob_entry *entry)
{
    struct blob_read *read = calloc(1, sizeof(*read));
    unsigned i = 0;

    if (!read)
        return false;
    read->reader = reader;
    read->entry = *entry;
    read->m = (struct rdzv_wire){.type = RDZV_WIRE_LOAD,
        .job = job->number,
        .run = job->record.run,
        .kind = entry->kind,
        .hash = entry->hash};
    (void)rdzv_key_of_blob(read->first, entry->kind, job->network->name, job->name, &entry->hash);
    while (i < entry->n_pieces) {
        char key[RDZV_KEY_MAX];

        if (store_get(reader->store, rdzv_key_of_piece(key, read->first, entry->slot, i), on_piece,
                read, &read->e) != 0)
            break;
        i++;
    }
    if (i == 0) {
        free(read);
        return false;
    }
    reader->n_asked++;
    reader->n++;
    reader->bytes += entry->len;
    if (i < entry->n_pieces) {
        /* The store takes no more: the pieces that it did take are as good as none. */
        read->r = -EIO;
        read->entry.n_pieces = (uint16_t)i;
    }
    return true;
}

/* ---- what a rendezvous process says ---------------------------------------------------------- */

/* Longest text of a process that the log shows, with the terminating zero. */
#define WHY_MAX 200

/* A message RDZV_WIRE_FACTS, which is not trusted, says how the job is. */
static void take_facts(struct job *job, const struct rdzv_wire *m, nsec_t now)
{
    const struct job_network *n = job->network;
    struct job_facts *facts = &job->facts;

    facts->n_connections = m->n_connections;
    facts->n_members = m->n_members;
    facts->member = m->address;
    if (ip_addr_equal(&m->address, &n->address4) || ip_addr_equal(&m->address, &n->address6))
        facts->member = n->own_member;
    facts->n_refused = m->n_refused < INT64_MAX ? m->n_refused : 0;
    job_read_words(facts->last_limit, sizeof(facts->last_limit), m);
    facts->n_keys = m->n_keys < JOB_BLOBS_MAX ? m->n_keys : JOB_BLOBS_MAX;
    facts->n_bytes = m->n_bytes < JOB_BLOBS_BYTES_MAX ? m->n_bytes : JOB_BLOBS_BYTES_MAX;
    if (m->quiet_ms < (uint64_t)(now / NSEC_PER_MSEC))
        job->heard_at = nsec_max(job->heard_at, now - (nsec_t)m->quiet_ms * NSEC_PER_MSEC);
}

static bool take_of_job(struct job *job, const struct rdzv_wire *m, nsec_t now)
{
    const struct jobs_records *records = &job->network->env->records;
    char key[RDZV_KEY_MAX];
    char why[WHY_MAX + 1];

    /* The process was not told of this job, so it has guessed the number. */
    if (job->sent.number != job->number)
        return false;
    if (m->type == RDZV_WIRE_PUT)
        return job_blobs_put(&job->blobs, &job->network->upload, m, now);
    if (m->type == RDZV_WIRE_DROP) {
        job_blobs_drop(&job->blobs, m->kind, &m->hash, now);
    } else if (m->type == RDZV_WIRE_FACTS) {
        take_facts(job, m, now);
    } else {
        job_read_words(why, sizeof(why), m);
        (void)rdzv_key_of_blob(key, m->kind, job->network->name, job->name, &m->hash);
        records->damaged(records->ctx, key, why);
    }
    return true;
}

/* The job with that number; NULL: there is none, or it is forgotten. */
static struct job *find_number(const struct job_network *n, uint32_t number)
{
    struct job *job;

    list_foreach(job, &n->jobs, link) {
        if (job->number == number && !job->is_forgotten)
            return job;
    }
    return NULL;
}

bool job_intake_take(struct job_network *n, const struct rdzv_wire *m, nsec_t now)
{
    struct job *job;

    /* Between the pieces of a blob nothing else is said. */
    if (n->upload.to && m->type != RDZV_WIRE_PUT)
        return false;
    switch (m->type) {
    case RDZV_WIRE_PUT:
    case RDZV_WIRE_DROP:
    case RDZV_WIRE_FACTS:
    case RDZV_WIRE_DAMAGED:
        job = find_number(n, m->job);
        if (job && job->record.run == m->run)
            return take_of_job(job, m, now);
        /* That is no fault: the process may not know yet that the job, or its run, is over. */
        job_blobs_abort(&n->upload, now);
        return true;
    case RDZV_WIRE_SYNC:
        job_network_sync(n, m->seq, now);
        return true;
    case RDZV_WIRE_COUNTS:
        n->counts_now = (struct job_counts){
            .n_store_requests = m->n_store_requests,
            .n_etcd_requests = m->n_etcd_requests,
            .n_hung_up = m->n_hung_up,
            .n_accepts_deferred = m->n_accepts_deferred,
        };
        return true;
    case RDZV_WIRE_NONE:
    case RDZV_WIRE_NETWORK:
    case RDZV_WIRE_JOB:
    case RDZV_WIRE_MEMBER:
    case RDZV_WIRE_NO_MEMBER:
    case RDZV_WIRE_LOAD:
    case RDZV_WIRE_LISTENER:
    case RDZV_WIRE_CLEAR:
    case RDZV_WIRE_FORGET:
    case RDZV_WIRE_SAVED:
    case RDZV_WIRE_END:
    case RDZV_WIRE_N:
        break;
    }
    return false;
}

/* The process that told the facts has ended: nobody is connected any more. */
static void lose_facts(struct job *job, nsec_t now)
{
    if (job->facts.n_members > 0)
        job->heard_at = now;
    job->facts.n_connections = 0;
    job->facts.n_members = 0;
}

void job_intake_end(struct job_network *n, nsec_t now)
{
    struct job *job;

    job_blobs_abort(&n->upload, now);
    n->queue.n_syncs = 0;
    list_foreach(job, &n->jobs, link)
        lose_facts(job, now);
    job_counts_add(&n->counts_before, &n->counts_now);
    n->counts_now = (struct job_counts){0};
}

/* ---- telling a rendezvous process of its jobs ------------------------------------------------ */

/*
 * One job after the other, and each in that order: that there is such a job, what the store has of
 * it, and last its listening sockets. So nobody is served before all that was acknowledged is there
 * again. How far each job is, is in its struct job_sent.
 *
 * Threads: the hub's loop only.
 */

/* About how many blobs are read at once. */
#define READ_MAX 16

/* Tell the process a blob that was read, or set it aside if it cannot be read. */
static void tell_blob(struct job_network *n, struct rdzv_child *child, const struct blob_read *read)
{
    const struct jobs_records *records = &n->env->records;
    const struct job *job = find_number(n, read->m.job);

    /* A run that is over meanwhile has no content. */
    bool is_current = job && job->record.run == read->m.run;

    if (read->messages.failed || (job && read->r == -EIO))
        rdzv_child_kill(child);
    else if (is_current && read->r == 0)
        rdzv_child_say_bytes(child, str_text(&read->messages), read->messages.len);
    else if (is_current)
        records->damaged(records->ctx, read->bad,
            read->r == STORE_E_ABSENT ? "a piece of it is missing" : err_text(&read->e));
}

/* What the store has of a job, as much as may wait to be said; true when all of it was said. The
 * index gets no new entries meanwhile: nobody is served yet. */
static bool load(struct job *job, struct rdzv_child *child, struct blob_reader *reader)
{
    while (
        rdzv_child_unsent(child) + reader->bytes < RDZV_CHILD_UNSENT_LOAD && reader->n < READ_MAX) {
        const struct htab_link *l = htab_each(&job->blobs.index.entries, &job->sent.cursor, NULL);

        if (!l)
            return reader->n == 0;
        for (; l; l = l->next) {
            const struct blob_entry *entry = container_of(l, struct blob_entry, link);

            if (blob_index_is_current(&job->blobs.index, entry) &&
                !blob_reader_add(reader, job, entry))
                rdzv_child_kill(child);
        }
    }
    return false;
}

static void tell_job(struct job *job, struct rdzv_child *child)
{
    uint16_t port = job->record.port;

    rdzv_child_say(child, &(struct rdzv_wire){.type = RDZV_WIRE_JOB,
                              .job = job->number,
                              .run = job->record.run,
                              .port = port,
                              .etcd_port = job_is_default(job) ? JOBS_DEFAULT_ETCD : port,
                              .data = (const uint8_t *)job->name,
                              .len = strlen(job->name)});
    job->sent = (struct job_sent){.number = job->number};
}

/* Tell the process of one job, as far as possible now. True: it was told all of it. */
static bool feed_job(struct job *job, struct rdzv_child *child, struct blob_reader *reader)
{
    if (job->sent.number != job->number)
        tell_job(job, child);
    if (!job->sent.is_loaded)
        job->sent.is_loaded = load(job, child, reader);
    for (unsigned i = 0; job->sent.is_loaded && i < JOB_PORTS_MAX; i++) {
        if (job->ports.fds[i] < 0 || job->sent.handed & 1U << i)
            continue;
        /* Not all sockets can be handed over now. */
        if (!rdzv_child_say_socket(child, job->number, job->ports.fds[i]))
            return false;
        job->sent.handed |= 1U << i;
    }
    return job->sent.is_loaded;
}

/*
 * Tell as much as the process takes now
 * @reader:	of that process alone
 *
 * What cannot be read is set aside. When the store is away the process is killed: the next one may
 * be told more.
 *
 * Return: is there more to be told? Then it is to be called again when the process takes more, and
 * when @reader has some.
 */
static bool job_feed_run(
    struct job_network *n, struct rdzv_child *child, struct blob_reader *reader)
{
    struct blob_read *read;
    bool is_behind = false;
    struct job *job;

    while ((read = blob_reader_take(reader))) {
        tell_blob(n, child, read);
        blob_read_free(read);
    }
    list_foreach(job, &n->jobs, link) {
        is_behind = job_exists(job) && !feed_job(job, child, reader);
        if (is_behind)
            break;
    }
    rdzv_child_flush(child);
    return is_behind;
}

/* ---- the process: started, told, heard, ended ------------------------------------------------ */

/* From the end of a process to the start of the next. */
#define BACKOFF_FIRST (50 * NSEC_PER_MSEC)
#define BACKOFF_MAX   (30 * NSEC_PER_SEC)

/* A process that ran for so long was well: the next one is started at once again. */
#define WELL_AFTER (60 * NSEC_PER_SEC)

/* ---- its end -------------------------------------------------------------------------------- */

/* A process begins, or has ended: `to_process` is empty. */
static void set_process(struct job_network *n, bool is_there)
{
    str_deinit(&n->to_process);
    n->has_process = is_there;
}

/* The process is no more, or is to be no more. */
static void detach(struct job_host *host, nsec_t now)
{
    struct job *job;

    job_intake_end(host->network, now);
    set_process(host->network, false);
    /* A new process knows nothing of any job. */
    list_foreach(job, &host->network->jobs, link)
        job->sent = (struct job_sent){0};
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

static void feed_jobs(struct job_host *host)
{
    bool has_more =
        host->network->has_updates || host->is_writable || !list_is_empty(&host->reader->done);

    if (host->is_writable)
        rdzv_child_flush(host->child);
    host->is_writable = false;
    if (host->is_ending || !has_more)
        return;
    host->network->has_updates = false;
    host->is_behind = job_feed_run(host->network, host->child, host->reader);
}

static void say_now(struct job_host *host, const struct rdzv_wire *m)
{
    pass_on(host);
    rdzv_child_say(host->child, m);
    rdzv_child_flush(host->child);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* May the process say more of what is to be kept? */
static bool has_space(const struct job_network *n)
{
    return change_queue_has_space(&n->queue) && n->totals.n_garbage < GARBAGE_MAX;
}

/*
 * Take what the process has said, as far as it may be taken now: not before there is room for more
 * changes; and not before all that it said earlier is on the disk, if it begins a blob of several
 * pieces, of which the first comes last: those pieces may go where others still have to be deleted.
 *
 * False: the process was lost over it.
 */
static bool take_messages(struct job_host *host, nsec_t now)
{
    struct job_network *n = host->network;
    struct rdzv_wire m;
    int r;

    host->is_waiting = false;
    while ((r = rdzv_child_next(host->child, &m)) == 0) {
        bool begins_blob = m.type == RDZV_WIRE_PUT && m.n_pieces > 1 && m.piece == 1;

        host->is_waiting = begins_blob ? !change_queue_is_empty(&n->queue) : !has_space(n);
        if (host->is_waiting)
            return true;
        if (!job_intake_take(n, &m, now))
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

    host->reader = calloc(1, sizeof(*host->reader));
    if (!host->reader)
        return err_set(e, -ENOMEM, "no memory for a rendezvous");
    host->reader->store = n->env->store;
    list_init(&host->reader->done);
    r = rdzv_child_start(&host->child, n->env->loop, n->name, on_child, host, e);
    if (r != 0) {
        host->reader = blob_reader_free(host->reader);
        return r;
    }
    host->started_at = now;
    host->is_ending = false;
    set_process(n, true);
    n->has_updates = true;
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
    bool hears;
    bool tells;
    int status = 0;

    /* The pid of a process that has ended is waited for, so that it is no zombie. */
    if (host->ended_pid > 0 && waitpid(host->ended_pid, &status, WNOHANG) != 0) {
        host->ended_pid = 0;
        if (WIFSIGNALED(status))
            log_info("rendezvous of network \"%s\": its process was ended by signal %d",
                host->network->name, WTERMSIG(status));
    }
    start_if_due(host, now);
    /* There may be room now for messages that had to wait. */
    if (host->child && host->is_waiting)
        (void)take_messages(host, now);
    if (!host->child)
        return;
    pass_on(host);
    feed_jobs(host);
    /* While nothing is taken from the process, its end is not asked for either: the loop would
     * report it again and again. While blobs are read, the store's answers say when to go on
     * telling. */
    hears = !host->is_waiting && has_space(host->network);
    tells = rdzv_child_unsent(host->child) > 0 || (host->is_behind && host->reader->n == 0);
    rdzv_child_poll(host->child, hears, tells);
}

/* ---- life ----------------------------------------------------------------------------------- */

void job_host_init(struct job_host *host, struct job_network *network)
{
    *host = (struct job_host){.network = network, .start_at = NSEC_NEVER};
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
            job_network_sweep(host->network, host->network->env->clock());
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
    struct ip_addr *members = sorted_open(
        host->members, host->n_members, sizeof(*members), host->n_members, &host->cap_members);

    /* Without memory for it the member is hung up on until the hub is started anew. */
    if (!members)
        return;
    host->members = members;
    members[host->n_members++] = *address;
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
