/* rdzv_save.c - see rdzv_save.h. */
#include "rdzv_save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "hub/model.h"
#include "rendezvous/rdzv_record.h"
#include "sys/clock.h"

/* Changes in one commit, about: it ends with a whole blob. */
#define BATCH     512
#define BATCH_MAX (BATCH + RDZV_CHUNKS_MAX)

/* The loop spends at most one part in so many on commits. */
#define COST_SHARE 10

/* A commit that failed is tried again after so long. */
#define RETRY_MS 1000

/* A key that differs from what the store has. */
struct change {
    struct list link;      /* in rdzv_save.order */
    struct htab_link hash; /* in rdzv_save.by_key */
    char *text;            /* owns; NULL: the key goes */
    char key[];            /* with the zero */
};

static void change_free(struct rdzv_save *s, struct change *c)
{
    list_remove(&c->link);
    htab_remove(&s->by_key, &c->hash);
    free(c->text);
    free(c);
}

static struct change *find_change(struct rdzv_save *s, const char *key, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&s->by_key, hash); l; l = htab_next(l, hash)) {
        struct change *c = container_of(l, struct change, hash);

        if (strcmp(c->key, key) == 0)
            return c;
    }
    return NULL;
}

/* ---- committing ----------------------------------------------------------------------------- */

/*
 * A commit that is large enough ends before @c. Not within a blob: its chunks are next to each
 * other, and of a hub that died between two commits a part would be left, which cannot be read.
 */
static bool ends_before(const struct change *c, size_t n)
{
    return n == BATCH_MAX || (n >= BATCH && rdzv_key_parse(c->key).chunk == 0);
}

/* The oldest changes as one commit. */
static int commit_some(struct rdzv_save *s, struct err *e)
{
    struct store_op ops[BATCH_MAX];
    struct change *done[BATCH_MAX];
    struct change *c;
    size_t n = 0;
    int r;

    list_foreach(c, &s->order, link) {
        if (ends_before(c, n))
            break;
        done[n] = c;
        ops[n++] = (struct store_op){.kind = c->text ? STORE_OP_PUT : STORE_OP_DELETE,
            .key = c->key,
            .value = c->text,
            .expect = STORE_EXPECT_ANY};
    }
    r = model_commit(s->model, ops, n, clock_now(), NULL, e);
    s->n_commits++;
    for (size_t i = 0; r == 0 && i < n; i++)
        change_free(s, done[i]);
    return r;
}

int rdzv_save_now(struct rdzv_save *s, struct err *e)
{
    nsec_t start = clock_now();
    int r = 0;

    if (s->gather)
        s->gather(s->gather_ctx);
    while (r == 0 && !list_is_empty(&s->order))
        r = commit_some(s, e);
    s->cost = clock_now() - start;
    return r;
}

