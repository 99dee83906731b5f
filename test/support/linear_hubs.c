/* linear_hubs.c - see linear_hubs.h. */
#include "test/support/linear_hubs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/linear.h"
#include "test/support/losing_proxy.h"
#include "test/support/store_now.h"

#define KEYS  2
#define STEPS 14 /* of each hub in a run */

/* One in so many answers of the store to a commit is thrown away: a hub that ends. */
#define LOSS 16

/* How long a server may be away, and the pause between two requests that fail. */
#define PATIENCE (120 * NSEC_PER_SEC)
#define PAUSE_MS 50

/* Each write has a value of its own: so many may fail in a run of one hub. */
#define VALUES 1000000

/* A hub. */
struct hub {
    struct store *s; /* owns */
    struct store_watch *w;
    unsigned id;
    unsigned long run;
    uint64_t seed;
    unsigned n_values;       /* that it has used in this run */
    unsigned value[KEYS];    /* what it has seen last */
    uint64_t revision[KEYS]; /* of that */
    unsigned reported[KEYS]; /* by its watch */
    uint64_t reported_revision;
    struct linear_op ops[STEPS];
    size_t n_ops;
    struct linear_hubs_figures figures;
    struct err e; /* of the last request that failed */
};

static void key_of(char key[static 32], unsigned long run, unsigned k)
{
    (void)snprintf(key, 32, "r%lu/%u", run, k);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct read {
    unsigned value;
    uint64_t revision;
};

static int take_read(void *ctx, const struct store_item *item)
{
    *(struct read *)ctx = (struct read){(unsigned)strtoul(item->value, NULL, 10), item->revision};
    return 0;
}

static void on_change(void *ctx, const struct store_item *item)
{
    struct hub *h = ctx;
    char key[32];

    if (!item || item->revision < h->reported_revision) {
        (void)fprintf(stderr, "hub %u: its watch is told of %s after revision %llu\n", h->id,
            item ? "an older change" : "a loss", (unsigned long long)h->reported_revision);
        abort();
    }
    h->reported_revision = item->revision;
    for (unsigned k = 0; k < KEYS; k++) {
        key_of(key, h->run, k);
        if (strcmp(key, item->key) == 0)
            h->reported[k] = (unsigned)strtoul(item->value, NULL, 10);
    }
}

/* False: it has failed, and so is nothing. */
static bool do_read(struct hub *h, unsigned k, struct linear_op *ret)
{
    struct read rd = {.value = 0};
    struct linear_op op = {.kind = LINEAR_READ, .key = k, .called_at = clock_now()};
    char key[32];
    int r;

    key_of(key, h->run, k);
    r = store_now_get(h->s, key, take_read, &rd, &h->e);
    op.answered_at = clock_now();
    if (r != 0 && r != STORE_E_ABSENT)
        return false;
    op.value = rd.value;
    h->value[k] = rd.value;
    h->revision[k] = rd.revision;
    *ret = op;
    return true;
}

/* @is_lost: what has become of it is never heard. */
static bool do_write(struct hub *h, unsigned k, bool is_lost, struct linear_op *ret)
{
    struct store_op put = {.kind = STORE_OP_PUT, .expect = h->revision[k]};
    struct linear_op op = {.kind = LINEAR_SWAP,
        .key = k,
        .expect = h->value[k],
        .value = h->id * VALUES + ++h->n_values,
        .called_at = clock_now()};
    uint64_t revision = 0;
    char key[32];
    char text[16];
    int r;

    if (h->n_values == VALUES)
        abort();
    key_of(key, h->run, k);
    (void)snprintf(text, sizeof(text), "%u", op.value);
    put.key = key;
    put.value = text;
    r = store_now_commit(h->s, &put, 1, 0, &revision, NULL, &h->e);
    op.answered_at = clock_now();
    if (r == STORE_E_UNKNOWN || is_lost) {
        op.kind = LINEAR_UNKNOWN;
        op.answered_at = NSEC_NEVER;
        h->figures.n_unknown++;
    } else if (r == 0) {
        h->value[k] = op.value;
        h->revision[k] = revision;
    } else if (r == STORE_E_CONFLICT) {
        op.kind = LINEAR_REFUSED;
    } else {
        return false;
    }
    *ret = op;
    return true;
}

/* After a request that has failed. @since: the first one in a row. */
static void pause_after(struct hub *h, nsec_t since)
{
    h->figures.n_failed++;
    if (clock_now() - since > PATIENCE) {
        (void)fprintf(stderr, "hub %u: nothing is answered: %s\n", h->id, err_text(&h->e));
        abort();
    }
    (void)poll(NULL, 0, PAUSE_MS);
}

static void *act(void *arg)
{
    struct hub *h = arg;
    struct rng rng = rng_seeded(&h->seed);
    nsec_t since = clock_now();

    while (h->n_ops < STEPS) {
        unsigned k = rng_u32(&rng) % KEYS;
        bool is_done = rng_u32(&rng) % 2
                           ? do_read(h, k, &h->ops[h->n_ops])
                           : do_write(h, k, rng_u32(&rng) % LOSS == 0, &h->ops[h->n_ops]);

        if (is_done) {
            h->n_ops++;
            h->figures.n_answered++;
            since = clock_now();
        } else {
            pause_after(h, since);
        }
    }
    return NULL;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* What all hubs have asked about a key, and one more read of it by @reader. */
static void check(struct hub *hubs, struct hub *reader, unsigned k, uint64_t seed)
{
    static struct linear_op ops[LINEAR_HUBS * STEPS + 1];
    nsec_t since = clock_now();
    size_t n = 0;

    for (unsigned i = 0; i < LINEAR_HUBS; i++)
        for (size_t j = 0; j < hubs[i].n_ops; j++)
            if (hubs[i].ops[j].key == k)
                ops[n++] = hubs[i].ops[j];
    while (!do_read(reader, k, &ops[n]))
        pause_after(reader, since);
    n++;
    if (!linear_check(ops, n)) {
        linear_print(ops, n);
        fail_msg("seed %llu, key %u: not linearizable", (unsigned long long)seed, k);
    }
    /* Who reads sees nothing that its own watch was not told. */
    assert_int_equal(reader->reported[k], reader->value[k]);
}

static void do_run(struct hub *hubs, unsigned long run, uint64_t seed)
{
    pthread_t threads[LINEAR_HUBS];

    for (unsigned i = 0; i < LINEAR_HUBS; i++) {
        struct hub *h = &hubs[i];

        h->run = run;
        h->seed = seed * LINEAR_HUBS + i;
        h->n_ops = 0;
        h->n_values = 0;
        memset(h->value, 0, sizeof(h->value));
        memset(h->revision, 0, sizeof(h->revision));
        memset(h->reported, 0, sizeof(h->reported));
    }
    for (unsigned i = 0; i < LINEAR_HUBS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, act, &hubs[i]), 0);
    for (unsigned i = 0; i < LINEAR_HUBS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned k = 0; k < KEYS; k++)
        check(hubs, &hubs[(run + k) % LINEAR_HUBS], k, seed);
}

/* ---- hubs ------------------------------------------------------------------------------------ */

static void begin_hub(struct hub *h, const struct linear_hubs_rules *rules)
{
    nsec_t since = clock_now();
    struct err e = ERR_NULL;

    while (!(h->s = rules->open(rules->ctx, h->id)))
        pause_after(h, since);
    h->figures.n_begun++;
    h->reported_revision = 0;
    assert_int_equal(store_watch(h->s, "", store_revision(h->s) + 1, on_change, h, &h->w, &e), 0);
}

static void end_hub(struct hub *h)
{
    store_watch_close(h->w);
    store_free(h->s);
}

static unsigned long number(const char *variable, unsigned long otherwise)
{
    const char *given = getenv(variable);

    return given ? strtoul(given, NULL, 10) : otherwise;
}

uint64_t linear_hubs_seed(void)
{
    return number("WEFT_SEED", 1);
}

struct linear_hubs_figures linear_hubs_run(const struct linear_hubs_rules *rules,
    unsigned long runs, uint64_t seed, void (*before)(void *ctx))
{
    nsec_t until = clock_now() + (nsec_t)number("WEFT_SECONDS", 1000000) * NSEC_PER_SEC;
    struct hub *hubs = calloc(LINEAR_HUBS, sizeof(*hubs));
    struct linear_hubs_figures sum = {0};

    runs = number("WEFT_RUNS", runs);
    for (unsigned i = 0; i < LINEAR_HUBS; i++) {
        hubs[i].id = i;
        begin_hub(&hubs[i], rules);
    }
    if (before)
        before(rules->ctx);
    while (sum.n_runs < runs && clock_now() < until) {
        struct hub *next = &hubs[sum.n_runs % LINEAR_HUBS];

        if (rules->reopen_every && sum.n_runs % rules->reopen_every == rules->reopen_every - 1) {
            end_hub(next);
            begin_hub(next, rules);
        }
        do_run(hubs, sum.n_runs, seed + sum.n_runs);
        sum.n_runs++;
    }
    for (unsigned i = 0; i < LINEAR_HUBS; i++) {
        sum.n_answered += hubs[i].figures.n_answered;
        sum.n_unknown += hubs[i].figures.n_unknown;
        sum.n_failed += hubs[i].figures.n_failed;
        sum.n_begun += hubs[i].figures.n_begun;
        end_hub(&hubs[i]);
    }
    free(hubs);
    return sum;
}

/* ---- what is lost on the way ----------------------------------------------------------------- */

struct linear_way {
    struct losing_proxy *proxy; /* owns */
    const char *spared;         /* pins */
    uint64_t seed;
    struct rng rng;
    unsigned n_requests; /* of them lost */
    unsigned n_answers;  /* likewise */
};

static enum losing_proxy_fate decide(void *ctx, const char *path)
{
    struct linear_way *way = ctx;
    uint32_t lot = rng_u32(&way->rng) % LOSS;

    if ((way->spared && strcmp(path, way->spared) == 0) || lot > 1)
        return LOSING_PROXY_PASS;
    way->n_requests += lot == 0;
    way->n_answers += lot == 1;
    return lot == 0 ? LOSING_PROXY_LOSE_REQUEST : LOSING_PROXY_LOSE_ANSWER;
}

struct linear_way *linear_way_open(const char *server, uint64_t seed, const char *spared)
{
    struct linear_way *way = calloc(1, sizeof(*way));
    const struct losing_proxy_rules rules = {.ctx = way, .decide = decide};

    *way = (struct linear_way){.seed = seed, .spared = spared};
    way->rng = rng_seeded(&way->seed);
    way->proxy = losing_proxy_start(server, &rules);
    return way;
}

const char *linear_way_server(const struct linear_way *way)
{
    return losing_proxy_server(way->proxy);
}

struct linear_way *linear_way_close(
    struct linear_way *way, unsigned *n_requests, unsigned *n_answers)
{
    if (!way)
        return NULL;
    way->proxy = losing_proxy_free(way->proxy);
    *n_requests += way->n_requests;
    *n_answers += way->n_answers;
    free(way);
    return NULL;
}
