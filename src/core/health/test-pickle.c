/*
 * test-pickle.c - pickles of plain values, and what is refused.
 *
 * The bytes are what Python's pickle.dumps(VALUE, 2) gives, or were written by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health/pickle.h"

/* Of a literal, with its zeroes. */
#define BYTES(text) (text), sizeof(text) - 1

static struct pickle read_all(const char *bytes, size_t len)
{
    struct pickle p = {.n_values = 0};
    struct err e = ERR_NULL;

    if (pickle_read(&p, bytes, len, &e) != 0)
        fail_msg("%s", e.text);
    return p;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int64_t value;
    } cases[] = {
        {BYTES("\x80\x02K\x07."), 7},
        {BYTES("\x80\x02M\x34\x12."), 0x1234},
        {BYTES("\x80\x02J\xff\xff\xff\xff."), -1},
        {BYTES("\x80\x02J\x00\x00\x00\x80."), INT32_MIN},
        {BYTES("\x80\x02\x8a\x00."), 0},
        {BYTES("\x80\x02\x8a\x05\x00\x00\x00\x80\x00."), 0x80000000},
        {BYTES("\x80\x02\x8a\x01\xfe."), -2},
        {BYTES("\x80\x02\x8a\x08\x00\x00\x64\xa7\xb3\xb6\xe0\x0d."), 1000000000000000000},
        {BYTES("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff."), -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pickle p = read_all(cases[i].bytes, cases[i].len);

        assert_int_equal(pickle_root(&p)->kind, PICKLE_INT);
        assert_int_equal(pickle_root(&p)->integer, cases[i].value);
        pickle_deinit(&p);
    }
}

static void test_other_plain_values(void **state)
{
    struct pickle p = read_all(BYTES("\x80\x02G\x3f\xf4\x00\x00\x00\x00\x00\x00."));

    assert_int_equal(pickle_root(&p)->kind, PICKLE_FLOAT);
    assert_true(pickle_root(&p)->number == 1.25);
    pickle_deinit(&p);
    p = read_all(BYTES("\x80\x02N."));
    assert_int_equal(pickle_root(&p)->kind, PICKLE_NONE);
    pickle_deinit(&p);
    p = read_all(BYTES("\x80\x02\x88."));
    assert_true(pickle_root(&p)->kind == PICKLE_BOOL && pickle_root(&p)->integer == 1);
    pickle_deinit(&p);
    p = read_all(BYTES("\x80\x02\x89."));
    assert_true(pickle_root(&p)->kind == PICKLE_BOOL && pickle_root(&p)->integer == 0);
    pickle_deinit(&p);
    p = read_all(BYTES("\x80\x02X\x05\x00\x00\x00h\x00llo."));
    assert_int_equal(pickle_root(&p)->len, 5);
    assert_memory_equal(pickle_root(&p)->text, "h\0llo", 5);
    pickle_deinit(&p);
}

/* How many items a list has, and the numbers in it together. */
static void check_list(
    const struct pickle *p, const struct pickle_value *list, unsigned n, int64_t sum)
{
    uint32_t at = pickle_begin(list);
    const struct pickle_value *one;

    assert_non_null(list);
    assert_int_equal(list->kind, PICKLE_LIST);
    while ((one = pickle_next(p, &at))) {
        n--;
        sum -= one->kind == PICKLE_INT ? one->integer : 0;
    }
    assert_int_equal(n, 0);
    assert_int_equal(sum, 0);
}

/* {"a": [1, 2], "b": (3,), "c": (4, 5), "d": (1, 2, 3), "e": (1, 2, 3, 4), "f": [], "g": {}, "h":
 * (), "i": [9]}, as Python writes it. */
static void test_containers(void **state)
{
    struct pickle p = read_all(BYTES("\x80\x02}q\x00(X\x01\x00\x00\x00"
                                     "aq\x01]q\x02(K\x01K\x02"
                                     "e"
                                     "X\x01\x00\x00\x00"
                                     "bq\x03K\x03\x85q\x04"
                                     "X\x01\x00\x00\x00"
                                     "cq\x05K\x04K\x05\x86q\x06"
                                     "X\x01\x00\x00\x00"
                                     "dq\x07K\x01K\x02K\x03\x87q\x08"
                                     "X\x01\x00\x00\x00"
                                     "eq\t(K\x01K\x02K\x03K\x04tq\n"
                                     "X\x01\x00\x00\x00"
                                     "fq\x0b]q\x0c"
                                     "X\x01\x00\x00\x00gq\r}q\x0e"
                                     "X\x01\x00\x00\x00hq\x0f)"
                                     "X\x01\x00\x00\x00iq\x10]q\x11K\t"
                                     "au."));
    const struct pickle_value *root = pickle_root(&p);

    check_list(&p, pickle_find(&p, root, "a"), 2, 3);
    check_list(&p, pickle_find(&p, root, "b"), 1, 3);
    check_list(&p, pickle_find(&p, root, "c"), 2, 9);
    check_list(&p, pickle_find(&p, root, "d"), 3, 6);
    check_list(&p, pickle_find(&p, root, "e"), 4, 10);
    check_list(&p, pickle_find(&p, root, "f"), 0, 0);
    assert_int_equal(pickle_find(&p, root, "g")->kind, PICKLE_DICT);
    check_list(&p, pickle_find(&p, root, "h"), 0, 0);
    check_list(&p, pickle_find(&p, root, "i"), 1, 9);
    assert_null(pickle_find(&p, root, "aa"));
    assert_null(pickle_find(&p, pickle_find(&p, root, "a"), "a"));
    assert_null(pickle_find(&p, NULL, "a"));
    assert_int_equal(pickle_begin(NULL), 0);
    pickle_deinit(&p);
    pickle_deinit(&p);
    /* One pair. */
    p = read_all(BYTES("\x80\x02}X\x01\x00\x00\x00"
                       "aK\x07s."));
    assert_int_equal(pickle_find(&p, pickle_root(&p), "a")->integer, 7);
    pickle_deinit(&p);
}

