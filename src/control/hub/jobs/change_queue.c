/* change_queue.c - see change_queue.h. */
#include "change_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rendezvous/shared/rdzv_record.h"
#include "store/store.h"

/* The smallest limit for the changes in one commit: pace.batch never goes below it. */
#define BATCH_MIN 16

/* A commit that may have n changes may have n times so many bytes. */
#define BATCH_BYTES_EACH 1024

/* What a commit should take: after one that took longer than COST_HIGH the next ones are smaller,
 * after one that took less than COST_LOW they may be larger. */
#define COST_HIGH (12 * NSEC_PER_MSEC)
#define COST_LOW  (6 * NSEC_PER_MSEC)

/* How long a change that nobody waits for is gathered with others before it is committed. */
#define SAVE_AFTER (20 * NSEC_PER_MSEC)

/* The pause between a network's commits, as a multiple of what the last one took. */
#define PAUSE        6
#define PAUSE_WAITED 2 /* somebody waits for the next one */

/* How long after a commit that failed it is tried again. */
#define RETRY_AFTER NSEC_PER_SEC

/* ---- changes -------------------------------------------------------------------------------- */

static void change_free(struct change_queue *q, struct change *ch)
{
    if (ch->text)
        q->bytes -= strlen(ch->text);
    list_remove(&ch->link);
    if (!ch->is_sent)
        htab_remove(&q->by_key, &ch->hash);
    q->n_sent -= ch->is_sent;
    free(ch->text);
    free(ch);
}

static uint64_t hash_of(const struct change_queue *q, const char *key)
{
    return hash_bytes(q->by_key.seed, key, strlen(key));
}

static struct change *find_waiting(struct change_queue *q, const char *key)
{
    uint64_t hash = hash_of(q, key);

    for (struct htab_link *l = htab_first(&q->by_key, hash); l; l = htab_next(l, hash)) {
        struct change *ch = container_of(l, struct change, hash);

        if (strcmp(ch->key, key) == 0)
            return ch;
    }
    return NULL;
}

void change_queue_init(struct change_queue *q, uint64_t seed)
{
    *q = (struct change_queue){.due_at = NSEC_NEVER};
    htab_init(&q->by_key, seed);
    list_init(&q->waiting);
    list_init(&q->sent);
}

void change_queue_deinit(struct change_queue *q)
{
    struct change *ch;
    struct change *tmp;

    list_foreach_safe(ch, tmp, &q->sent, link)
        change_free(q, ch);
    list_foreach_safe(ch, tmp, &q->waiting, link)
        change_free(q, ch);
    htab_deinit(&q->by_key);
}

/* Plan a commit, since a change waits. @is_waited: somebody waits for the disk. */
static void plan(struct change_queue *q, bool is_waited, nsec_t now)
{
    nsec_t due_at = is_waited ? nsec_max(now, q->ended_at + PAUSE_WAITED * q->cost)
                              : nsec_max(now + SAVE_AFTER, q->ended_at + PAUSE * q->cost);

    if (q->is_failing)
        due_at = q->ended_at + RETRY_AFTER;
    q->due_at = nsec_min(q->due_at, due_at);
}

int change_queue_put(struct change_queue *q, const char *key, char *text, nsec_t now)
{
    struct change *ch = find_waiting(q, key);
    size_t len = strlen(key);

    if (!ch) {
        ch = malloc(sizeof(*ch) + len + 1);
        if (!ch || htab_add(&q->by_key, &ch->hash, hash_of(q, key)) != 0) {
            free(ch);
            free(text);
            return -ENOMEM;
        }
        ch->text = NULL;
        ch->is_sent = false;
        ch->is_void = false;
        ch->number = q->next++;
        memcpy(ch->key, key, len + 1);
        list_add_tail(&q->waiting, &ch->link);
    }
    q->bytes += text ? strlen(text) : 0;
    q->bytes -= ch->text ? strlen(ch->text) : 0;
    free(ch->text);
    ch->text = text;
    plan(q, false, now);
    return 0;
}

void change_queue_forget(struct change_queue *q, const char *key)
{
    struct change *ch = find_waiting(q, key);

    if (ch)
        change_free(q, ch);
    list_foreach(ch, &q->sent, link) {
        if (strcmp(ch->key, key) == 0)
            ch->is_void = true;
    }
}

/* ---- who waits for the disk ----------------------------------------------------------------- */

void change_queue_sync(struct change_queue *q, uint64_t seq, nsec_t now)
{
    unsigned i = q->n_syncs < CHANGE_QUEUE_SYNCS_MAX ? q->n_syncs++ : CHANGE_QUEUE_SYNCS_MAX - 1;

    q->syncs[i].seq = seq;
    q->syncs[i].before = q->next;
    if (!list_is_empty(&q->waiting))
        plan(q, true, now);
}