static void tell_waiting(struct rdzv_save *s, int r)
{
    struct list all;
    struct rdzv_save_wait *w;

    /* Whoever is told may begin to wait anew: that is for the next commit. */
    list_init(&all);
    list_add_tail(&s->waiting, &all);
    list_remove(&s->waiting);
    while ((w = list_first(&all, struct rdzv_save_wait, link))) {
        list_remove(&w->link);
        w->done(w, r);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct rdzv_save *s = timer->data;
    struct err e = ERR_NULL;
    int r = rdzv_save_now(s, &e);

    if (r != 0) {
        s->n_failed++;
        log_limited(&s->limit, clock_now(), LOG_LEVEL_WARNING,
            "rendezvous: what has changed is in memory only, until the next try: %s", err_text(&e));
        (void)uv_timer_start(timer, on_timer, RETRY_MS, 0);
    }
    tell_waiting(s, r);
}

static void arm(struct rdzv_save *s)
{
    nsec_t after = nsec_max(RDZV_SAVE_AFTER, COST_SHARE * s->cost);

    if (!uv_is_active((uv_handle_t *)&s->timer) && !uv_is_closing((uv_handle_t *)&s->timer))
        (void)uv_timer_start(&s->timer, on_timer, (uint64_t)(after / NSEC_PER_MSEC), 0);
}

void rdzv_save_later(struct rdzv_save *s)
{
    arm(s);
}

/* ---- changes -------------------------------------------------------------------------------- */

int rdzv_save_put(struct rdzv_save *s, const char *key, char *text)
{
    size_t len = strlen(key);
    uint64_t hash = hash_bytes(s->by_key.seed, key, len);
    struct change *c = find_change(s, key, hash);

    if (c) {
        list_remove(&c->link);
    } else {
        c = malloc(sizeof(*c) + len + 1);
        if (!c || htab_add(&s->by_key, &c->hash, hash) != 0) {
            free(c);
            free(text);
            return -ENOMEM;
        }
        c->text = NULL;
        memcpy(c->key, key, len + 1);
    }
    list_add_tail(&s->order, &c->link);
    free(c->text);
    c->text = text;
    arm(s);
    return 0;
}

static int drop_chunks(struct rdzv_save *s, const char *key, unsigned from, unsigned to)
{
    char name[RDZV_KEY_MAX];
    int r = 0;

    for (unsigned i = from; r == 0 && i < to; i++)
        r = rdzv_save_put(s, rdzv_key_of_chunk(name, key, i), NULL);
    return r;
}

int rdzv_save_blob(struct rdzv_save *s, const char *key, const void *p, size_t len, size_t before)
{
    unsigned n = rdzv_chunks(len);
    char name[RDZV_KEY_MAX];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < n; i++) {
        size_t off = (size_t)i * RDZV_CHUNK;
        char *text = rdzv_chunk_encode(
            (const uint8_t *)p + off, len - off < RDZV_CHUNK ? len - off : RDZV_CHUNK);

        r = text ? rdzv_save_put(s, rdzv_key_of_chunk(name, key, i), text) : -ENOMEM;
    }
    return r == 0 ? drop_chunks(s, key, n, rdzv_chunks(before)) : r;
}

int rdzv_save_drop_blob(struct rdzv_save *s, const char *key, size_t before)
{
    return drop_chunks(s, key, 0, rdzv_chunks(before));
}

/* ---- waiting -------------------------------------------------------------------------------- */

void rdzv_save_wait(struct rdzv_save *s, struct rdzv_save_wait *w)
{
    list_add_tail(&s->waiting, &w->link);
    /* No time is lost by waiting for nothing, and all of this turn go together. */
    if (!uv_is_closing((uv_handle_t *)&s->timer))
        (void)uv_timer_start(&s->timer, on_timer, 0, 0);
}

void rdzv_save_forget(struct rdzv_save_wait *w)
{
    list_remove(&w->link);
}

/* ---- life ----------------------------------------------------------------------------------- */

void rdzv_save_init(struct rdzv_save *s, struct model *model, uint64_t seed)
{
    *s = (struct rdzv_save){.model = model};
    htab_init(&s->by_key, seed);
    list_init(&s->order);
    list_init(&s->waiting);
}

void rdzv_save_start(struct rdzv_save *s, struct uv_loop_s *loop)
{
    (void)uv_timer_init(loop, &s->timer);
    s->timer.data = s;
}

void rdzv_save_stop(struct rdzv_save *s)
{
    struct err e = ERR_NULL;
    int r;

    uv_close((uv_handle_t *)&s->timer, NULL);
    r = rdzv_save_now(s, &e);
    if (r != 0)
        log_warning("rendezvous: the last changes are lost: %s", err_text(&e));
    tell_waiting(s, r);
}

void rdzv_save_deinit(struct rdzv_save *s)
{
    struct change *c;
    struct change *tmp;

    list_foreach_safe(c, tmp, &s->order, link)
        change_free(s, c);
    htab_deinit(&s->by_key);
}
