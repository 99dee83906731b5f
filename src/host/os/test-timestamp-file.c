/* test-timestamp-file.c - runs that follow each other, some are killed, by clocks that jump. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "os/file.h"
#include "os/log.h"
#include "os/timestamp_file.h"

#define NOW  ((nsec_t)1790000000 * NSEC_PER_SEC)
#define HOUR (3600 * NSEC_PER_SEC)
#define MIN  (60 * NSEC_PER_SEC)

struct world {
    char dir[64];
    char path[PATH_MAX];
    struct timestamp_file f; /* of the run */
    struct tai64n last;      /* sent in this run */
    nsec_t top;              /* greatest that was ever sent */
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/weft-test-timestamp.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof(w->path), "%s/timestamp", w->dir);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    (void)chmod(w->dir, 0700);
    (void)unlink(w->path);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

static void begin(struct world *w, nsec_t wall)
{
    w->last = (struct tai64n){{0}};
    timestamp_file_open(&w->f, w->path, wall, 0);
}

/* As a port does: an initiation at @wall. A peer takes it only if it is newer than all before. */
static void send(struct world *w, nsec_t wall)
{
    struct tai64n t = tai64n_next(&w->last, tai64n_bound(&w->f.bounds, wall));

    assert_true(tai64n_wall(&t) > w->top);
    w->top = tai64n_wall(&t);
}

static nsec_t on_disk(const struct world *w)
{
    nsec_t t;

    assert_int_equal(timestamp_file_read(&t, w->path, NULL), 0);
    return t;
}

static bool keep(struct world *w, nsec_t wall)
{
    return timestamp_file_keep(&w->f, tai64n_wall(&w->last), wall, 0);
}

/* It ran two hours ahead, was killed or ended, and the clock is right again. */
static void test_set_back(void **state)
{
    for (int killed = 0; killed < 2; killed++) {
        struct world *w = *state;

        begin(w, NOW + killed * HOUR + 2 * HOUR);
        for (int i = 0; i < 20; i++)
            send(w, NOW + killed * HOUR + 2 * HOUR + i * MIN / 60);
        if (!killed)
            timestamp_file_end(&w->f, tai64n_wall(&w->last), 0);
        begin(w, NOW);
        assert_true(w->f.bounds.above >= w->top);
        for (int i = 0; i < 200; i++)
            send(w, NOW + i * NSEC_PER_SEC);
    }
}

/* At no moment has anything been sent that is later than what the disk says. */
static void test_is_on_disk_before(void **state)
{
    struct world *w = *state;
    nsec_t wall = NOW;
    unsigned n_writes = 0;

    begin(w, wall);
    for (int i = 0; i < 600; i++) {
        /* After five hours the clock jumps half a day ahead, and later back. */
        wall += (i == 300 ? 12 * HOUR : 0) - (i == 400 ? 12 * HOUR : 0) + MIN;
        send(w, wall);
        assert_true(w->top <= on_disk(w));
        n_writes += keep(w, wall);
    }
    assert_true(n_writes > 10 && n_writes < 600 / 3);
}

/* An end in order leaves what was sent: the next run is not dated ahead of the clock. */
static void test_end(void **state)
{
    struct world *w = *state;

    begin(w, NOW);
    send(w, NOW);
    timestamp_file_end(&w->f, tai64n_wall(&w->last), 0);
    assert_true(on_disk(w) >= w->top && on_disk(w) < w->top + 2 * NSEC_PER_SEC);
    begin(w, NOW + 5 * NSEC_PER_SEC);
    send(w, NOW + 5 * NSEC_PER_SEC);
    assert_true(w->top <= NOW + 5 * NSEC_PER_SEC);
    /* One that sends nothing leaves what it found. */
    timestamp_file_end(&w->f, w->top, 0);
    begin(w, NOW + HOUR);
    timestamp_file_end(&w->f, 0, 0);
    assert_true(on_disk(w) < NOW + 10 * NSEC_PER_SEC);
    /* And none is made again when somebody has removed it. */
    begin(w, NOW + HOUR);
    assert_int_equal(unlink(w->path), 0);
    timestamp_file_end(&w->f, 0, 0);
    assert_int_equal(access(w->path, F_OK), -1);
}

/* Runs that are killed again and again do not run away from the clock. */
static void test_killed_often(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 100; i++) {
        begin(w, NOW + i * MIN);
        send(w, NOW + i * MIN);
    }
    assert_true(w->top < NOW + 100 * MIN + 2 * TIMESTAMP_FILE_AHEAD);
}

static void test_far_ahead(void **state)
{
    const nsec_t years = (nsec_t)200 * 365 * 86400 * NSEC_PER_SEC;
    struct world *w = *state;

    begin(w, years);
    send(w, years);
    for (int i = 0; i < 10; i++) {
        begin(w, NOW);
        for (int k = 0; k < 10; k++)
            send(w, NOW + k * MIN);
    }
}

static void write_text(const struct world *w, const char *text)
{
    assert_int_equal(statefile_replace(w->path, text, strlen(text), 0600, NULL), 0);
}

static void test_damaged(void **state)
{
    static const char *const damaged[] = {"", "\n", "x", "-5", "1.5", "1790000000 1",
        "99999999999999999999", "9223372036",
        "1790000000179000000017900000001790000000179000000017900000001790000000"};
    struct world *w = *state;
    nsec_t t = 7;

    for (unsigned i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        struct err e = ERR_NULL;

        write_text(w, damaged[i]);
        assert_true(timestamp_file_read(&t, w->path, &e) < 0);
        assert_non_null(strstr(err_text(&e), "timestamp"));
        assert_true(t == 7);
        /* It is replaced, and the clock is followed. */
        begin(w, NOW);
        assert_true(w->f.bounds.above == 0 && on_disk(w) >= NOW);
    }
    write_text(w, "1790000000");
    assert_int_equal(timestamp_file_read(&t, w->path, NULL), 0);
    assert_true(t == NOW);
    (void)unlink(w->path);
    assert_int_equal(timestamp_file_read(&t, w->path, NULL), STATEFILE_E_ABSENT);
}

/* Where nothing can be written what is there goes on to hold. */
static void test_unwritable(void **state)
{
    struct world *w = *state;

    begin(w, NOW);
    send(w, NOW);
    (void)snprintf(w->f.path, sizeof(w->f.path), "%s/absent/timestamp", w->dir);
    for (int i = 0; i < 100; i++) {
        send(w, NOW + i * MIN);
        assert_false(keep(w, NOW + i * MIN) && w->f.kept > on_disk(w));
        assert_true(w->top <= on_disk(w));
    }
    /* And without any file the clock is followed. */
    timestamp_file_open(&w->f, NULL, NOW, 0);
    assert_false(timestamp_file_keep(&w->f, NOW, NOW, 0));
    assert_true(w->f.bounds.above == 0 && w->f.bounds.upto == NSEC_NEVER);
    timestamp_file_end(&w->f, NOW, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_is_on_disk_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_often, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_far_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
