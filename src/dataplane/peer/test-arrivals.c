/* test-arrivals.c - what has arrived from a peer, over all the sessions that it has had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "peer/peer.h"
#include "shared/device_state.h"
#include "shared/port_state.h"

#define SEC NSEC_PER_SEC

/* A peer of a device that has nothing but its port. */
struct fixture {
    struct port port;
    struct device device;
    struct peer peer;
};

static struct fixture *make(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->port.retired = (struct retired)RETIRED_NULL;
    assert_int_equal(index_init(&f->port.index), 0);
    f->device.port = &f->port;
    f->peer.device = &f->device;
    keypairs_init(&f->peer.keypairs);
    return f;
}

static void finish(struct fixture *f)
{
    while (f->port.retired.first) {
        struct keypair *kp = container_of(f->port.retired.first, struct keypair, link);

        f->port.retired.first = kp->link.next;
        (void)keypair_unref(kp);
    }
    keypairs_deinit(&f->peer.keypairs);
    index_deinit(&f->port.index);
    free(f);
}

/* A session that we have begun takes the place of the one before. */
static struct keypair *begin(struct fixture *f)
{
    struct keypairs_evicted evicted;
    struct keypair *kp;

    assert_int_equal(keypair_new(&kp), 0);
    kp->is_initiator = true;
    keypairs_add(&f->peer.keypairs, kp, &evicted);
    peer_retire(&f->peer, &evicted);
    return kp;
}

static void come(struct keypair *kp, uint64_t from, uint64_t to)
{
    for (uint64_t c = from; c < to; c++) {
        bool is_fresh;

        keypair_check_counters(kp, &c, 1, &is_fresh);
    }
}

static void assert_counts(
    struct fixture *f, nsec_t now, uint64_t received, uint64_t lost, uint64_t reordered)
{
    struct arrivals a = peer_arrivals(&f->peer, now);

    assert_int_equal(a.received, received);
    assert_int_equal(a.lost, lost);
    assert_int_equal(a.reordered, reordered);
}

static void test_over_sessions(void **state)
{
    struct fixture *f = make();
    struct keypair *kp = begin(f);
    struct keypairs_evicted evicted;
    uint64_t received = 0;
    uint64_t lost = 0;

    assert_counts(f, 10 * SEC, 0, 0, 0);
    for (unsigned i = 0; i < 10; i++) {
        come(kp, 2, 100); /* without the first two */
        kp = begin(f);
        received += 98;
        lost += 2;
        /* What is under a keypair before the last one is settled; of the one before the present
         * one it is awaited. */
        assert_counts(f, 11 * SEC + i, received, lost - 2, 0);
    }
    assert_counts(f, 13 * SEC, received, lost - 2, 0);
    assert_counts(f, 15 * SEC, received, lost, 0);
    come(kp, 0, 5);
    keypairs_clear(&f->peer.keypairs, &evicted);
    peer_retire(&f->peer, &evicted);
    assert_counts(f, 16 * SEC, received + 5, lost, 0);
    assert_counts(f, 26 * SEC, received + 5, lost, 0);
    finish(f);
}

/* What comes after it was given up is received, and balanced by what is lost next: no count falls.
 */
static void test_no_count_falls(void **state)
{
    struct fixture *f = make();
    struct keypair *kp = begin(f);
    struct keypairs_evicted evicted;

    come(kp, 3, 10);
    assert_counts(f, 10 * SEC, 7, 0, 0);
    assert_counts(f, 11 * SEC, 7, 3, 0);
    come(kp, 0, 2);
    assert_counts(f, 12 * SEC, 9, 3, 2);
    come(kp, 12, 20); /* without two */
    assert_counts(f, 13 * SEC, 17, 3, 2);
    assert_counts(f, 14 * SEC, 17, 3, 2);
    come(kp, 21, 30);
    assert_counts(f, 15 * SEC, 26, 3, 2);
    assert_counts(f, 16 * SEC, 26, 4, 2);
    keypairs_clear(&f->peer.keypairs, &evicted);
    peer_retire(&f->peer, &evicted);
    finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_sessions),
        cmocka_unit_test(test_no_count_falls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
