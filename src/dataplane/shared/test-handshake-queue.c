/* test-handshake-queue.c - room for messages, proven or not, and when the port is under load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "shared/handshake_queue.h"

struct fixture {
    struct handshake_queue q;
    struct handshake_slots slots[2]; /* of two workers */
};

#define SLOTS        HANDSHAKES_PER_WORKER
#define UNPROVEN_MAX (SLOTS / 2)

static const struct udp_path path = {.ifindex = 7};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    assert_int_equal(handshake_queue_init(&f.q, 2, SLOTS), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(handshake_slots_init(&f.slots[i], &f.q), 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2; i++)
        free(f->slots[i].msgs);
    mpsc_deinit(&f->q.ring);
    return 0;
}

static bool push(struct fixture *f, unsigned worker, bool is_proven)
{
    static const uint8_t msg[] = "a handshake message";

    return handshake_queue_push(
        &f->q, &f->slots[worker], &(struct handshake_to){0}, is_proven, &path, msg, sizeof(msg));
}

static unsigned push_many(struct fixture *f, unsigned worker, bool is_proven)
{
    unsigned n = 0;

    while (push(f, worker, is_proven))
        n++;
    return n;
}

static void take(struct fixture *f)
{
    struct handshake_msg *m = mpsc_pop(&f->q.ring);

    assert_non_null(m);
    handshake_queue_done(&f->q, m);
}

static void test_what_was_pushed_is_popped(void **state)
{
    struct fixture *f = *state;
    struct handshake_msg *m;

    assert_null(mpsc_pop(&f->q.ring));
    assert_true(push(f, 1, true));
    m = mpsc_pop(&f->q.ring);
    assert_non_null(m);
    assert_true(m->is_proven && m->path.ifindex == 7);
    assert_string_equal((const char *)m->msg, "a handshake message");
    assert_int_equal(m->len, sizeof("a handshake message"));
    handshake_queue_done(&f->q, m);
    assert_null(mpsc_pop(&f->q.ring));
}

static void test_half_is_kept_for_those_with_a_proof(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(push_many(f, 0, false), UNPROVEN_MAX);
    assert_false(push(f, 1, false));
    assert_true(push(f, 1, true));
    assert_int_equal(push_many(f, 0, true), SLOTS - UNPROVEN_MAX);
}

static void test_every_worker_has_its_slots(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(push_many(f, 0, true), SLOTS);
    assert_int_equal(push_many(f, 1, true), SLOTS);
}

static void test_a_slot_is_used_again_when_it_is_done(void **state)
{
    struct fixture *f = *state;

    (void)push_many(f, 0, true);
    take(f);
    assert_true(push(f, 0, true));
    assert_false(push(f, 0, true));
    for (unsigned i = 0; i < SLOTS; i++)
        take(f);
    assert_null(mpsc_pop(&f->q.ring));
    assert_int_equal(push_many(f, 0, false), UNPROVEN_MAX);
}

static void test_load_is_remembered_for_a_second(void **state)
{
    const nsec_t now = 5 * NSEC_PER_SEC;
    struct fixture *f = *state;

    for (unsigned i = 0; i < SLOTS / 8 - 1; i++)
        assert_true(push(f, 0, false));
    assert_false(handshake_queue_note_load(&f->q, now));
    assert_true(push(f, 0, false));
    assert_false(handshake_queue_is_loaded(&f->q, now));
    assert_true(handshake_queue_note_load(&f->q, now));
    take(f);
    assert_true(handshake_queue_note_load(&f->q, now + NSEC_PER_SEC - 1));
    assert_false(handshake_queue_note_load(&f->q, now + NSEC_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_pushed_is_popped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half_is_kept_for_those_with_a_proof, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_worker_has_its_slots, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_slot_is_used_again_when_it_is_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_load_is_remembered_for_a_second, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
