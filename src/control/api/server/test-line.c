/* test-line.c - lines packed once: any order of them unpacks, and who takes them packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "api/server/stream.h"
#include "base/secret.h"

#define ROOM (1 << 20)

static void nothing(struct stream *s)
{
}

static void send_nothing(struct stream *s, nsec_t now)
{
}

/* All that a stream has to send, by pieces of random sizes. */
static size_t take_all(struct stream *s, struct rng *rng, char *buf)
{
    size_t len = 0;
    size_t n;

    while ((n = stream_take(s, buf + len, STREAM_TAKE_MIN + rng_u32(rng) % 4096, 1)) > 0)
        len += n;
    return len;
}

/* What zlib makes of it, as a client does; @ret_is_whole: its end came, and the checksum is right.
 */
static size_t unpack(const char *packed, size_t len, char *buf, bool *ret_is_whole)
{
    z_stream z = {.next_in = (Bytef *)packed,
        .avail_in = (uInt)len,
        .next_out = (Bytef *)buf,
        .avail_out = ROOM};
    int r;

    assert_int_equal(inflateInit(&z), Z_OK);
    r = inflate(&z, Z_SYNC_FLUSH);
    assert_true(r == Z_OK || r == Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    (void)inflateEnd(&z);
    *ret_is_whole = r == Z_STREAM_END;
    return ROOM - z.avail_out;
}

/* A line of @len characters that repeat after a while. */
static struct line *make_line(struct rng *rng, size_t len, bool is_part)
{
    char *text = malloc(len + 1);
    struct line *l;

    for (size_t i = 0; i < len; i++)
        text[i] = i < 100 ? (char)('a' + rng_u32(rng) % 26) : text[i - 1 - rng_u32(rng) % 2];
    l = is_part ? line_new_part(text, len) : line_new(text, len);
    free(text);
    assert_non_null(l);
    return l;
}

/* The same packed lines in two streams, in different orders. */
static void test_any_order(void **state)
{
    static const size_t sizes[] = {0, 1, 80, 600, 4095, 5000, 40000};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    static char sent[ROOM];
    static char text[ROOM];
    static char expected[ROOM];
    uint64_t seed = 5;
    struct rng rng = rng_seeded(&seed);
    struct line *lines[N];
    struct stream s;

    for (size_t i = 0; i < N; i++)
        lines[i] = make_line(&rng, sizes[i], i % 2 == 1);
    for (int round = 0; round < 20; round++) {
        size_t len = 0;
        bool is_whole;

        stream_init(&s, send_nothing, nothing);
        assert_true(stream_pack(&s));
        for (int i = 0; i < 30; i++) {
            struct line *l = lines[rng_u32(&rng) % N];

            assert_true(stream_push(&s, l, 1));
            memcpy(expected + len, l->text, l->len);
            len += l->len;
        }
        if (round % 2)
            stream_end(&s);
        assert_int_equal(unpack(sent, take_all(&s, &rng, sent), text, &is_whole), len);
        assert_memory_equal(text, expected, len);
        assert_true(is_whole == (round % 2 == 1));
        stream_deinit(&s);
    }
    for (size_t i = 0; i < N; i++)
        line_unref(lines[i]);
}

/* However many streams have it, it is packed once, and freed with the line. */
static void test_packed_once(void **state)
{
    uint64_t seed = 6;
    struct rng rng = rng_seeded(&seed);
    struct line *l = make_line(&rng, 5000, false);
    struct stream s[3];

    for (int i = 0; i < 3; i++) {
        stream_init(&s[i], send_nothing, nothing);
        assert_true(stream_pack(&s[i]));
        assert_true(stream_push(&s[i], l, 1));
        assert_ptr_equal(s[i].queue[0], l->packed);
        assert_true(s[i].bytes == l->packed->len && l->packed->len < l->len / 2);
    }
    assert_int_equal(l->refs, 1);
    assert_int_equal(l->packed->refs, 4);
    for (int i = 0; i < 3; i++)
        stream_deinit(&s[i]);
    assert_int_equal(l->packed->refs, 1);
    line_unref(l);
}

/* What was pushed before is packed as well. */
static void test_packed_late(void **state)
{
    static char sent[ROOM];
    static char text[ROOM];
    uint64_t seed = 8;
    struct rng rng = rng_seeded(&seed);
    struct line *l = make_line(&rng, 5000, false);
    struct stream s;
    bool is_whole;

    stream_init(&s, send_nothing, nothing);
    assert_true(stream_push(&s, l, 1));
    assert_true(stream_pack(&s));
    assert_true(stream_push(&s, l, 1));
    assert_int_equal(s.bytes, 2 * l->packed->len);
    stream_end(&s);
    assert_int_equal(unpack(sent, take_all(&s, &rng, sent), text, &is_whole), 2 * l->len);
    assert_true(is_whole);
    assert_memory_equal(text + l->len, l->text, l->len);
    assert_int_equal(s.bytes, 0);
    stream_deinit(&s);
    assert_int_equal(l->refs, 1);
    line_unref(l);
}

static void test_stream_without_lines(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    char sent[64];
    char text[1];
    struct stream s;
    bool is_whole;
    size_t len;

    stream_init(&s, send_nothing, nothing);
    assert_true(stream_pack(&s));
    assert_int_equal(stream_take(&s, sent, sizeof(sent), 1), 0);
    stream_end(&s);
    len = take_all(&s, &rng, sent);
    assert_int_equal(len, LINE_PACKED_HEAD + LINE_PACKED_END);
    assert_int_equal(unpack(sent, len, text, &is_whole), 0);
    assert_true(is_whole);
    stream_deinit(&s);
}

static void test_who_accepts(void **state)
{
    static const struct {
        const char *header;
        bool accepts;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"deflate", true},
        {"Deflate", true},
        {"gzip, deflate, br, zstd", true},
        {"deflate, gzip, br, zstd", true},
        {"gzip;q=0.5,\tdeflate;q=0.3", true},
        {"deflate ; q=1", true},
        {"deflate;q=0", false},
        {"deflate; q=0.000 , gzip", false},
        {"deflate; Q=0", false},
        {"gzip", false},
        {"deflated", false},
        {"x-deflate", false},
        {"identity", false},
        {",,;,", false},
        {"gzip deflate", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (line_accepts_packed(cases[i].header) != cases[i].accepts)
            fail_msg("\"%s\"", cases[i].header);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_packed_once),
        cmocka_unit_test(test_packed_late),
        cmocka_unit_test(test_stream_without_lines),
        cmocka_unit_test(test_who_accepts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
