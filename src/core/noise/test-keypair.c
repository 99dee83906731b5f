/* test-keypair.c - slots and their rotation, limits of age and number, and threads at once. */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "noise/keypair.h"
#include "wire/wg.h"

static struct keypair *make(bool is_initiator)
{
    struct keypair *kp;

    assert_int_equal(keypair_new(&kp), 0);
    kp->alg = aead_reference(AEAD_CIPHER_CHACHA20POLY1305);
    kp->seal_key.b[0] = 1;
    kp->open_key.b[0] = 1;
    kp->is_initiator = is_initiator;
    return kp;
}

/* Adds @kp; checks that exactly @out was displaced (NULL-padded) and lets it go. */
static void add(struct keypairs *ks, struct keypair *kp, struct keypair *out0, struct keypair *out1)
{
    struct keypairs_evicted list;

    keypairs_add(ks, kp, &list);
    assert_ptr_equal(list.kp[0], out0);
    assert_ptr_equal(list.kp[1], out1);
    assert_null(list.kp[2]);
    keypair_unref(out0);
    keypair_unref(out1);
}

static void assert_slots(const struct keypairs *ks, const struct keypair *current,
    const struct keypair *previous, const struct keypair *next)
{
    assert_ptr_equal(ks->current, current);
    assert_ptr_equal(ks->previous, previous);
    assert_ptr_equal(ks->next, next);
}

static void clear(struct keypairs *ks)
{
    struct keypairs_evicted list;

    keypairs_clear(ks, &list);
    for (size_t i = 0; i < 3; i++)
        keypair_unref(list.kp[i]);
    assert_slots(ks, NULL, NULL, NULL);
    keypairs_deinit(ks);
}

static void test_initiator(void **state)
{
    struct keypair *a = make(true);
    struct keypair *b = make(true);
    struct keypair *c = make(true);
    struct keypairs ks;
    bool renews;

    keypairs_init(&ks);
    assert_null(keypairs_acquire_current(&ks));
    add(&ks, a, NULL, NULL);
    assert_slots(&ks, a, NULL, NULL);
    assert_false(keypairs_confirm(&ks, a, &renews));
    add(&ks, b, NULL, NULL);
    assert_slots(&ks, b, a, NULL);
    add(&ks, c, a, NULL);
    assert_slots(&ks, c, b, NULL);
    clear(&ks);
}

static void test_responder(void **state)
{
    struct keypair *a = make(false);
    struct keypair *b = make(false);
    struct keypair *c = make(false);
    struct keypairs ks;
    bool renews;

    keypairs_init(&ks);
    add(&ks, a, NULL, NULL);
    assert_slots(&ks, NULL, NULL, a);
    /* Not to be sent with before the initiator spoke. */
    assert_null(keypairs_acquire_current(&ks));
    assert_true(keypairs_confirm(&ks, a, &renews));
    assert_false(renews);
    assert_false(keypairs_confirm(&ks, a, &renews));
    assert_slots(&ks, a, NULL, NULL);
    add(&ks, b, NULL, NULL);
    assert_slots(&ks, a, NULL, b);
    /* Another one before the first was used. */
    add(&ks, c, b, NULL);
    assert_slots(&ks, a, NULL, c);
    assert_true(keypairs_confirm(&ks, c, &renews));
    assert_true(renews);
    assert_slots(&ks, c, a, NULL);
    /* A next takes the previous one's place in receiving. */
    add(&ks, make(false), a, NULL);
    assert_null(ks.previous);
    clear(&ks);
}

/* Both began at once: the unconfirmed next is kept for receiving. */
static void test_crossed(void **state)
{
    struct keypair *a = make(true);
    struct keypair *b = make(false);
    struct keypair *c = make(true);
    struct keypairs ks;
    bool renews;

    keypairs_init(&ks);
    add(&ks, a, NULL, NULL);
    add(&ks, b, NULL, NULL);
    assert_slots(&ks, a, NULL, b);
    add(&ks, c, a, NULL);
    assert_slots(&ks, c, b, NULL);
    assert_false(keypairs_confirm(&ks, b, &renews));
    clear(&ks);
}

