/* test-rdzv-save.c - what goes to the store together, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/model.h"
#include "rendezvous/rdzv_record.h"
#include "hub/rdzv_save.h"
#include "store/store.h"
#include "sys/clock.h"

#define CHUNKS 5

/* More than go into one commit. */
#define MANY 600

struct fixture {
    uv_loop_t loop;
    struct store *store;
    struct model model;
    struct rdzv_save save;
    struct err e;
};

static int set_up(void **state)
{
    static const struct model_listener nobody;
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(store_open(&f.store, "memory:", clock_now(), &f.e), 0);
    model_init(&f.model, f.store, &nobody, 1);
    rdzv_save_init(&f.save, &f.model, 1);
    rdzv_save_start(&f.save, &f.loop);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    rdzv_save_stop(&f->save);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    rdzv_save_deinit(&f->save);
    model_deinit(&f->model);
    store_free(f->store);
    return 0;
}

static int take_revision(void *ctx, const struct store_item *item)
{
    *(uint64_t *)ctx = item->revision;
    return 0;
}

/* Of the commit that wrote it; 0: it is not there. */
static uint64_t revision_of(struct fixture *f, const char *key)
{
    uint64_t revision = 0;

    (void)store_get(f->store, key, take_revision, &revision, &f->e);
    return revision;
}

static void put_many(struct fixture *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char key[RDZV_KEY_MAX];
        char name[16];

        (void)snprintf(name, sizeof(name), "%u", i);
        (void)rdzv_key_of_blob(key, RDZV_KEY_ENTRY, "net", "job", name, strlen(name));
        assert_int_equal(rdzv_save_blob(&f->save, key, "x", 1, 0), 0);
    }
}

static void check_is_whole(struct fixture *f, const char *key)
{
    uint64_t first = revision_of(f, key);
    char chunk[RDZV_KEY_MAX];

    assert_int_not_equal(first, 0);
    for (unsigned i = 1; i < CHUNKS; i++)
        assert_int_equal(revision_of(f, rdzv_key_of_chunk(chunk, key, i)), first);
}

/* Wherever a commit would end by the number of changes, a blob is not cut. */
static void test_blobs_stay_whole(void **state)
{
    static const uint8_t bytes[CHUNKS * RDZV_CHUNK];
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];

    (void)rdzv_key_of_blob(key, RDZV_KEY_ENTRY, "net", "job", "long", 4);
    for (unsigned n = 500; n < 520; n++) {
        put_many(f, n);
        assert_int_equal(rdzv_save_blob(&f->save, key, bytes, sizeof(bytes), 0), 0);
        assert_int_equal(rdzv_save_now(&f->save, &f->e), 0);
        check_is_whole(f, key);
    }
    /* Also when a part of it waited already: what has changed anew goes with what it belongs to. */
    assert_int_equal(rdzv_save_blob(&f->save, key, bytes, 2 * RDZV_CHUNK, sizeof(bytes)), 0);
    put_many(f, MANY);
    assert_int_equal(rdzv_save_blob(&f->save, key, bytes, sizeof(bytes), 2 * RDZV_CHUNK), 0);
    assert_int_equal(rdzv_save_now(&f->save, &f->e), 0);
    check_is_whole(f, key);
}

/* A job's record goes when all that was in the job has gone, though it was changed before. */
static void test_last_change_goes_last(void **state)
{
    struct fixture *f = *state;
    char key[RDZV_KEY_MAX];

    (void)rdzv_key_of_job(key, "net", "job");
    assert_int_equal(rdzv_save_put(&f->save, key, strdup("1")), 0);
    put_many(f, MANY);
    assert_int_equal(rdzv_save_put(&f->save, key, strdup("2")), 0);
    assert_int_equal(rdzv_save_now(&f->save, &f->e), 0);
    assert_true(f->save.n_commits > 1);
    assert_int_equal(revision_of(f, key), store_revision(f->store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blobs_stay_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_last_change_goes_last, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
