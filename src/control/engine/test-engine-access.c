/* test-engine-access.c - rules as they are said to a data plane, and what it answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "engine/engine_access.h"

static void test_request(void **state)
{
    struct str out = STR_NULL;

    engine_access_encode("refuse in\nrule ssh\n", 7, &out);
    assert_string_equal(
        str_text(&out), "set=1\naccess=begin\naccess=refuse in\naccess=rule ssh\naccess=end 7\n\n");
    str_deinit(&out);
    engine_access_encode(NULL, 7, &out);
    assert_string_equal(str_text(&out), "set=1\naccess=off\n\n");
    str_deinit(&out);
}

static int decode(struct engine_access *ret, const char *text, struct err *e)
{
    *e = (struct err)ERR_NULL;
    return engine_access_decode(ret, text, strlen(text), e);
}

static void test_answer(void **state)
{
    static const char good[] =
        "access_tag=77\naccess_rules=2\naccess_passed=ssh,5\naccess_passed=web,"
        "18446744073709551615\n"
        "access_kind=10.42.0.3,10.42.0.2,6,23,5\nunknown=1\naccess_refused=7\nerrno=0\n\n";
    struct engine_access a = {.is_on = false};
    struct err e;

    assert_int_equal(decode(&a, good, &e), 0);
    assert_true(a.is_on);
    assert_int_equal(a.tag, 77);
    assert_int_equal(a.refused, 7);
    assert_int_equal(a.n_rules, 2);
    assert_string_equal(a.rules[0].name, "ssh");
    assert_int_equal(a.rules[1].passed, UINT64_MAX);
    assert_int_equal(a.n_kinds, 1);
    assert_int_equal(a.kinds[0].from.b[15], 3);
    assert_int_equal(a.kinds[0].protocol, 6);
    assert_int_equal(a.kinds[0].port, 23);
    assert_int_equal(a.kinds[0].packets, 5);
    engine_access_deinit(&a);
    engine_access_deinit(&a);
    assert_int_equal(decode(&a, "errno=0\n\n", &e), 0);
    assert_false(a.is_on);
}

static void test_what_is_wrong(void **state)
{
    static const char *const wrong[] = {
        "access_tag=\nerrno=0\n\n",
        "access_tag=-1\nerrno=0\n\n",
        "access_passed=ssh\nerrno=0\n\n",
        "access_passed=ssh,\nerrno=0\n\n",
        "access_passed=,1\nerrno=0\n\n",
        "access_kind=10.42.0.3,10.42.0.2,6,23\nerrno=0\n\n",
        "access_kind=10.42.0.3,10.42.0,6,23,1\nerrno=0\n\n",
        "access_kind=10.42.0.3,10.42.0.2,256,23,1\nerrno=0\n\n",
        "access_kind=10.42.0.3,10.42.0.2,6,65536,1\nerrno=0\n\n",
        "access_kind=10.42.0.3,10.42.0.2,6,23,1,\nerrno=0\n\n",
        "access_refused=x\nerrno=0\n\n",
        "access_tag=1\n",
    };
    struct engine_access a = {.is_on = false};
    struct err e;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        if (decode(&a, wrong[i], &e) != -EBADMSG)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_int_not_equal(err_text(&e)[0], '\0');
    }
    assert_int_equal(decode(&a, "errno=22\n\n", &e), -EINVAL);
    assert_false(a.is_on);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
