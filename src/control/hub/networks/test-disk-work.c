/* test-disk-work.c - what is done on another thread ends on the loop, also without the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hub/networks/disk_work.h"
#include "hub/networks/networks.h"
#include "os/clock.h"
#include "test/support/sample_hub.h"

struct fixture {
    uv_loop_t loop;
    struct disk_works works;
    uv_sem_t go; /* the thread waits for it */
    unsigned n_run;
    unsigned n_done;
    unsigned n_more; /* that a done begins */
};

static int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){.n_run = 0};
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(uv_sem_init(&f.go, 0), 0);
    assert_int_equal(disk_works_init(&f.works, &f.loop), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    disk_works_deinit(&f->works);
    uv_sem_destroy(&f->go);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    return 0;
}

static void run(void *arg)
{
    struct fixture *f = arg;

    uv_sem_wait(&f->go);
    f->n_run++;
}

static void done(void *arg)
{
    struct fixture *f = arg;

    assert_int_equal(f->n_run, ++f->n_done);
    if (f->n_more == 0)
        return;
    f->n_more--;
    uv_sem_post(&f->go);
    assert_int_equal(disk_work(&f->works, run, done, f), 0);
}

static void test_on_the_loop(void **state)
{
    struct fixture *f = *state;

    f->n_more = 1;
    assert_int_equal(disk_work(&f->works, run, done, f), 0);
    assert_int_equal(f->n_done, 0);
    uv_sem_post(&f->go);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(f->n_done, 2);
    disk_works_wait(&f->works);
    assert_int_equal(f->n_done, 2);
}

static void release(void *arg)
{
    struct fixture *f = arg;

    uv_sem_post(&f->go);
}

/* Who waits gets the end of each, once; the loop has nothing more to say of it. */
static void test_without_the_loop(void **state)
{
    struct fixture *f = *state;
    uv_thread_t other;

    f->n_more = 2;
    assert_int_equal(disk_work(&f->works, run, done, f), 0);
    assert_int_equal(uv_thread_create(&other, release, f), 0);
    disk_works_wait(&f->works);
    assert_int_equal(f->n_done, 3);
    assert_int_equal(uv_thread_join(&other), 0);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(f->n_done, 3);
}

static void on_added(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    assert_int_equal(r, 0);
    *(unsigned *)ctx += 1;
}

/* A network that somebody is just adding is there before the hub has ended, and he hears of it. */
static void test_a_hub_ends(void **state)
{
    struct network wanted = {
        .meta.name = "late", .mtu = NETWORK_MTU_DEFAULT, .keepalive = NETWORK_KEEPALIVE_AUTO};
    struct sample_hub s = {.now = clock_now()};
    unsigned n_added = 0;
    struct err e;

    sample_hub_make_dir(&s, true);
    sample_hub_open(&s);
    assert_int_equal(networks_add(&s.hub->networks, &wanted, on_added, &n_added, &e), 0);
    assert_int_equal(n_added, 0);
    sample_hub_close(&s);
    assert_int_equal(n_added, 1);
    sample_hub_open(&s);
    assert_non_null(model_find_network(&s.hub->model, "late"));
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_on_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_the_loop, set_up, tear_down),
        cmocka_unit_test(test_a_hub_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
