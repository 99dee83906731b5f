/* test-worker.c - the order of jobs, their bound, and what becomes of them at the end. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <cmocka.h>

#include "os/clock.h"
#include "os/worker.h"

#define JOBS 5

struct job {
    struct list link;
    unsigned number;    /* when it was done, from 1 */
    unsigned n_dropped; /* times */
    pthread_t thread;   /* that did it */
};

/* Plain on purpose where only one side has it at a time: a race would be seen by TSan. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;     /* jobs may go on */
    unsigned n_begun; /* jobs that were begun */
    unsigned n_woken; /* times that the loop has come back from waiting */
    bool is_released;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct job jobs[JOBS];
static unsigned n_done;

static struct job *job_of(struct list *link)
{
    return container_of(link, struct job, link);
}

static void set_gate(bool is_open)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.is_open = is_open;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void count(unsigned *counter)
{
    (void)pthread_mutex_lock(&gate.lock);
    ++*counter;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void wait_counter(const unsigned *counter, unsigned n)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (*counter < n)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void do_job(struct list *link)
{
    count(&gate.n_begun);
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.is_open)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    job_of(link)->number = ++n_done;
    job_of(link)->thread = pthread_self();
}

static void drop_job(struct list *link)
{
    job_of(link)->n_dropped++;
}

