/* test-stream.c - the queue of lines: its limits, and that clearing never breaks a line in two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/stream.h"
#include "base/secret.h"

static void nothing(struct stream *s)
{
}

static void send_nothing(struct stream *s, nsec_t now)
{
}

static bool push(struct stream *s, const char *text, bool is_part)
{
    struct line *l = is_part ? line_new_part(text, strlen(text)) : line_new(text, strlen(text));
    bool pushed = stream_push(s, l, 5);

    line_unref(l);
    return pushed;
}

static void assert_takes(struct stream *s, size_t cap, const char *expected)
{
    char buf[256];
    size_t n = stream_take(s, buf, cap, 9);

    buf[n] = '\0';
    assert_string_equal(buf, expected);
}

static void test_pieces(void **state)
{
    struct stream s;

    stream_init(&s, send_nothing, nothing);
    assert_true(push(&s, "one", false));
    assert_true(push(&s, "two", false));
    assert_int_equal(s.bytes, 8);
    assert_takes(&s, 2, "on");
    assert_takes(&s, 4, "e\ntw");
    assert_takes(&s, 99, "o\n");
    assert_takes(&s, 99, "");
    assert_int_equal(s.bytes, 0);
    stream_deinit(&s);
}

static void test_clear_keeps_whole_lines(void **state)
{
    struct stream s;

    stream_init(&s, send_nothing, nothing);
    assert_true(push(&s, "a", true));
    assert_true(push(&s, "b", true));
    assert_true(push(&s, "c", false));
    assert_true(push(&s, "gone", false));
    /* Exactly the first part is out: the rest of its line must follow. */
    assert_takes(&s, 1, "a");
    stream_clear(&s);
    assert_true(push(&s, "new", false));
    assert_takes(&s, 99, "bc\nnew\n");
    assert_true(push(&s, "half", false));
    assert_true(push(&s, "gone", false));
    assert_takes(&s, 2, "ha");
    stream_clear(&s);
    assert_takes(&s, 99, "lf\n");
    assert_true(push(&s, "gone", true));
    assert_true(push(&s, "gone", false));
    stream_clear(&s);
    assert_takes(&s, 99, "");
    assert_int_equal(s.bytes, 0);
    stream_deinit(&s);
}

static void test_limits(void **state)
{
    struct stream s;
    char *big = malloc(STREAM_BYTES_MAX + 1);

    stream_init(&s, send_nothing, nothing);
    for (unsigned i = 0; i < STREAM_LINES_MAX; i++)
        assert_true(push(&s, "x", false));
    assert_false(push(&s, "x", false));
    stream_clear(&s);
    memset(big, 'b', STREAM_BYTES_MAX);
    big[STREAM_BYTES_MAX] = '\0';
    assert_true(push(&s, "small", false));
    assert_true(push(&s, big, false));
    assert_false(push(&s, "x", false));
    assert_false(stream_is_stalled(&s, 5 + STREAM_STALL_NS));
    assert_true(stream_is_stalled(&s, 6 + STREAM_STALL_NS));
    stream_deinit(&s);
    free(big);
}

/* A snapshot is longer than the queue may be, and leaves room for what comes behind it. */
static void test_whole(void **state)
{
    enum { N = 2 * STREAM_LINES_MAX };
    static struct line *parts[N];
    static char buf[2 * N];
    struct line *part = line_new_part("p", 1);
    struct line *last = line_new("!", 1);
    struct stream s;

    for (unsigned i = 0; i < N; i++)
        parts[i] = i + 1 < N ? part : last;
    stream_init(&s, send_nothing, nothing);
    assert_true(stream_push_whole(&s, parts, N, 5));
    assert_int_equal(s.bytes, 0);
    for (unsigned i = 0; i < STREAM_LINES_MAX; i++)
        assert_true(push(&s, "x", false));
    assert_false(push(&s, "x", false));
    /* It is sent in part, so clearing keeps it. */
    assert_int_equal(stream_take(&s, buf, 10, 6), 10);
    stream_clear(&s);
    assert_int_equal(s.bytes, 0);
    assert_true(push(&s, "y", false));
    assert_int_equal(s.bytes, 2);
    assert_int_equal(stream_take(&s, buf, sizeof(buf), 6), N - 10 + 1 + 2);
    assert_int_equal(s.n_free, 0);
    assert_int_equal(s.bytes, 0);
    /* The room for it is given back. */
    assert_int_equal(s.cap, 0);
    /* It is not sent in part, so clearing drops it. */
    assert_true(stream_push_whole(&s, parts, N, 5));
    stream_clear(&s);
    assert_int_equal(s.n + s.n_free + s.bytes, 0);
    assert_int_equal(part->refs, 1);
    stream_deinit(&s);
    line_unref(part);
    line_unref(last);
}

