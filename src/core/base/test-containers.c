/*
 * test-containers.c - table, heap and ring against slow references, from fixed seeds; sorted arrays
 * and windows of sequences.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/containers.h"
#include "base/secret.h"

#define N 1000

struct member {
    struct htab_link link;
    struct heap_link timer;
    uint64_t key;
    bool in;
};

static struct member *find(struct htab *t, uint64_t key)
{
    uint64_t h = hash_u64(t->seed, key);

    for (struct htab_link *l = htab_first(t, h); l; l = htab_next(l, h)) {
        struct member *m = container_of(l, struct member, link);

        if (m->key == key)
            return m;
    }
    return NULL;
}

static void test_htab_reference(void **state)
{
    static struct member members[N];
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);
    struct htab t;
    size_t n = 0;
    size_t cursor = 0;
    size_t walked = 0;

    htab_init(&t, rng_u64(&rng));
    for (int step = 0; step < 20000; step++) {
        size_t i = rng_u32(&rng) % N;
        struct member *m = &members[i];

        m->key = i * 0x10001;
        if (m->in) {
            htab_remove(&t, &m->link);
            n--;
        } else {
            assert_int_equal(htab_add(&t, &m->link, hash_u64(t.seed, m->key)), 0);
            n++;
        }
        m->in = !m->in;
        i = rng_u32(&rng) % N;
        assert_ptr_equal(find(&t, i * 0x10001), members[i].in ? &members[i] : NULL);
        assert_int_equal(t.n, n);
    }
    for (struct htab_link *l = htab_each(&t, &cursor, NULL); l; l = htab_each(&t, &cursor, l))
        walked++;
    assert_int_equal(walked, n);
    htab_deinit(&t);
}

static void test_heap_reference(void **state)
{
    static struct member members[N];
    uint64_t seed = 2;
    struct rng rng = rng_seeded(&seed);
    struct heap h = HEAP_NULL;

    for (int step = 0; step < 5000; step++) {
        struct member *m = &members[rng_u32(&rng) % N];
        nsec_t earliest = NSEC_NEVER;

        if (rng_u32(&rng) % 4 == 0)
            heap_remove(&h, &m->timer);
        else
            assert_int_equal(heap_set(&h, &m->timer, rng_u32(&rng) % 500), 0);
        for (size_t i = 0; i < N; i++)
            if (members[i].timer.pos)
                earliest = nsec_min(earliest, members[i].timer.due);
        assert_int_equal(heap_due(&h), earliest);
    }
    for (nsec_t last = 0; h.n > 0;) {
        struct heap_link *l = heap_pop_due(&h, NSEC_NEVER);

        assert_true(l->due >= last);
        last = l->due;
    }
    assert_null(heap_pop_due(&h, NSEC_NEVER));
    heap_deinit(&h);
}

/* Armed for never is not armed; of two with one deadline the one that was armed first is first. */
static void test_heap_of_few(void **state)
{
    struct heap_link links[3] = {{.pos = 0}};
    struct heap h = HEAP_NULL;

    assert_int_equal(heap_due(&h), NSEC_NEVER);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(heap_set(&h, &links[i], i == 2 ? 5 : 7), 0);
    assert_int_equal(h.n, 3);
    assert_int_equal(heap_due(&h), 5);
    assert_int_equal(heap_set(&h, &links[2], NSEC_NEVER), 0);
    assert_int_equal(links[2].pos, 0);
    assert_int_equal(h.n, 2);
    assert_int_equal(heap_set(&h, &links[2], NSEC_NEVER), 0);
    assert_int_equal(h.n, 2);
    assert_null(heap_pop_due(&h, 6));
    assert_ptr_equal(heap_first(&h), &links[0]);
    /* Armed again it is behind the other. */
    assert_int_equal(heap_set(&h, &links[0], 7), 0);
    assert_ptr_equal(heap_pop_due(&h, 7), &links[1]);
    assert_int_equal(links[1].pos, 0);
    assert_ptr_equal(heap_pop_due(&h, 7), &links[0]);
    assert_null(heap_first(&h));
    heap_deinit(&h);
    assert_null(h.items);
}

