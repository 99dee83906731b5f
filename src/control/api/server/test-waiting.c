/* test-waiting.c - whose connection is next, and whose goes when there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "api/server/admission.h"

#define MAX 64

/* Source @source's connection @fd; source 0 is a unix socket. */
static struct waiting_connection of(uint8_t source, int fd)
{
    struct waiting_connection c = {.fd = fd, .accepted_at = fd};

    if (source > 0)
        c.from.addr = ip_addr_v4((const uint8_t[4]){192, 0, 2, source});
    c.from.port = (uint16_t)fd;
    return c;
}

static bool add(struct waiting *w, uint8_t source, int fd, int *ret_gone)
{
    struct waiting_connection c = of(source, fd);
    struct waiting_connection gone = {.fd = -1};
    bool went = waiting_add(w, &c, (uint64_t)fd * 7, &gone);

    *ret_gone = gone.fd;
    assert_true(w->n <= w->max);
    return went;
}

static int take(struct waiting *w)
{
    struct waiting_connection c;

    return waiting_take(w, &c) ? c.fd : -1;
}

/* Each source in turn, and within one the oldest first. */
static void test_turns(void **state)
{
    static const int expected[] = {10, 20, 30, 11, 21, 12, -1};
    struct waiting w;
    int gone;

    waiting_init(&w, MAX, 1);
    assert_false(add(&w, 1, 10, &gone));
    assert_false(add(&w, 1, 11, &gone));
    assert_false(add(&w, 1, 12, &gone));
    assert_false(add(&w, 2, 20, &gone));
    assert_false(add(&w, 2, 21, &gone));
    assert_false(add(&w, 0, 30, &gone));
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_int_equal(take(&w), expected[i]);
    assert_int_equal(w.n, 0);
    waiting_deinit(&w);
}

/* A flood loses its own newest, whoever comes; a stranger is next after one of the flood's. */
static void test_a_flood_hurts_itself(void **state)
{
    struct waiting w;
    int gone;

    waiting_init(&w, MAX, 1);
    for (int i = 0; i < MAX; i++)
        assert_false(add(&w, 1, 100 + i, &gone));
    for (int i = 0; i < 1000; i++) {
        assert_true(add(&w, 1, 1000 + i, &gone));
        assert_int_equal(gone, 1000 + i);
    }
    assert_true(add(&w, 2, 7, &gone));
    assert_int_equal(gone, 100 + MAX - 1);
    assert_int_equal(take(&w), 100);
    assert_int_equal(take(&w), 7);
    assert_int_equal(take(&w), 101);
    while (take(&w) >= 0)
        continue;
    waiting_deinit(&w);
}

/* A /64 is one source, and an IPv4 address another. */
static void test_sources(void **state)
{
    static const uint8_t a[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    static const uint8_t b[16] = {0x20, 0x01, 0x0d, 0xb8, [8] = 9, [15] = 2};
    static const uint8_t c[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, [15] = 1};
    struct waiting_connection cs[] = {{.fd = 1}, {.fd = 2}, {.fd = 3}};
    struct waiting_connection gone;
    struct waiting w;

    cs[0].from.addr = ip_addr_v6(a);
    cs[1].from.addr = ip_addr_v6(b);
    cs[2].from.addr = ip_addr_v6(c);
    waiting_init(&w, MAX, 1);
    for (int i = 0; i < 3; i++)
        assert_false(waiting_add(&w, &cs[i], 0, &gone));
    assert_int_equal(take(&w), 1);
    assert_int_equal(take(&w), 3);
    assert_int_equal(take(&w), 2);
    waiting_deinit(&w);
}

/* From more addresses than there is room for: each has about the same chance, the last one, too. */
static void test_lots(void **state)
{
    unsigned n_newest = 0;

    for (int round = 0; round < 200; round++) {
        struct waiting_connection gone = {.fd = -1};
        struct waiting_connection last = of(200, 200);
        struct waiting w;
        int fd;

        waiting_init(&w, MAX, (uint64_t)round);
        for (int i = 1; i <= MAX; i++)
            assert_false(add(&w, (uint8_t)i, i, &fd));
        assert_true(waiting_add(&w, &last, hash_bytes(7, &round, sizeof(round)), &gone));
        n_newest += gone.fd == 200;
        while (take(&w) >= 0)
            continue;
        waiting_deinit(&w);
    }
    /* 200 / 65 is to be expected. */
    assert_in_range(n_newest, 1, 20);
}

/* Against a reference that looks at all: random adds and takes keep every connection exactly once.
 */
static void test_random(void **state)
{
    enum { N = 20000 };
    static uint8_t where[N]; /* 1: here; 2: taken; 3: gone */
    struct waiting w;
    int n_here = 0;

    memset(where, 0, sizeof(where));
    waiting_init(&w, MAX, 5);
    for (int i = 0; i < N; i++) {
        uint64_t r = hash_bytes(11, &i, sizeof(i));
        int gone;
        int fd;

        where[i] = 1;
        n_here++;
        if (add(&w, (uint8_t)(r % 100 < 60 ? 1 : r % 90), i, &gone)) {
            assert_int_equal(where[gone], 1);
            where[gone] = 3;
            n_here--;
        }
        if (r >> 32 & 1) {
            fd = take(&w);
            assert_true(fd >= 0);
            assert_int_equal(where[fd], 1);
            where[fd] = 2;
            n_here--;
        }
        assert_int_equal(w.n, n_here);
    }
    for (int fd; (fd = take(&w)) >= 0; n_here--)
        assert_int_equal(where[fd], 1);
    assert_int_equal(n_here, 0);
    waiting_deinit(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_a_flood_hurts_itself),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_lots),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
