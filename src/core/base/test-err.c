/* test-err.c - failures: their code, their text and what is put before it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"

static void test_set(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(err_set(&e, -EINVAL, "port %d is %s", 7, "odd"), -EINVAL);
    assert_int_equal(e.code, -EINVAL);
    assert_string_equal(err_text(&e), "port 7 is odd");
    assert_int_equal(err_set(NULL, -ENOMEM, "nobody asks"), -ENOMEM);
}

/* Without a text it is the system's, of a code of either sign. */
static void test_without_a_text(void **state)
{
    struct err e = ERR_NULL;

    e.code = -ENOENT;
    assert_string_equal(err_text(&e), strerror(ENOENT));
    e.code = ENOENT;
    assert_string_equal(err_text(&e), strerror(ENOENT));
    e.code = 0;
    assert_string_equal(err_text(&e), strerror(0));
}

static void test_prefix(void **state)
{
    struct err e = ERR_NULL;

    e.code = -ENOENT;
    assert_int_equal(err_prefix(&e, "file \"%s\"", "a\n"), -ENOENT);
    assert_string_equal(e.text, "file \"a?\": No such file or directory");
    assert_int_equal(err_prefix(&e, "%s", ""), -ENOENT);
    assert_string_equal(e.text, ": file \"a?\": No such file or directory");
    assert_int_equal(err_prefix(NULL, "nobody asks"), -EINVAL);
}

/* What is too long is cut, and what was there before is what goes. */
static void test_long_texts(void **state)
{
    char text[sizeof(((struct err *)0)->text) + 2];
    const size_t most = sizeof(text) - 3;

    memset(text, 'x', sizeof(text));
    for (size_t len = most - 3; len <= most + 1; len++) {
        struct err e = ERR_NULL;

        (void)err_set(&e, -EINVAL, "%.*s", (int)len, text);
        assert_int_equal(strlen(e.text), len < most ? len : most);
        (void)err_set(&e, -EINVAL, "why");
        assert_int_equal(err_prefix(&e, "%.*s", (int)len, text), -EINVAL);
        assert_int_equal(strlen(e.text), most);
        assert_memory_equal(e.text, text, len < most ? len : most);
        if (len < most)
            assert_int_equal(e.text[len], ':');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_without_a_text),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
