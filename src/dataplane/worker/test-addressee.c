/* test-addressee.c - how many hashes strangers can make a hub of many networks compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "shared/device_state.h"
#include "wire/wg.h"
#include "worker/addressee.h"

#define N_DEVICES 20

struct fixture {
    struct addressee a;
    struct list devices;
    struct device *owned;                     /* N_DEVICES */
    struct wg_initiation messages[N_DEVICES]; /* right for each of them */
    struct wg_initiation garbage;
    nsec_t now;
    enum drop_reason why;
    struct handshake_to to;
};

static struct x25519_public key_of(unsigned i)
{
    struct x25519_public key = {{(uint8_t)(i + 1), 7}};

    return key;
}

static void add_device(struct fixture *f, unsigned i)
{
    struct x25519_public key = key_of(i);
    struct cookie_maker maker;

    cookie_checker_set_key(&f->owned[i].checker, &key);
    list_add_tail(&f->devices, &f->owned[i].siblings);
    f->messages[i].type = le32_make(WG_TYPE_INITIATION);
    maker = (struct cookie_maker){0};
    cookie_add_macs(&maker, &key, &f->messages[i], sizeof(f->messages[i]), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->owned = calloc(N_DEVICES, sizeof(*f->owned));
    assert_non_null(f->owned);
    assert_int_equal(addressee_init(&f->a, 3), 0);
    list_init(&f->devices);
    f->now = NSEC_PER_SEC;
    f->garbage.type = le32_make(WG_TYPE_INITIATION);
    *state = f;
    return 0;
}

static int setup_many(void **state)
{
    (void)setup(state);
    for (unsigned i = 0; i < N_DEVICES; i++)
        add_device(*state, i);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    addressee_deinit(&f->a);
    free(f->owned);
    free(f);
    return 0;
}

static struct ip_addr address(uint32_t n)
{
    return ip_addr_v4(
        (const uint8_t[4]){(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n});
}

static struct device *find(struct fixture *f, uint32_t from, const struct wg_initiation *msg)
{
    struct ip_addr a = address(from);

    f->why = DROP_REASON_N;
    f->to =
        addressee_find(&f->a, &f->devices, &a, (const uint8_t *)msg, sizeof(*msg), f->now, &f->why);
    return f->to.device;
}

static void test_each_finds_its_own(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < N_DEVICES; i++)
        assert_ptr_equal(find(f, 1000 + i, &f->messages[i]), &f->owned[i]);
    assert_null(find(f, 1, &f->garbage));
    assert_int_equal(f->why, DROP_MAC1_INVALID);
}

/* Who was right before costs one hash, whichever device it is for; also after a try elsewhere. */
static void test_the_last_one_is_tried_first(void **state)
{
    struct fixture *f = *state;
    uint64_t before;

    (void)find(f, 7, &f->messages[N_DEVICES - 1]);
    before = f->a.n_tries;
    for (int i = 0; i < 10; i++)
        assert_ptr_equal(find(f, 7, &f->messages[N_DEVICES - 1]), &f->owned[N_DEVICES - 1]);
    assert_int_equal(f->a.n_tries - before, 10);
    assert_ptr_equal(find(f, 7, &f->messages[3]), &f->owned[3]);
    before = f->a.n_tries;
    assert_ptr_equal(find(f, 7, &f->messages[3]), &f->owned[3]);
    assert_int_equal(f->a.n_tries - before, 1);
}

/* From one address: its own bound; the others search on. */
static void test_one_stranger(void **state)
{
    struct fixture *f = *state;
    const uint64_t bound = (ADDRESSEE_SOURCE_BURST + NSEC_PER_SEC) / ADDRESSEE_SOURCE_COST;

    for (int i = 0; i < 100000; i++) {
        f->now += NSEC_PER_SEC / 100000;
        assert_null(find(f, 1, &f->garbage));
    }
    assert_int_equal(f->why, DROP_SEARCH_LIMITED);
    assert_in_range(f->a.n_tries, bound / 2, bound + 2 * N_DEVICES);
    assert_ptr_equal(find(f, 2, &f->messages[9]), &f->owned[9]);
    /* Its bound is lifted with time. */
    f->now += 2 * NSEC_PER_SEC;
    assert_ptr_equal(find(f, 1, &f->messages[9]), &f->owned[9]);
}

/* From forged addresses, the member's own among them: what is remembered is served all the same. */
static void test_forged_addresses(void **state)
{
    struct fixture *f = *state;
    const uint64_t bound = (ADDRESSEE_BURST + NSEC_PER_SEC) / ADDRESSEE_COST;
    uint32_t member = 0x0a000001;
    uint64_t n_members = 0;

    assert_ptr_equal(find(f, member, &f->messages[5]), &f->owned[5]);
    for (uint32_t i = 0; i < 400000; i++) {
        f->now += NSEC_PER_SEC / 400000;
        assert_null(find(f, i % 4 == 0 ? member : i * 2654435761u, &f->garbage));
        if (i % 1000 == 0) {
            assert_ptr_equal(find(f, member, &f->messages[5]), &f->owned[5]);
            n_members++;
        }
    }
    assert_int_equal(f->why, DROP_SEARCH_LIMITED);
    /* A hash for each that has the member's address: its remembered device. */
    assert_true(f->a.n_tries <= bound + n_members + 100000 + 2 * N_DEVICES);
    /* And the pace is that of the bound, so newcomers get through in time. */
    f->now += ADDRESSEE_BURST;
    assert_ptr_equal(find(f, 77, &f->messages[11]), &f->owned[11]);
}

static void test_a_device_that_is_gone(void **state)
{
    struct fixture *f = *state;

    (void)find(f, 7, &f->messages[4]);
    list_remove(&f->owned[4].siblings);
    memset(&f->owned[4], 0xee, sizeof(f->owned[4]));
    assert_null(find(f, 7, &f->messages[4]));
    assert_int_equal(f->why, DROP_MAC1_INVALID);
    assert_ptr_equal(find(f, 7, &f->messages[2]), &f->owned[2]);
}

/* While a device has two keys it is found by either, at one hash more for the second. */
static void test_a_next_key(void **state)
{
    struct fixture *f = *state;
    struct device_next next = {.local.has_key = false};
    struct x25519_public key = key_of(100);
    struct wg_initiation msg = {.type = le32_make(WG_TYPE_INITIATION)};
    struct cookie_maker maker = {.has_cookie = false};
    uint64_t before;

    cookie_add_macs(&maker, &key, &msg, sizeof(msg), 0);
    assert_null(find(f, 7, &msg));
    cookie_checker_set_key(&next.checker, &key);
    f->owned[6].next = &next;
    assert_ptr_equal(find(f, 7, &msg), &f->owned[6]);
    assert_true(f->to.is_next);
    before = f->a.n_tries;
    assert_ptr_equal(find(f, 7, &f->messages[6]), &f->owned[6]);
    assert_false(f->to.is_next);
    assert_int_equal(f->a.n_tries - before, 1);
    assert_ptr_equal(find(f, 7, &msg), &f->owned[6]);
    assert_int_equal(f->a.n_tries - before, 3);
    f->owned[6].next = NULL;
    assert_null(find(f, 7, &msg));
}

/* A node has one device, and nothing is bounded that it can do itself. */
static void test_one_device(void **state)
{
    struct fixture *f = *state;

    assert_null(find(f, 1, &f->garbage));
    add_device(f, 0);
    for (int i = 0; i < 100000; i++)
        assert_null(find(f, 1, &f->garbage));
    assert_int_equal(f->why, DROP_MAC1_INVALID);
    assert_ptr_equal(find(f, 1, &f->messages[0]), &f->owned[0]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_finds_its_own, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_the_last_one_is_tried_first, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_one_stranger, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_forged_addresses, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_a_device_that_is_gone, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_a_next_key, setup_many, teardown),
        cmocka_unit_test_setup_teardown(test_one_device, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