/* A reference outlives the slot. */
static void test_reference(void **state)
{
    struct keypair *a = make(true);
    struct keypair *held;
    struct keypairs ks;

    keypairs_init(&ks);
    add(&ks, a, NULL, NULL);
    held = keypairs_acquire_current(&ks);
    assert_ptr_equal(held, a);
    clear(&ks);
    assert_int_equal(held->seal_key.b[0], 1);
    assert_null(keypair_unref(held));
    assert_null(keypair_unref(NULL));
}

static void test_limits(void **state)
{
    const nsec_t s = NSEC_PER_SEC;
    struct keypair *i = make(true);
    struct keypair *r = make(false);
    uint64_t first;

    /* 6.1, 6.2: age, where only the initiator renews. */
    assert_true(keypair_can_send(i, 180 * s - 1));
    assert_false(keypair_can_send(i, 180 * s));
    assert_true(keypair_can_receive(r, 180 * s - 1));
    assert_false(keypair_can_receive(r, 180 * s));
    assert_false(keypair_wants_rekey_after_send(i, 120 * s - 1));
    assert_true(keypair_wants_rekey_after_send(i, 120 * s));
    assert_false(keypair_wants_rekey_after_send(r, 179 * s));
    assert_false(keypair_wants_rekey_after_receive(i, 165 * s - 1));
    assert_true(keypair_wants_rekey_after_receive(i, 165 * s));
    assert_false(keypair_wants_rekey_after_receive(r, 179 * s));

    /* Each keypair's age counts from its own birth. */
    i->birth = r->birth = 1000 * s;
    assert_true(keypair_can_send(i, 1180 * s - 1));
    assert_false(keypair_can_send(i, 1180 * s));
    assert_true(keypair_can_receive(r, 1180 * s - 1));
    assert_false(keypair_can_receive(r, 1180 * s));
    assert_false(keypair_wants_rekey_after_send(i, 1120 * s - 1));
    assert_true(keypair_wants_rekey_after_send(i, 1120 * s));
    assert_false(keypair_wants_rekey_after_receive(i, 1165 * s - 1));
    assert_true(keypair_wants_rekey_after_receive(i, 1165 * s));
    i->birth = r->birth = 0;

    /* 6.1: numbers, for both. */
    assert_true(keypair_take_counters(r, 10, &first));
    assert_int_equal(first, 0);
    assert_true(keypair_take_counters(r, 1, &first));
    assert_int_equal(first, 10);
    atomic_store(&r->send_counter, WG_REKEY_AFTER_MESSAGES);
    assert_false(keypair_wants_rekey_after_send(r, 0));
    atomic_store(&r->send_counter, WG_REKEY_AFTER_MESSAGES + 1);
    assert_true(keypair_wants_rekey_after_send(r, 0));
    atomic_store(&r->send_counter, WG_REJECT_AFTER_MESSAGES - 3);
    assert_false(keypair_take_counters(r, 4, &first));
    assert_true(keypair_can_send(r, 0));
    assert_true(keypair_take_counters(r, 3, &first));
    assert_true(first + 2 == WG_REJECT_AFTER_MESSAGES - 1);
    assert_false(keypair_take_counters(r, 1, &first));
    assert_false(keypair_can_send(r, 0));
    keypair_unref(i);
    keypair_unref(r);
}