bool change_queue_take_saved(struct change_queue *q, int error, uint64_t *ret_seq)
{
    const struct list *oldest = list_is_empty(&q->sent) ? &q->waiting : &q->sent;
    const struct change *first = list_first(oldest, struct change, link);
    unsigned done = 0;

    while (done < q->n_syncs && (error != 0 || !first || q->syncs[done].before <= first->number))
        done++;
    if (done == 0)
        return false;
    *ret_seq = q->syncs[done - 1].seq;
    q->n_syncs -= done;
    memmove(q->syncs, q->syncs + done, q->n_syncs * sizeof(q->syncs[0]));
    return true;
}

/* ---- committing ----------------------------------------------------------------------------- */

nsec_t change_queue_due(const struct change_queue *q, const struct change_pace *pace)
{
    if (q->sent_at > 0)
        return NSEC_NEVER;
    /* A network in which somebody waits for the disk does not wait for other networks' pauses. Its
     * own pause keeps it from asking for too much. */
    if (q->due_at == NSEC_NEVER || q->n_syncs > 0)
        return q->due_at;
    return nsec_max(q->due_at, pace->free_at);
}

size_t change_queue_send(
    struct change_queue *q, const struct change_pace *pace, struct store_op *ops, nsec_t now)
{
    struct change *ch;
    size_t bytes = 0;

    q->due_at = NSEC_NEVER;
    while ((ch = list_first(&q->waiting, struct change, link))) {
        if (q->n_sent == pace->batch || bytes > pace->batch * BATCH_BYTES_EACH)
            break;
        bytes += ch->text ? strlen(ch->text) : 0;
        ops[q->n_sent++] = (struct store_op){.kind = ch->text ? STORE_OP_PUT : STORE_OP_DELETE,
            .key = ch->key,
            .value = ch->text,
            .expect = STORE_EXPECT_ANY,
            .is_unwatched = true};
        ch->is_sent = true;
        htab_remove(&q->by_key, &ch->hash);
        list_remove(&ch->link);
        list_add_tail(&q->sent, &ch->link);
    }
    if (q->n_sent > 0)
        q->sent_at = now;
    return q->n_sent;
}

/* One change that was not stored goes back to the front, or a newer one of the key in its place. */
static void put_back(struct change_queue *q, struct change *ch)
{
    struct change *newer = find_waiting(q, ch->key);

    if (newer) {
        newer->number = ch->number;
        list_remove(&newer->link);
        list_add(&q->waiting, &newer->link);
    }
    /* Without memory the change is lost in the store; the rendezvous process still has it. */
    if (newer || ch->is_void || htab_add(&q->by_key, &ch->hash, hash_of(q, ch->key)) != 0) {
        change_free(q, ch);
        return;
    }
    ch->is_sent = false;
    q->n_sent--;
    list_remove(&ch->link);
    list_add(&q->waiting, &ch->link);
}

void change_queue_settle(struct change_queue *q, struct change_pace *pace, int r, nsec_t now)
{
    size_t n_ops = q->n_sent;
    struct change *ch;
    struct change *tmp;

    if (r == 0)
        list_foreach_safe(ch, tmp, &q->sent, link)
            change_free(q, ch);
    /* From the last to the first, because each goes to the front. */
    while (!list_is_empty(&q->sent))
        put_back(q, container_of(q->sent.prev, struct change, link));
    q->n_commits++;
    q->n_failed += r != 0;
    q->ended_at = now;
    q->cost = now - q->sent_at;
    q->sent_at = 0;
    q->is_failing = r != 0;
    pace->free_at = now + q->cost;
    /* The size of the next commits is by what this one took. */
    if (q->cost > COST_HIGH && pace->batch > BATCH_MIN)
        pace->batch /= 2;
    else if (q->cost < COST_LOW && pace->batch < CHANGE_QUEUE_BATCH_MAX && n_ops >= pace->batch / 2)
        pace->batch *= 2;
}

void change_queue_resume(struct change_queue *q, nsec_t now)
{
    if (!list_is_empty(&q->waiting))
        plan(q, q->n_syncs > 0, now);
}

/* ---- how much ------------------------------------------------------------------------------- */

bool change_queue_is_empty(const struct change_queue *q)
{
    return list_is_empty(&q->waiting) && list_is_empty(&q->sent);
}

size_t change_queue_count(const struct change_queue *q)
{
    return q->by_key.n + q->n_sent;
}

bool change_queue_has_space(const struct change_queue *q)
{
    return change_queue_count(q) < CHANGE_QUEUE_MAX && q->bytes < CHANGE_QUEUE_BYTES_MAX;
}
