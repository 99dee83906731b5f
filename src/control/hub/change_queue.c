/*
 * change_queue.c - changes of jobs, on their way to the store.
 *
 * Theory of operation. The last change of a key replaces the one before it, in its place. All that
 * has gathered goes to the store in commits of a bounded size, of each network one at a time. The
 * disk is shared by all networks and with everybody who changes something, so each commit is paid
 * for with time in which nothing is committed: as long as the commit took for all networks in which
 * nobody waits for the disk, and for the one whose commit it was twice as long if somebody does
 * (etcd), else six times (TCPStore). How large a commit is follows from what the last ones cost.
 *
 * A commit that fails, or of which nobody knows, is tried again; nothing is forgotten, and nothing
 * more is taken from the process than there is room for. What has changed again meanwhile goes in
 * the place of what has failed: a process relies on it that changes are stored in their order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/jobs_internal.h"
#include "store/store.h"
#include "os/clock.h"

/* Changes in one commit, at most and at least. How many bytes follows from it. */
#define BATCH_MAX 512
#define BATCH_MIN 16

/* Bytes in a commit for each change that it may have. */
#define BATCH_BYTES_EACH 1024

/* What a commit may cost, about: beyond the one the next is smaller, below the other larger. */
#define COST_HIGH (12 * NSEC_PER_MSEC)
#define COST_LOW  (6 * NSEC_PER_MSEC)

/* After so long a change is on the disk, unless the disk is slow. */
#define SAVE_AFTER (20 * NSEC_PER_MSEC)

/* Of its time, a network's part for commits: one in so many. */
#define COST_SHARE        6
#define COST_SHARE_WAITED 2

/* A commit that failed is tried again after so long. */
#define RETRY_AFTER NSEC_PER_SEC

/* Garbage is deleted in portions of so many keys, about. */
#define SWEEP_MAX 256

/* @ch: in the order, or in what is coming. */
static void change_free(struct jobs_commit *c, struct jobs_change *ch)
{
    if (ch->text)
        c->bytes -= strlen(ch->text);
    list_remove(&ch->link);
    if (!ch->is_coming)
        htab_remove(&c->by_key, &ch->hash);
    c->n_coming -= ch->is_coming;
    free(ch->text);
    free(ch);
}

static struct jobs_change *find_change(struct jobs_commit *c, const char *key, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&c->by_key, hash); l; l = htab_next(l, hash)) {
        struct jobs_change *ch = container_of(l, struct jobs_change, hash);

        if (strcmp(ch->key, key) == 0)
            return ch;
    }
    return NULL;
}

void jobs__commit_init(struct jobs_commit *c, uint64_t seed)
{
    *c = (struct jobs_commit){.due = NSEC_NEVER};
    htab_init(&c->by_key, seed);
    list_init(&c->order);
    list_init(&c->coming);
}

void jobs__commit_deinit(struct jobs_commit *c)
{
    struct jobs_change *ch;
    struct jobs_change *tmp;

    list_foreach_safe(ch, tmp, &c->coming, link)
        change_free(c, ch);
    list_foreach_safe(ch, tmp, &c->order, link)
        change_free(c, ch);
    htab_deinit(&c->by_key);
}

/* ---- when ----------------------------------------------------------------------------------- */

/* When the network's next commit may be. The rest after the last one, whoever's it was, is not
 * for who waits for the disk: his own network's part keeps him from asking too much. */
static nsec_t ready_at(const struct jobs_network *n)
{
    if (n->commit.began > 0)
        return NSEC_NEVER;
    if (n->commit.due == NSEC_NEVER || n->commit.n_syncs > 0)
        return n->commit.due;
    return nsec_max(n->commit.due, n->jobs->free_at);
}

