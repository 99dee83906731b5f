/* test-run-split.c - which datagrams of a run go on together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "packet/run_split.h"
#include "wire/wg.h"

#define SEG 64

static uint8_t buf[8 * SEG];

static void put(unsigned place, unsigned type, uint32_t index)
{
    struct wg_data header = {.type = le32_make(type), .receiver = le32_make(index)};

    memset(buf + (size_t)place * SEG, 0, SEG);
    memcpy(buf + (size_t)place * SEG, &header, sizeof(header));
}

static struct udp_run run_of(uint32_t len)
{
    return (struct udp_run){.buf = buf, .len = len, .seg = SEG, .tos = 3, .path = {.ifindex = 9}};
}

static void check(
    const struct udp_run *run, uint32_t *off, unsigned n, enum run_kind kind, uint32_t len)
{
    struct run_part part = run_split(run, *off);

    assert_ptr_equal(part.run.buf, buf + *off);
    assert_int_equal(part.n, n);
    assert_int_equal(part.kind, kind);
    assert_int_equal(part.run.len, len);
    assert_int_equal(part.run.seg, SEG);
    assert_int_equal(part.run.tos, 3);
    assert_int_equal(part.run.path.ifindex, 9);
    *off += len;
}

static void test_one_session_goes_on_together(void **state)
{
    struct udp_run run = run_of(2 * SEG + 40);
    uint32_t off = 0;

    for (unsigned i = 0; i < 3; i++)
        put(i, WG_TYPE_DATA, 5);
    assert_int_equal(run_split(&run, 0).index, 5);
    check(&run, &off, 3, RUN_DATA, 2 * SEG + 40);
    assert_int_equal(off, run.len);
}

static void test_another_index_begins_another_part(void **state)
{
    struct udp_run run = run_of(4 * SEG);
    uint32_t off = 0;

    put(0, WG_TYPE_DATA, 5);
    put(1, WG_TYPE_DATA, 5);
    put(2, WG_TYPE_DATA, 6);
    put(3, WG_TYPE_DATA, 5);
    check(&run, &off, 2, RUN_DATA, 2 * SEG);
    assert_int_equal(run_split(&run, off).index, 6);
    check(&run, &off, 1, RUN_DATA, SEG);
    check(&run, &off, 1, RUN_DATA, SEG);
    assert_int_equal(off, run.len);
}

static void test_anything_else_goes_on_alone(void **state)
{
    struct udp_run run = run_of(5 * SEG);
    uint32_t off = 0;

    put(0, WG_TYPE_COOKIE_REPLY, 5); /* of exactly that length */
    put(1, WG_TYPE_COOKIE_REPLY, 5);
    put(2, WG_TYPE_DATA, 0);
    put(3, 0x80, 5);
    put(4, 0x80, 5);
    check(&run, &off, 1, RUN_COOKIE_REPLY, SEG);
    check(&run, &off, 1, RUN_COOKIE_REPLY, SEG);
    check(&run, &off, 1, RUN_DATA, SEG);
    check(&run, &off, 1, RUN_FRAME, SEG);
    check(&run, &off, 1, RUN_FRAME, SEG);
    assert_int_equal(off, run.len);
}

/* A header and a tag are 32 bytes. */
static void test_data_that_is_too_short_is_none(void **state)
{
    struct udp_run run = run_of(SEG + 31);
    uint32_t off = 0;

    put(0, WG_TYPE_DATA, 5);
    put(1, WG_TYPE_DATA, 5);
    check(&run, &off, 1, RUN_DATA, SEG);
    check(&run, &off, 1, RUN_TRUNCATED, 31);
    run.len = SEG + 32;
    off = 0;
    check(&run, &off, 2, RUN_DATA, SEG + 32);
}

static enum run_kind kind_of(const uint8_t *msg, uint32_t len)
{
    static uint8_t copy[2048];
    struct udp_run run = {.buf = copy, .len = len, .seg = (uint16_t)len};

    memcpy(copy, msg, len);
    return run_split(&run, 0).kind;
}

static void test_each_kind(void **state)
{
    static const struct {
        uint8_t first[8];
        uint32_t len;
        enum run_kind kind;
    } rows[] = {
        {{WG_TYPE_INITIATION}, sizeof(struct wg_initiation), RUN_HANDSHAKE},
        {{WG_TYPE_INITIATION}, sizeof(struct wg_initiation) + 1, RUN_TRUNCATED},
        {{WG_TYPE_RESPONSE}, sizeof(struct wg_response), RUN_HANDSHAKE},
        {{WG_TYPE_RESPONSE}, sizeof(struct wg_response) - 1, RUN_TRUNCATED},
        {{WG_TYPE_COOKIE_REPLY}, sizeof(struct wg_cookie_reply), RUN_COOKIE_REPLY},
        {{WG_TYPE_COOKIE_REPLY}, 4, RUN_TRUNCATED}, {{WG_TYPE_COOKIE_REPLY}, 3, RUN_UNKNOWN},
        {{WG_TYPE_DATA}, WG_DATA_OVERHEAD, RUN_DATA},
        {{WG_TYPE_DATA}, WG_DATA_OVERHEAD - 1, RUN_TRUNCATED}, {{WG_TYPE_DATA, 1}, 64, RUN_UNKNOWN},
        {{0}, 64, RUN_UNKNOWN}, {{5}, 64, RUN_UNKNOWN}, {{0x80}, 1, RUN_FRAME},
        {{0xff}, 1200, RUN_FRAME}, {{0x7f}, 64, RUN_UNKNOWN},
        {{0x01, 0x01, 0, 0, 0x21, 0x12, 0xa4, 0x42}, 20, RUN_FRAME},   /* STUN: an answer */
        {{0x00, 0x01, 0, 0, 0x21, 0x12, 0xa4, 0x42}, 20, RUN_UNKNOWN}, /* a request */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint8_t msg[2048] = {0};

        memcpy(msg, rows[i].first, sizeof(rows[i].first));
        if (kind_of(msg, rows[i].len) != rows[i].kind)
            fail_msg("row %zu: %d, not %d", i, kind_of(msg, rows[i].len), rows[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_session_goes_on_together),
        cmocka_unit_test(test_another_index_begins_another_part),
        cmocka_unit_test(test_anything_else_goes_on_alone),
        cmocka_unit_test(test_data_that_is_too_short_is_none),
        cmocka_unit_test(test_each_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
