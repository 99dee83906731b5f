/*
 * test-store-queue.c - which jobs are taken together, and how the thread begins and ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "store/store_backend.h"

static const struct store_queue_limits limits = {.ops_max = 4, .bytes_max = 1000};
static const struct store_queue_limits apart = {.ops_max = 4, .bytes_max = 1000, .is_apart = true};

static bool is_sociable(const struct store_job *job)
{
    return job->ops[0].key[0] != 'z';
}

/* A commit whose first key begins with z is taken alone. */
static const struct store_queue_limits sociable = {
    .ops_max = 4, .bytes_max = 1000, .can_share = is_sociable};

/* Put a commit of each word in @keys, or a read where it is "?". "xK": a long value. */
static void add(struct worker *w, const char *keys)
{
    struct store_job *job =
        store_job_new(strcmp(keys, "?") == 0 ? STORE_JOB_GET : STORE_JOB_COMMIT);
    static char big[600];
    struct store_op ops[8];
    char text[8][8];
    size_t n = 0;

    memset(big, 'v', sizeof(big) - 1);
    for (const char *p = keys; *p && job->kind == STORE_JOB_COMMIT; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");

        (void)snprintf(text[n], sizeof(text[n]), "%.*s", (int)len, p);
        ops[n] = (struct store_op){
            .kind = STORE_OP_PUT, .key = text[n], .value = text[n][0] == 'x' ? big : "1"};
        n++;
        p += len;
    }
    if (n > 0)
        assert_int_equal(store_job_set_ops(job, ops, n), 0);
    assert_true(worker_put(w, &job->link));
}

/* What is taken next, as the keys of each job. */
static const char *take(struct worker *w, const struct store_queue_limits *of)
{
    static char said[200];
    struct store_job *job;
    struct list jobs;
    bool ends = false;
    bool has_any;
    size_t len = 0;

    list_init(&jobs);
    said[0] = '\0';
    has_any = store_queue_take(w, of, &jobs, &ends);
    assert_int_equal(has_any, !list_is_empty(&jobs));
    assert_false(ends);
    while ((job = list_first(&jobs, struct store_job, link))) {
        len += (size_t)snprintf(said + len, sizeof(said) - len, "%s", len > 0 ? " | " : "");
        for (size_t i = 0; i < job->n_ops; i++)
            len += (size_t)snprintf(
                said + len, sizeof(said) - len, "%s%s", i > 0 ? " " : "", job->ops[i].key);
        if (job->kind != STORE_JOB_COMMIT)
            len += (size_t)snprintf(said + len, sizeof(said) - len, "?");
        list_remove(&job->link);
        store_job_free(job);
    }
    return said;
}

/* Takes nothing and has ended, so that the test may. */
static void idle(struct worker *w, void *ctx)
{
}

static void test_take(void **state)
{
    static const struct {
        const char *jobs[6];
        const char *taken[6];
        const struct store_queue_limits *limits;
    } cases[] = {
        /* 0: commits up to the limit of operations, in their order. */
        {{"a", "b c", "d", "e"}, {"a | b c | d", "e"}, &limits},
        /* 1: a read is alone, before and behind others. */
        {{"?", "?", "a", "?", "b"}, {"?", "?", "a", "?", "b"}, &limits},
        /* 2: so is what is above the limit by itself; nothing goes along with it. */
        {{"a b c d e", "f", "g"}, {"a b c d e", "f | g"}, &limits},
        /* 3: nothing that is behind overtakes what does not go along. */
        {{"a", "b c d e", "f"}, {"a", "b c d e", "f"}, &limits},
        /* 4: bytes count as well. */
        {{"x1", "x2", "a"}, {"x1", "x2 | a"}, &limits},
        /* 5: the same key twice, where that is allowed, */
        {{"a", "b a", "c"}, {"a | b a | c"}, &limits},
        /* 6: and where it is not. */
        {{"a", "b a", "c", "a"}, {"a", "b a | c", "a"}, &apart},
        /* 7: what may not be taken together with others, before and behind them. */
        {{"z", "a", "b", "z", "z"}, {"z", "a | b", "z", "z"}, &sociable},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct worker *w = NULL;

        assert_int_equal(store_queue_start(&w, idle, NULL, NULL), 0);
        for (size_t k = 0; cases[i].jobs[k]; k++)
            add(w, cases[i].jobs[k]);
        for (size_t k = 0; cases[i].taken[k]; k++) {
            const char *said = take(w, cases[i].limits);

            if (strcmp(said, cases[i].taken[k]) != 0)
                fail_msg("%zu: \"%s\" and not \"%s\"", i, said, cases[i].taken[k]);
        }
        assert_string_equal(take(w, &limits), "");
        assert_null(worker_stop(w));
    }
}

static atomic_uint n_done;

static void work(struct worker *w, void *ctx)
{
    struct list jobs;
    bool ends = false;

    list_init(&jobs);
    for (;;) {
        struct store_job *job;

        if (!store_queue_take(w, &limits, &jobs, &ends)) {
            if (ends)
                return;
            worker_wait(w, NSEC_NEVER);
            continue;
        }
        while ((job = list_first(&jobs, struct store_job, link))) {
            list_remove(&job->link);
            store_job_free(job);
            atomic_fetch_add(&n_done, 1);
        }
    }
}

/* The thread is woken by jobs, and does all of them before it ends. */
static void test_thread(void **state)
{
    struct worker *w = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(store_queue_start(&w, work, NULL, &e), 0);
    add(w, "a");
    for (unsigned i = 0; i < 10000 && atomic_load(&n_done) == 0; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(atomic_load(&n_done), 1);
    for (unsigned i = 0; i < 1000; i++)
        add(w, i % 3 == 0 ? "?" : "a b");
    assert_null(worker_stop(w));
    assert_int_equal(atomic_load(&n_done), 1001);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
