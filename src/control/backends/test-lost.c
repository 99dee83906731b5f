/*
 * test-lost.c - a store elsewhere that loses requests and answers (test/support/sample_late.h):
 * what its watches tell is what is kept, so a writer that goes by them counts right.
 *
 * What every store promises is in test-store.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "test/support/sample_late.h"
#include "test/support/store_fixture.h"

/* What a writer of one key knows, and what has been seen of it. */
struct lossy {
    struct store_fixture *f;
    int r;             /* of the last commit */
    uint64_t revision; /* the last that a watch told of the key */
    uint64_t answered; /* the last that a commit was answered with */
    char reported[16]; /* the value that the watch told last */
};

static void lossy_change(void *ctx, const struct store_item *item)
{
    struct lossy *l = ctx;

    assert_true(item->revision > l->revision);
    l->revision = item->revision;
    (void)snprintf(l->reported, sizeof(l->reported), "%s", item->value);
}

static void lossy_done(void *ctx, const struct store_answer *a)
{
    struct lossy *l = ctx;

    l->r = a->r;
    if (a->r != 0) {
        assert_true(a->r == STORE_E_CONFLICT || a->r == STORE_E_UNKNOWN || a->r == -EIO);
        return;
    }
    l->answered = a->revision;
    /* It was told first. */
    assert_int_equal(l->revision, a->revision);
}

static int is_last(void *ctx, const struct store_item *item)
{
    const struct lossy *l = ctx;

    assert_int_equal(item->revision, l->revision);
    assert_string_equal(item->value, l->reported);
    return 0;
}

/* Compare-and-put with what the watch said counts right, whatever is lost. */
static void test_lost_answers(void **state)
{
    struct store_fixture *f = *state;
    struct lossy l = {.f = f};
    struct store_watch *w = NULL;
    unsigned n[3] = {0};

    sample_late_set_loss(f->s, 3);
    assert_int_equal(store_watch(f->s, "k", 1, lossy_change, &l, &w, &f->e), 0);
    for (unsigned i = 0; i < 2000; i++) {
        char value[16];
        struct store_op op = {
            .kind = STORE_OP_PUT, .key = "k", .value = value, .expect = l.revision};

        (void)snprintf(value, sizeof(value), "%u", i);
        assert_int_equal(store_commit(f->s, &op, 1, 0, lossy_done, &l, &f->e), 0);
        store_wait(f->s);
        /* What was told is what is kept: this one if it was done, else the one before it. */
        if (l.r == 0 || l.r == -EIO)
            assert_int_equal(strcmp(l.reported, value) == 0, l.r == 0);
        n[l.r == 0 ? 0 : l.r == STORE_E_UNKNOWN ? 1 : 2]++;
    }
    sample_late_set_loss(f->s, 0);
    l.r = store_now_get(f->s, "k", is_last, &l, &f->e);
    assert_int_equal(l.r, 0);
    assert_true(n[0] > 1000 && n[1] > 200 && n[2] > 100);
    store_watch_close(w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost_answers, store_fixture_late, store_fixture_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