static void append(char *to, const char *text, size_t len)
{
    size_t at = strlen(to);

    memcpy(to + at, text, len);
    to[at + len] = '\0';
}

/* Random pushes and takes against a plain text. */
static void test_random(void **state)
{
    uint64_t seed = 3;
    struct rng rng = rng_seeded(&seed);
    char expected[4096] = "";
    char got[4096] = "";
    struct stream s;

    stream_init(&s, send_nothing, nothing);
    while (strlen(expected) < 4000) {
        char text[8] = {0};
        char buf[16];
        size_t n;

        for (unsigned i = rng_u32(&rng) % 7; i > 0; i--)
            text[i - 1] = (char)('a' + rng_u32(&rng) % 26);
        text[6] = '\0';
        assert_true(push(&s, text, false));
        append(expected, text, strlen(text));
        append(expected, "\n", 1);
        n = stream_take(&s, buf, rng_u32(&rng) % 12, 1);
        append(got, buf, n);
    }
    while (s.n > 0) {
        char buf[16];
        size_t n = stream_take(&s, buf, 10, 1);

        append(got, buf, n);
    }
    assert_string_equal(got, expected);
    stream_deinit(&s);
}

static unsigned n_woken;

static void count_wake(struct stream *s)
{
    n_woken++;
}

/* What a push changes, and what it leaves alone where it fails. */
static void test_push(void **state)
{
    struct line *l = line_new("ab", 2);
    struct stream s;

    n_woken = 0;
    stream_init(&s, send_nothing, nothing);
    assert_true(stream_push(&s, l, 5));
    assert_true(s.moved_at == 5);
    s.wake = count_wake;
    assert_true(stream_push(&s, l, 7));
    assert_int_equal(n_woken, 1);
    /* The time of the first: the queue was not empty since. */
    assert_true(s.moved_at == 5);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.bytes, 6);
    assert_int_equal(l->refs, 3);
    stream_end(&s);
    n_woken = 0;
    assert_false(stream_push(&s, l, 9));
    assert_int_equal(n_woken, 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.bytes, 6);
    assert_int_equal(l->refs, 3);
    stream_deinit(&s);
    assert_int_equal(l->refs, 1);
    line_unref(l);
}

/* A queue that is one byte short of being full takes a line, however long; a full one none. */
static void test_full_by_bytes(void **state)
{
    struct line *small = line_new("", 0);
    char *text = malloc(STREAM_BYTES_MAX);

    memset(text, 'b', STREAM_BYTES_MAX);
    for (unsigned is_full = 0; is_full < 2; is_full++) {
        struct line *big = line_new(text, STREAM_BYTES_MAX - 2 + is_full);
        struct stream s;

        stream_init(&s, send_nothing, nothing);
        assert_true(stream_push(&s, big, 5));
        assert_int_equal(s.bytes, STREAM_BYTES_MAX - 1 + is_full);
        assert_int_equal(stream_push(&s, small, 5), !is_full);
        stream_deinit(&s);
        line_unref(big);
    }
    free(text);
    line_unref(small);
}

/* Lines stay in order when the array grows while its ring has turned. */
static void test_growing_ring(void **state)
{
    char expected[128] = "";
    struct stream s;

    stream_init(&s, send_nothing, nothing);
    for (unsigned i = 0; i < 3; i++)
        assert_true(push(&s, "x", false));
    assert_takes(&s, 4, "x\nx\n");
    for (char c = 'a'; c <= 'k'; c++) {
        char text[2] = {c, '\0'};

        assert_true(push(&s, text, false));
        append(expected, text, 1);
        append(expected, "\n", 1);
    }
    assert_takes(&s, 2, "x\n");
    assert_takes(&s, 99, expected);
    stream_deinit(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_clear_keeps_whole_lines),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_full_by_bytes),
        cmocka_unit_test(test_growing_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