/* AES-GCM's limits are lower, and hold on both sides. */
static void test_aes_limits(void **state)
{
    uint8_t msg[32 + WG_DATA_OVERHEAD] = {0};
    struct aead_lane *lane;
    struct keypair *kp;
    uint64_t first;

    assert_int_equal(keypair_new(&kp), 0);
    kp->alg = aead_reference(AEAD_CIPHER_AES256GCM);
    assert_int_equal(aead_lane_new(&lane), 0);
    atomic_store(&kp->send_counter, KEYPAIR_AES_REKEY_AFTER_MESSAGES);
    assert_false(keypair_wants_rekey_after_send(kp, 0));
    atomic_store(&kp->send_counter, KEYPAIR_AES_REKEY_AFTER_MESSAGES + 1);
    assert_true(keypair_wants_rekey_after_send(kp, 0));
    atomic_store(&kp->send_counter, KEYPAIR_AES_REJECT_AFTER_MESSAGES - 2);
    assert_false(keypair_take_counters(kp, 3, &first));
    assert_true(keypair_take_counters(kp, 2, &first));
    assert_false(keypair_take_counters(kp, 1, &first));
    assert_false(keypair_can_send(kp, 0));
    /* Both of its keys are zeroes, so that it can open what it seals. */
    assert_true(keypair_seal(kp, lane, KEYPAIR_AES_REJECT_AFTER_MESSAGES - 1, msg, 32));
    assert_true(keypair_open(kp, lane, msg, sizeof(msg), &first));
    assert_true(keypair_seal(kp, lane, KEYPAIR_AES_REJECT_AFTER_MESSAGES, msg, 32));
    assert_false(keypair_open(kp, lane, msg, sizeof(msg), &first));
    aead_lane_free(lane);
    keypair_unref(kp);
}

static void test_open_refuses(void **state)
{
    uint8_t msg[32 + WG_DATA_OVERHEAD] = {0};
    struct keypair *kp = make(true);
    struct aead_lane *lane;
    uint64_t counter = 42;

    assert_int_equal(aead_lane_new(&lane), 0);
    assert_true(keypair_seal(kp, lane, WG_REJECT_AFTER_MESSAGES, msg, 32));
    assert_false(keypair_open(kp, lane, msg, sizeof(msg), &counter));
    assert_true(keypair_seal(kp, lane, 7, msg, 32));
    msg[sizeof(msg) - 1] ^= 1;
    assert_false(keypair_open(kp, lane, msg, sizeof(msg), &counter));
    assert_int_equal(counter, 42);
    aead_lane_free(lane);
    keypair_unref(kp);
}

#define N_THREADS 4
#define N_ROUNDS  250
#define N_BATCH   8

/* So that a thread that is held up finds its counters still in the window. */
static_assert(N_THREADS * N_ROUNDS * N_BATCH < REPLAY_WINDOW, "none is too late");

/** What the workers of the test below share. */
struct shared {
    struct keypairs ks;
    _Atomic unsigned n_replayed; /* counters that the window refused */
    _Atomic unsigned n_failed;   /* messages that did not open */
    _Atomic unsigned n_done;     /* messages */
};

/* Seals batches under whatever is current and opens them again, as both ends of one keypair. */
static void *worker(void *arg)
{
    struct shared *s = arg;
    struct aead_lane *lane;

    if (aead_lane_new(&lane) != 0)
        return NULL;
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        struct keypair *kp = keypairs_acquire_current(&s->ks);
        uint64_t counters[N_BATCH];
        bool fresh[N_BATCH];
        uint64_t first;
        bool renews;

        if (!keypair_take_counters(kp, N_BATCH, &first))
            atomic_fetch_add(&s->n_failed, 1);
        for (unsigned i = 0; i < N_BATCH; i++) {
            uint8_t msg[16 + WG_DATA_OVERHEAD] = {0};

            if (!keypair_seal(kp, lane, first + i, msg, 16) ||
                !keypair_open(kp, lane, msg, sizeof(msg), &counters[i]))
                atomic_fetch_add(&s->n_failed, 1);
        }
        keypair_check_counters(kp, counters, N_BATCH, fresh);
        for (unsigned i = 0; i < N_BATCH; i++)
            if (!fresh[i])
                atomic_fetch_add(&s->n_replayed, 1);
        atomic_fetch_add(&s->n_done, N_BATCH);
        (void)keypairs_confirm(&s->ks, kp, &renews);
        aead_lane_clear(lane);
        keypair_unref(kp);
    }
    aead_lane_free(lane);
    return NULL;
}