/* What is reserved is had at once, doubled from 16, and nothing is had twice. */
static void test_heap_reserve(void **state)
{
    static const struct {
        size_t n, cap;
    } rows[] = {{1, 16}, {16, 16}, {17, 32}, {32, 32}, {33, 64}, {3, 64}, {1000, 1024}};
    struct heap h = HEAP_NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(heap_reserve(&h, rows[i].n), 0);
        assert_non_null(h.items);
        assert_int_equal(h.cap, rows[i].cap);
    }
    heap_deinit(&h);
}

/* There is no more than one member a chain, whatever their number. */
static void test_htab_grows(void **state)
{
    static struct member members[N];
    struct htab t;

    htab_init(&t, 3);
    assert_null(htab_first(&t, 1));
    for (size_t i = 0; i < N; i++) {
        members[i].key = i;
        assert_int_equal(htab_add(&t, &members[i].link, hash_u64(t.seed, i)), 0);
        assert_int_equal(t.n, i + 1);
        assert_true(t.n <= (size_t)1 << t.bits);
        assert_true(t.bits == 4 || t.n > (size_t)1 << (t.bits - 1));
    }
    for (size_t i = 0; i < N; i++)
        assert_ptr_equal(find(&t, i), &members[i]);
    htab_deinit(&t);
    assert_null(t.buckets);
    assert_int_equal(t.n, 0);
    assert_int_equal(t.bits, 0);
    /* It can be filled again. */
    assert_int_equal(htab_add(&t, &members[5].link, hash_u64(t.seed, 5)), 0);
    assert_ptr_equal(find(&t, 5), &members[5]);
    htab_deinit(&t);
}

#define RING_PER_THREAD ((size_t)20000)

static void *produce(void *arg)
{
    struct mpsc_ring *r = arg;

    for (uintptr_t i = 1; i <= RING_PER_THREAD; i++)
        while (!mpsc_push(r, (void *)i))
            sched_yield();
    return NULL;
}

static void test_ring_threads(void **state)
{
    struct mpsc_ring r;
    pthread_t threads[3];
    uint64_t sum = 0;
    size_t got = 0;

    assert_int_equal(mpsc_init(&r, 64), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &r), 0);
    while (got < 3 * RING_PER_THREAD) {
        void *item = mpsc_pop(&r);

        if (!item) {
            sched_yield();
            continue;
        }
        sum += (uintptr_t)item;
        got++;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_null(mpsc_pop(&r));
    assert_int_equal(sum, 3ull * RING_PER_THREAD * (RING_PER_THREAD + 1) / 2);
    mpsc_deinit(&r);
}

static void test_ring_full(void **state)
{
    struct mpsc_ring r;
    int item;

    assert_int_equal(mpsc_init(&r, 2), 0);
    assert_true(mpsc_push(&r, &item));
    assert_true(mpsc_push(&r, &item));
    assert_false(mpsc_push(&r, &item));
    assert_ptr_equal(mpsc_pop(&r), &item);
    assert_true(mpsc_push(&r, &item));
    mpsc_deinit(&r);
}

/* What is pushed comes out in that order, however often the ring is turned. */
static void test_ring_keeps_the_order(void **state)
{
    struct mpsc_ring r;
    uintptr_t in = 0;
    uintptr_t out = 0;

    assert_int_equal(mpsc_init(&r, 4), 0);
    assert_null(mpsc_pop(&r));
    for (unsigned round = 0; round < 10; round++) {
        while (in < out + 4)
            assert_true(mpsc_push(&r, (void *)++in));
        assert_false(mpsc_push(&r, &r));
        for (unsigned i = 0; i < 3; i++)
            assert_ptr_equal(mpsc_pop(&r), (void *)++out);
    }
    assert_ptr_equal(mpsc_pop(&r), (void *)++out);
    assert_null(mpsc_pop(&r));
    mpsc_deinit(&r);
    assert_null(r.slots);
}

static int compare_numbers(const void *item, const void *wanted)
{
    const int *a = item, *b = wanted;

    return *a - *b;
}