void jobs__arm(struct jobs *jobs)
{
    nsec_t due = NSEC_NEVER;
    nsec_t now = clock_now();
    struct jobs_network *n;

    if (!jobs->started)
        return;
    list_foreach(n, &jobs->networks, link) {
        due = nsec_min(due, ready_at(n));
        due = nsec_min(due, jobs__host_due(n));
    }
    if (due == NSEC_NEVER)
        return;
    due -= now;
    /* No time is lost by waiting for nothing, and all of this turn go together. */
    (void)uv_timer_start(&jobs->timer, jobs__on_timer,
        due > 0 ? (uint64_t)((due + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC) : 0, 0);
}

/* Something is to be committed; @is_waited: somebody waits for it. */
static void hurry(struct jobs_network *n, bool is_waited)
{
    struct jobs_commit *c = &n->commit;
    nsec_t now = clock_now();
    nsec_t due = is_waited ? nsec_max(now, c->ended + COST_SHARE_WAITED * c->cost)
                           : nsec_max(now + SAVE_AFTER, c->ended + COST_SHARE * c->cost);

    if (c->is_failing)
        due = c->ended + RETRY_AFTER;
    if (due >= c->due)
        return;
    c->due = due;
    jobs__arm(n->jobs);
}

/* ---- committing ----------------------------------------------------------------------------- */

/* The disk is as fast as it is just now. */
static void adapt(struct jobs *jobs, nsec_t cost, size_t n_ops)
{
    if (cost > COST_HIGH && jobs->batch > BATCH_MIN)
        jobs->batch /= 2;
    else if (cost < COST_LOW && jobs->batch < BATCH_MAX && n_ops >= jobs->batch / 2)
        jobs->batch *= 2;
}

/* The last commit was stored. */
static void forget_coming(struct jobs_network *n)
{
    struct jobs_commit *c = &n->commit;
    struct jobs_change *ch;
    struct jobs_change *tmp;

    list_foreach_safe(ch, tmp, &c->coming, link) {
        (void)damaged_remove(&n->jobs->model->damaged, ch->key);
        change_free(c, ch);
    }
}

/* Is it a job's record, of a job that is there again? Its own saving says what the record is. */
static bool is_outdated(struct jobs_network *n, const struct jobs_change *ch)
{
    struct rdzv_key k = rdzv_key_parse(ch->key);
    const struct job *job = k.kind == RDZV_KEY_JOB ? jobs__find(n, k.job) : NULL;

    return job && (job->saving || !job->is_forgotten);
}

/* One change that was not stored goes back to the front, or a newer one of the key in its place. */
static void put_back_one(struct jobs_network *n, struct jobs_change *ch)
{
    struct jobs_commit *c = &n->commit;
    uint64_t hash = hash_bytes(c->by_key.seed, ch->key, strlen(ch->key));
    struct jobs_change *newer = find_change(c, ch->key, hash);

    if (newer) {
        newer->number = ch->number;
        list_remove(&newer->link);
        list_add(&c->order, &newer->link);
    }
    /* Without memory for it the change is in the answers only. */
    if (newer || is_outdated(n, ch) || htab_add(&c->by_key, &ch->hash, hash) != 0) {
        change_free(c, ch);
        return;
    }
    ch->is_coming = false;
    c->n_coming--;
    list_remove(&ch->link);
    list_add(&c->order, &ch->link);
}

static void put_back(struct jobs_network *n)
{
    struct jobs_commit *c = &n->commit;

    while (!list_is_empty(&c->coming))
        put_back_one(n, container_of(c->coming.prev, struct jobs_change, link));
}

/* The last commit has its answer. */
static void settle(struct jobs_network *n, int r)
{
    struct jobs_commit *c = &n->commit;
    size_t n_ops = c->n_coming;

    if (r == 0)
        forget_coming(n);
    else
        put_back(n);
    n->jobs->n_commits++;
    n->jobs->n_failed += r != 0;
    c->ended = clock_now();
    c->cost = c->ended - c->began;
    c->began = 0;
    c->is_failing = r != 0;
    n->jobs->free_at = c->ended + c->cost;
    adapt(n->jobs, c->cost, n_ops);
}

static void on_committed(void *ctx, const struct store_answer *a);

/* The oldest changes as one commit, on their way. 0 or negative errno with words. */
static int send_some(struct jobs_network *n, struct err *e)
{
    struct jobs_commit *c = &n->commit;
    struct store_op ops[BATCH_MAX];
    struct jobs_change *ch;
    size_t bytes = 0;
    int r;

    c->began = clock_now();
    while ((ch = list_first(&c->order, struct jobs_change, link))) {
        if (c->n_coming == n->jobs->batch || bytes > n->jobs->batch * BATCH_BYTES_EACH)
            break;
        bytes += ch->text ? strlen(ch->text) : 0;
        ops[c->n_coming++] = (struct store_op){.kind = ch->text ? STORE_OP_PUT : STORE_OP_DELETE,
            .key = ch->key,
            .value = ch->text,
            .expect = STORE_EXPECT_ANY,
            .is_untold = true};
        ch->is_coming = true;
        htab_remove(&c->by_key, &ch->hash);
        list_remove(&ch->link);
        list_add_tail(&c->coming, &ch->link);
    }
    r = store_commit(n->jobs->model->store, ops, c->n_coming, c->began, on_committed, n, e);
    if (r != 0)
        settle(n, r);
    return r;
}

/* The process is told of what it has asked for: what is saved, or if not, all of it. */
static void answer_syncs(struct jobs_network *n, int error)
{
    struct jobs_commit *c = &n->commit;
    struct list *oldest = list_is_empty(&c->coming) ? &c->order : &c->coming;
    struct jobs_change *first = list_first(oldest, struct jobs_change, link);
    unsigned done = 0;

    while (done < c->n_syncs && (error != 0 || !first || c->syncs[done].before <= first->number))
        done++;
    if (done == 0)
        return;
    jobs__host_say(n, &(struct rdzv_wire){
                          .type = RDZV_WIRE_SAVED, .seq = c->syncs[done - 1].seq, .error = error});
    c->n_syncs -= done;
    memmove(c->syncs, c->syncs + done, c->n_syncs * sizeof(c->syncs[0]));
}

/* What comes after a commit, or one that could not begin. */
static void go_on(struct jobs_network *n, int r, const struct err *e)
{
    struct jobs_commit *c = &n->commit;

    if (r != 0)
        log_limited(&n->jobs->limit, clock_now(), LOG_LEVEL_WARNING,
            "rendezvous of network \"%s\": what has changed is in memory only, until the next "
            "try: %s",
            n->name, err_text(e));
    /* Of a positive outcome only a hub can make something. */
    answer_syncs(n, r > 0 ? -EIO : r);
    jobs__sweep(n);
    if (!list_is_empty(&c->order))
        hurry(n, c->n_syncs > 0);
    jobs__host_hear(n);
    jobs__arm(n->jobs);
}

static void on_committed(void *ctx, const struct store_answer *a)
{
    struct jobs_network *n = ctx;

    settle(n, a->r);
    go_on(n, a->r, a->e);
}

static void commit_next(struct jobs_network *n)
{
    struct err e = ERR_NULL;
    int r;

    n->commit.due = NSEC_NEVER;
    if (list_is_empty(&n->commit.order))
        return;
    r = send_some(n, &e);
    if (r != 0)
        go_on(n, r, &e);
}

void jobs__on_timer(uv_timer_t *timer)
{
    struct jobs *jobs = container_of(timer, struct jobs, timer);
    nsec_t now = clock_now();
    struct jobs_network *n;

    list_foreach(n, &jobs->networks, link)
        jobs__host_tick(n, now);
    /* One in a turn; who has committed goes behind the others. */
    list_foreach(n, &jobs->networks, link) {
        if (ready_at(n) > now)
            continue;
        list_remove(&n->link);
        list_add_tail(&jobs->networks, &n->link);
        commit_next(n);
        break;
    }
    jobs__arm(jobs);
}

int jobs__commit_all(struct jobs_network *n, struct err *e)
{
    struct store *store = n->jobs->model->store;
    int r = 0;

    store_wait(store);
    while (r == 0 && !list_is_empty(&n->commit.order)) {
        r = send_some(n, e);
        store_wait(store);
        if (n->commit.is_failing)
            r = err_set(e, -EIO, "the store has refused it");
    }
    answer_syncs(n, r);
    return r;
}

/* ---- changes -------------------------------------------------------------------------------- */

int jobs__put(struct jobs_network *n, const char *key, char *text)
{
    struct jobs_commit *c = &n->commit;
    size_t len = strlen(key);
    uint64_t hash = hash_bytes(c->by_key.seed, key, len);
    struct jobs_change *ch = find_change(c, key, hash);

    if (!ch) {
        ch = malloc(sizeof(*ch) + len + 1);
        if (!ch || htab_add(&c->by_key, &ch->hash, hash) != 0) {
            free(ch);
            free(text);
            return -ENOMEM;
        }
        ch->text = NULL;
        ch->is_coming = false;
        ch->number = c->next++;
        memcpy(ch->key, key, len + 1);
        list_add_tail(&c->order, &ch->link);
    }
    c->bytes += text ? strlen(text) : 0;
    c->bytes -= ch->text ? strlen(ch->text) : 0;
    free(ch->text);
    ch->text = text;
    hurry(n, false);
    return 0;
}

void jobs__delete_pieces(
    struct jobs_network *n, const char *first, char slot, unsigned from, unsigned to)
{
    char key[RDZV_KEY_MAX];

    /* Without memory for it the piece stays, and is garbage that the next start finds. */
    for (unsigned i = from; i < to; i++)
        (void)jobs__put(n, rdzv_key_of_piece(key, first, slot, i), NULL);
}

void jobs__sync(struct jobs_network *n, uint64_t seq)
{
    struct jobs_commit *c = &n->commit;
    unsigned i = c->n_syncs < JOBS__SYNCS_MAX ? c->n_syncs++ : JOBS__SYNCS_MAX - 1;

    c->syncs[i].seq = seq;
    c->syncs[i].before = c->next;
    if (jobs__is_saved(n))
        answer_syncs(n, 0);
    else if (!list_is_empty(&c->order))
        hurry(n, true);
}

bool jobs__can_take(const struct jobs_network *n)
{
    return n->commit.by_key.n + n->commit.n_coming < JOBS__PENDING_MAX &&
           n->commit.bytes < JOBS__PENDING_BYTES_MAX && n->n_garbage < JOBS__GARBAGE_MAX;
}

bool jobs__is_saved(const struct jobs_network *n)
{
    return list_is_empty(&n->commit.order) && list_is_empty(&n->commit.coming);
}

void jobs__forget_put(struct jobs_network *n, const char *key)
{
    struct jobs_commit *c = &n->commit;
    struct jobs_change *ch = find_change(c, key, hash_bytes(c->by_key.seed, key, strlen(key)));

    if (ch)
        change_free(c, ch);
}

/* ---- garbage -------------------------------------------------------------------------------- */

static void delete_item(struct job *job, struct jobs_item *item)
{
    char first[RDZV_KEY_MAX];

    (void)rdzv_key_of_blob(first, item->kind, job->network->name, job->name, &item->hash);
    (void)jobs__put(job->network, first, NULL);
    jobs__delete_pieces(job->network, first, item->slot, 1, item->n_pieces);
    jobs__remove_item(job, item);
}

static void sweep_job(struct job *job)
{
    while (job->n_garbage > 0 && job->network->commit.by_key.n < SWEEP_MAX) {
        struct htab_link *l = htab_each(&job->items, &job->cursor, NULL);
        struct htab_link *next;

        if (!l)
            job->cursor = 0;
        for (; l; l = next) {
            struct jobs_item *item = container_of(l, struct jobs_item, link);

            next = l->next;
            if (!jobs__is_current(job, item))
                delete_item(job, item);
        }
    }
}

void jobs__sweep(struct jobs_network *n)
{
    struct job *job;
    struct job *tmp;

    list_foreach_safe(job, tmp, &n->list, link) {
        char key[RDZV_KEY_MAX];

        sweep_job(job);
        if (!job->is_forgotten || job->saving || job->items.n > 0 ||
            n->commit.by_key.n >= SWEEP_MAX)
            continue;
        /* Behind all that was in it, so that no later job of the name finds any of that. */
        (void)jobs__put(n, rdzv_key_of_job(key, n->name, job->name), NULL);
        jobs__free(job);
    }
}