/* Rotates under the workers' feet. A counter is never given out twice, so none is a replay. */
static void test_threads(void **state)
{
    struct shared s = {.n_done = 0};
    pthread_t threads[N_THREADS];

    keypairs_init(&s.ks);
    add(&s.ks, make(true), NULL, NULL);
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, &s), 0);
    while (atomic_load(&s.n_done) < N_THREADS * N_ROUNDS * N_BATCH / 2) {
        struct keypairs_evicted list;

        keypairs_add(&s.ks, make(true), &list);
        for (size_t i = 0; i < 3; i++)
            keypair_unref(list.kp[i]);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(s.n_done, N_THREADS * N_ROUNDS * N_BATCH);
    assert_int_equal(s.n_failed, 0);
    /* A thread may be held up for longer than the window is wide only by very bad luck: none here.
     */
    assert_int_equal(s.n_replayed, 0);
    clear(&s.ks);
}

/* ---- what has arrived under a peer's keypairs ---- */

#define SEC NSEC_PER_SEC

static void take(struct keypair *kp, uint64_t from, uint64_t to)
{
    for (uint64_t c = from; c < to; c++) {
        bool is_fresh;

        keypair_check_counters(kp, &c, 1, &is_fresh);
        assert_true(is_fresh);
    }
}

/* What is missing counts as lost a second after it was seen to be missing, and no more if it comes
 * after all. */
static void test_how_long_it_is_awaited(void **state)
{
    struct keypair *a = make(true);
    struct keypairs ks;
    struct arrivals sum;

    keypairs_init(&ks);
    add(&ks, a, NULL, NULL);
    assert_int_equal(keypairs_arrivals(&ks, 100 * SEC).lost, 0);
    take(a, 0, 10);
    take(a, 12, 20);
    sum = keypairs_arrivals(&ks, 101 * SEC);
    assert_int_equal(sum.received, 18);
    assert_int_equal(sum.lost, 0);
    /* Whoever asks more often hears no sooner. */
    assert_int_equal(keypairs_arrivals(&ks, 102 * SEC - 1).lost, 0);
    take(a, 21, 30);
    assert_int_equal(keypairs_arrivals(&ks, 102 * SEC).lost, 2);
    take(a, 10, 11);
    sum = keypairs_arrivals(&ks, 102 * SEC + 1);
    assert_int_equal(sum.lost, 1);
    assert_int_equal(sum.reordered, 1);
    assert_int_equal(keypairs_arrivals(&ks, 103 * SEC).lost, 2);
    clear(&ks);
}

/* Of a keypair that goes, all that is missing below its greatest counter is lost; what was sent
 * behind that is not known. */
static void test_what_goes_with_a_keypair(void **state)
{
    struct keypair *a = make(true);
    struct keypair *b = make(true);
    struct keypair *c = make(true);
    struct keypairs_evicted evicted;
    struct arrivals gone;
    struct keypairs ks;

    keypairs_init(&ks);
    add(&ks, a, NULL, NULL);
    take(a, 5, 10);
    add(&ks, b, NULL, NULL);
    take(b, 1, 4);
    /* Both are received with. */
    take(a, 12, 13);
    assert_int_equal(keypairs_arrivals(&ks, 10 * SEC).received, 9);
    assert_int_equal(keypairs_arrivals(&ks, 20 * SEC).lost, 8);
    keypairs_add(&ks, c, &evicted);
    gone = keypairs_evicted_arrivals(&evicted);
    assert_int_equal(gone.received, 6);
    assert_int_equal(gone.lost, 7);
    keypair_unref(evicted.kp[0]);
    assert_int_equal(keypairs_arrivals(&ks, 30 * SEC).lost, 1);
    keypairs_clear(&ks, &evicted);
    gone = keypairs_evicted_arrivals(&evicted);
    assert_int_equal(gone.received, 3);
    assert_int_equal(gone.lost, 1);
    for (size_t i = 0; i < 3; i++)
        keypair_unref(evicted.kp[i]);
    gone = keypairs_arrivals(&ks, 40 * SEC);
    assert_int_equal(gone.received + gone.lost, 0);
    keypairs_deinit(&ks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_initiator),
        cmocka_unit_test(test_responder),
        cmocka_unit_test(test_crossed),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_aes_limits),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_how_long_it_is_awaited),
        cmocka_unit_test(test_what_goes_with_a_keypair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