/* Of sorted arrays of each length: where each item is, and where what lies between belongs. */
static void test_places_in_a_sorted_array(void **state)
{
    int items[20];

    for (int n = 0; n <= 20; n++) {
        if (n > 0)
            items[n - 1] = 2 * n - 1;
        for (int wanted = 0; wanted <= 2 * n; wanted++) {
            bool found = wanted % 2 == 0;
            size_t at =
                sorted_place(items, (size_t)n, sizeof(*items), compare_numbers, &wanted, &found);

            assert_int_equal(at, wanted / 2);
            assert_int_equal(found, wanted % 2);
        }
    }
}

/* What is put in anywhere moves what is behind it; the array doubles from 8. */
static void test_a_sorted_array_grows(void **state)
{
    int *items = NULL;
    size_t cap = 0;

    for (size_t n = 0; n < 40; n++) {
        int wanted = (int)(n * 17 % 40);
        bool found;
        size_t at = sorted_place(items, n, sizeof(*items), compare_numbers, &wanted, &found);

        assert_false(found);
        items = sorted_open(items, n, sizeof(*items), at, &cap);
        assert_non_null(items);
        items[at] = wanted;
        assert_int_equal(cap, n < 8 ? 8 : n < 16 ? 16 : n < 32 ? 32 : 64);
        for (size_t i = 0; i < n; i++)
            assert_true(items[i] < items[i + 1]);
    }
    for (int i = 0; i < 40; i++)
        assert_int_equal(items[i], i);
    free(items);
}

/* Each number counts once, and none that is 64 or more behind the highest. */
static void test_window_of_sequences(void **state)
{
    /* In this order; 0 is not in use. */
    static const struct {
        uint64_t sequence;
        bool is_taken;
        uint64_t highest;
    } steps[] = {{0, false, 0}, {5, true, 5}, {5, false, 5}, {1, true, 5}, {1, false, 5},
        {4, true, 5}, {68, true, 68}, {5, false, 68}, {4, false, 68}, {6, true, 68}, {69, true, 69},
        {5, false, 69}, {6, false, 69}, {68, false, 69}, {132, true, 132}, {69, false, 132},
        {68, false, 132}, {196, true, 196}, {132, false, 196}, {133, true, 196}, {1000, true, 1000},
        {937, true, 1000}, {936, false, 1000}, {999, true, 1000}, {1000, false, 1000},
        {UINT64_MAX, true, UINT64_MAX}};
    struct seq_window w = {.seen = 1};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        if (seq_window_take(&w, steps[i].sequence) != steps[i].is_taken)
            fail_msg("step %zu", i);
        assert_true(w.highest == steps[i].highest);
    }
}

/* Each byte counts, and the length, and the seed. */
static void test_every_byte_is_hashed(void **state)
{
    uint8_t bytes[40] = {0};

    for (size_t len = 1; len <= sizeof(bytes); len++) {
        uint64_t whole = hash_bytes(1, bytes, len);

        assert_true(hash_bytes(1, bytes, len) == whole);
        assert_true(hash_bytes(2, bytes, len) != whole);
        assert_true(hash_bytes(1, bytes, len - 1) != whole);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = 1;
            assert_true(hash_bytes(1, bytes, len) != whole);
            bytes[i] = 0;
        }
        /* What lies behind does not. */
        if (len < sizeof(bytes)) {
            bytes[len] = 1;
            assert_true(hash_bytes(1, bytes, len) == whole);
            bytes[len] = 0;
        }
    }
    assert_true(hash_u64(1, 7) == hash_bytes(1, &(uint64_t){7}, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_htab_reference),
        cmocka_unit_test(test_heap_reference),
        cmocka_unit_test(test_heap_of_few),
        cmocka_unit_test(test_heap_reserve),
        cmocka_unit_test(test_htab_grows),
        cmocka_unit_test(test_ring_threads),
        cmocka_unit_test(test_ring_full),
        cmocka_unit_test(test_ring_keeps_the_order),
        cmocka_unit_test(test_places_in_a_sorted_array),
        cmocka_unit_test(test_a_sorted_array_grows),
        cmocka_unit_test(test_window_of_sequences),
        cmocka_unit_test(test_every_byte_is_hashed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