/* The memo has what was put into it, also by long numbers, and after 256. */
static void test_what_is_remembered(void **state)
{
    struct pickle p = read_all(BYTES("\x80\x02](K\x05q\x00K\x06r\x01\x00\x00\x00h\x00j\x01\x00\x00"
                                     "\x00K\x01q\x00h\x00"
                                     "e."));
    char *many = malloc(4096);
    size_t len = 0;

    check_list(&p, pickle_root(&p), 6, 5 + 6 + 5 + 6 + 1 + 1);
    pickle_deinit(&p);
    assert_non_null(many);
    many[len++] = ']';
    many[len++] = '(';
    for (unsigned i = 0; i < 300; i++) {
        many[len++] = 'K';
        many[len++] = (char)(i % 100);
        many[len++] = i < 256 ? 'q' : 'r';
        many[len++] = (char)(i & 0xff);
        if (i >= 256) {
            many[len++] = 1;
            many[len++] = 0;
            many[len++] = 0;
        }
    }
    memcpy(many + len,
        "j\x2b\x01\x00\x00"
        "e.",
        7);
    p = read_all(many, len + 7);
    check_list(&p, pickle_root(&p), 301, 3 * 4950 + 99);
    pickle_deinit(&p);
    free(many);
}

/* It has an end, since each list has its own places. */
static void test_a_list_in_itself(void **state)
{
    struct pickle p = read_all(BYTES("\x80\x02]q\x00h\x00"
                                     "a."));

    check_list(&p, pickle_root(&p), 1, 0);
    pickle_deinit(&p);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } cases[] = {
        {BYTES(""), "is cut off"},
        {BYTES("\x80"), "is cut off"},
        {BYTES("\x80\x02"), "is cut off"},
        {BYTES("\x80\x04K\x01."), "is of protocol 4, and 2 is read"},
        {BYTES("\x80\x02X\xff\xff\xff\x7f"
               "a."),
            "is cut off"},
        {BYTES("\x80\x02\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09."),
            "has an integer of 9 bytes, and 8 are read"},
        {BYTES("\x80\x02"
               "cos\nsystem\n."),
            "has the instruction 0x63, which makes no plain value"},
        {BYTES("\x80\x02)R."), "has the instruction 0x52, which makes no plain value"},
        {BYTES("."), "ends with 0 values"},
        {BYTES("K\x01K\x02."), "ends with 2 values"},
        {BYTES("(K\x01."), "ends with 1 values, and 1 containers that are not ended"},
        {BYTES("K\x01.K"), "has 1 bytes after its end"},
        {BYTES("a."), "adds to a container that is not there"},
        {BYTES("K\x01"
               "a."),
            "adds to a container that is not there"},
        {BYTES("K\x01K\x02"
               "a."),
            "adds to what is no container of that kind"},
        {BYTES("}K\x02"
               "a."),
            "adds to what is no container of that kind"},
        {BYTES("](K\x01K\x02u."), "adds to what is no container of that kind"},
        {BYTES("}(K\x01u."), "adds to what is no container of that kind"},
        {BYTES("](](e."), "ends with 2 values, and 1 containers"},
        {BYTES("(](e"), "is cut off"},
        {BYTES("e."), "ends a container that was not begun"},
        {BYTES("t."), "ends a container that was not begun"},
        {BYTES("](K\x01\x86."), "makes a tuple of more than there is"},
        {BYTES("q\x00."), "remembers a value that is not there"},
        {BYTES("K\x01q\x05."), "remembers value 5 after value 0"},
        {BYTES("K\x01r\xff\xff\xff\xff."), "remembers value 4294967295 after value 0"},
        {BYTES("h\x00."), "takes value 0, and has remembered 0"},
        {BYTES("(((((((((((((((((((((((((((((((((."), "has more than 32 containers in each other"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pickle p = {.root = 77};
        struct err e = ERR_NULL;

        assert_int_equal(pickle_read(&p, cases[i].bytes, cases[i].len, &e), -EINVAL);
        if (!strstr(e.text, cases[i].words))
            fail_msg("%zu: \"%s\" is not in \"%s\"", i, cases[i].words, e.text);
        assert_int_equal(p.root, 77);
    }
}

static void test_more_than_is_read(void **state)
{
    size_t len = PICKLE_BYTES_MAX + 1;
    char *bytes = malloc(len);
    struct pickle p = {.root = 77};
    struct err e = ERR_NULL;

    assert_non_null(bytes);
    memset(bytes, 'N', len);
    assert_int_equal(pickle_read(&p, bytes, len, &e), -EINVAL);
    assert_non_null(strstr(e.text, "is of more than 16777216 bytes"));
    e.text[0] = '\0';
    assert_int_equal(pickle_read(&p, bytes, PICKLE_BYTES_MAX, &e), -EINVAL);
    assert_non_null(strstr(e.text, "has more than 1048576 values"));
    assert_int_equal(p.root, 77);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_other_plain_values),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_what_is_remembered),
        cmocka_unit_test(test_a_list_in_itself),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_more_than_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