static void release(void *ctx)
{
    assert_ptr_equal(ctx, jobs);
    (void)pthread_mutex_lock(&gate.lock);
    gate.is_released = true;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static const struct worker_config plain = {.name = "worker",
    .max = JOBS - 1,
    .job = do_job,
    .drop = drop_job,
    .release = release,
    .ctx = jobs};

static struct worker *start(const struct worker_config *config, bool is_open)
{
    struct worker *w = NULL;

    for (unsigned i = 0; i < JOBS; i++)
        jobs[i] = (struct job){.number = 0};
    n_done = 0;
    gate.n_begun = gate.n_woken = 0;
    gate.is_released = false;
    set_gate(is_open);
    assert_int_equal(worker_start(&w, config), 0);
    return w;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static struct job *collect(struct worker *w)
{
    assert_true(worker_wait_done(w, NSEC_NEVER));
    return job_of(worker_collect(w));
}

static void test_order(void **state)
{
    struct worker *w = start(&plain, false);

    assert_null(worker_collect(w));
    assert_false(worker_wait_done(w, clock_now() + NSEC_PER_MSEC));
    assert_false(is_readable(worker_done_fd(w)));
    assert_true(worker_put(w, &jobs[0].link));
    wait_counter(&gate.n_begun, 1);
    /* As many wait as may, beside the one that is under way. */
    for (unsigned i = 1; i < JOBS; i++)
        assert_true(worker_put(w, &jobs[i].link));
    assert_null(worker_collect(w));
    set_gate(true);
    for (unsigned i = 0; i < JOBS; i++) {
        assert_ptr_equal(collect(w), &jobs[i]);
        assert_int_equal(jobs[i].number, i + 1);
        assert_false(pthread_equal(jobs[i].thread, pthread_self()));
    }
    assert_false(is_readable(worker_done_fd(w)));
    /* A job may be put in again by whoever has it. */
    assert_true(worker_put(w, &jobs[2].link));
    assert_ptr_equal(collect(w), &jobs[2]);
    assert_null(worker_stop(w));
    assert_true(gate.is_released);
    for (unsigned i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].n_dropped, 0);
}

static void test_bound(void **state)
{
    struct worker_config config = plain;
    struct worker *w;

    config.max = 2;
    w = start(&config, false);
    assert_true(worker_put(w, &jobs[0].link));
    wait_counter(&gate.n_begun, 1);
    assert_true(worker_put(w, &jobs[1].link));
    assert_true(worker_put(w, &jobs[2].link));
    assert_false(worker_put(w, &jobs[3].link));
    set_gate(true);
    assert_ptr_equal(collect(w), &jobs[0]);
    assert_ptr_equal(collect(w), &jobs[1]);
    assert_true(worker_put(w, &jobs[3].link));
    assert_ptr_equal(collect(w), &jobs[2]);
    assert_ptr_equal(collect(w), &jobs[3]);
    assert_null(worker_stop(w));
}

static void *open_gate(void *worker)
{
    while (!worker_is_ending(worker))
        (void)sched_yield();
    set_gate(true);
    return NULL;
}

/* One was collected, one waits for that, one is under way, and two were not begun. */
static void put_all(struct worker *w)
{
    for (unsigned i = 0; i < JOBS; i++) {
        assert_true(worker_put(w, &jobs[i].link));
        if (i == 1) {
            assert_ptr_equal(collect(w), &jobs[0]);
            wait_counter(&gate.n_begun, 2);
            while (!is_readable(worker_done_fd(w)))
                (void)sched_yield();
            set_gate(false);
        }
        if (i == 2)
            wait_counter(&gate.n_begun, 3);
    }
}

static void assert_dropped(void)
{
    assert_int_equal(n_done, 3);
    assert_int_equal(jobs[0].n_dropped, 0);
    for (unsigned i = 1; i < JOBS; i++) {
        assert_int_equal(jobs[i].n_dropped, 1);
        assert_int_equal(jobs[i].number, i < 3 ? i + 1 : 0);
    }
}

/* It waits for what is under way, which cannot end before somebody sees that it is to end. */
static void test_stop(void **state)
{
    struct worker *w = start(&plain, true);
    pthread_t opener;

    put_all(w);
    assert_int_equal(pthread_create(&opener, NULL, open_gate, w), 0);
    /* The opener looks at the worker until then; the gate is what the worker waits for. */
    assert_null(worker_stop(w));
    (void)pthread_join(opener, NULL);
    assert_true(gate.is_released);
    assert_dropped();
    assert_null(worker_stop(NULL));
}

static void test_leave(void **state)
{
    struct worker *w = start(&plain, true);

    put_all(w);
    /* It returns though the job under way cannot end. */
    assert_null(worker_leave(w));
    (void)pthread_mutex_lock(&gate.lock);
    assert_false(gate.is_released);
    gate.is_open = true;
    (void)pthread_cond_broadcast(&gate.changed);
    while (!gate.is_released)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    assert_dropped();
    assert_null(worker_leave(NULL));
}

/* ---- a loop of its own ----------------------------------------------------------------------- */

static void loop(struct worker *w, void *ctx)
{
    assert_ptr_equal(ctx, jobs);
    while (!worker_is_ending(w)) {
        worker_wait(w, NSEC_NEVER);
        count(&gate.n_woken);
    }
    /* It does all that there is, the second one first. */
    for (struct list *job; (job = worker_take(w));) {
        assert_ptr_equal(worker_peek(w), job == &jobs[0].link ? &jobs[1].link : NULL);
        assert_true(is_readable(worker_fd(w)));
        job_of(job)->number = ++n_done;
        worker_finish(w, job);
    }
    worker_wait(w, NSEC_NEVER);
    worker_wait(w, clock_now() + NSEC_PER_SEC);
}

/* It is woken with and without jobs, and after the end its waiting is over at once. */
static void test_loop(void **state)
{
    struct worker_config config = plain;
    struct worker *w;

    config.job = NULL;
    config.loop = loop;
    config.drop = NULL;
    w = start(&config, true);
    worker_wake(w);
    wait_counter(&gate.n_woken, 1);
    worker_wake(w);
    wait_counter(&gate.n_woken, 2);
    assert_true(worker_put(w, &jobs[0].link));
    assert_true(worker_put(w, &jobs[1].link));
    wait_counter(&gate.n_woken, 3);
    assert_null(worker_stop(w));
    assert_int_equal(jobs[0].number, 1);
    assert_int_equal(jobs[1].number, 2);
    assert_true(gate.is_released);
}

static bool in_time;

static void wait_in_vain(struct worker *w, void *ctx)
{
    nsec_t until;

    /* It was woken once, and so waits once for nothing. */
    worker_wait(w, NSEC_NEVER);
    until = clock_now() + 5 * NSEC_PER_MSEC;
    worker_wait(w, until);
    in_time = clock_now() >= until;
    worker_wait(w, 0);
    count(&gate.n_woken);
    while (!worker_is_ending(w))
        worker_wait(w, NSEC_NEVER);
}

static void test_deadline(void **state)
{
    struct worker_config config = plain;
    struct worker *w;

    config.job = NULL;
    config.loop = wait_in_vain;
    w = start(&config, true);
    worker_wake(w);
    wait_counter(&gate.n_woken, 1);
    assert_true(in_time);
    assert_null(worker_stop(w));
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int n_prepared;

static int prepare(struct worker *w, void *ctx)
{
    assert_ptr_equal(ctx, jobs);
    assert_true(worker_fd(w) >= 0 && !is_readable(worker_fd(w)));
    assert_int_equal(gate.n_woken, 0);
    return n_prepared++ == 0 ? -EMFILE : 0;
}

static void wait_for_end(struct worker *w, void *ctx)
{
    assert_int_equal(n_prepared, 2);
    count(&gate.n_woken);
    while (!worker_is_ending(w))
        worker_wait(w, NSEC_NEVER);
}

/* What the loop needs is there before it begins; where that cannot be had, it does not. */
static void test_prepare(void **state)
{
    struct worker_config config = plain;
    struct worker *w = (struct worker *)jobs;

    config.job = NULL;
    config.loop = wait_for_end;
    config.prepare = prepare;
    gate.n_woken = 0;
    gate.is_released = false;
    assert_int_equal(worker_start(&w, &config), -EMFILE);
    assert_null(w);
    assert_false(gate.is_released);
    w = start(&config, true);
    wait_counter(&gate.n_woken, 1);
    assert_int_equal(n_prepared, 2);
    assert_null(worker_stop(w));
}

/* ---- signals --------------------------------------------------------------------------------- */

static void on_alarm(int signum)
{
}

static void set_alarms(bool is_on)
{
    const struct timeval each = {.tv_usec = is_on ? 1000 : 0};

    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){each, each}, NULL), 0);
}

/* The owner waits until its deadline although signals come meanwhile. */
static void test_signals(void **state)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct worker *w = start(&plain, false);
    nsec_t until;

    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_true(worker_put(w, &jobs[0].link));
    set_alarms(true);
    until = clock_now() + 20 * NSEC_PER_MSEC;
    assert_false(worker_wait_done(w, until));
    assert_true(clock_now() >= until);
    set_alarms(false);
    set_gate(true);
    assert_ptr_equal(collect(w), &jobs[0]);
    assert_null(worker_stop(w));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
