/* test-log.c - lines of the log, as whoever reads them has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "os/log.h"

/* The line that is logged of @text. */
static const char *logged(const char *text)
{
    static char line[2048];
    int before = dup(STDERR_FILENO);
    int ends[2];
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_info("%s", text);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(ends[1]);
    n = read(ends[0], line, sizeof(line) - 1);
    (void)close(ends[0]);
    assert_true(n > 0);
    line[n] = '\0';
    return line;
}

static void assert_ends(const char *line, const char *end)
{
    assert_true(strlen(line) >= strlen(end));
    assert_string_equal(line + strlen(line) - strlen(end), end);
}

/* A line stays one, and a terminal obeys nothing of it. */
static void test_is_plain(void **state)
{
    log_init("test", LOG_LEVEL_INFO);
    assert_ends(logged("gpu-1 \xc3\xa9"), "test: gpu-1 \xc3\xa9\n");
    assert_ends(logged("a\nb\x1b[2J\x7f"), "test: a?b?[2J?\n");
    assert_ends(logged("\xc2\x9b"
                       "2J \x9b"
                       "2J"),
        "test: ??2J ?2J\n");
}

/* What is cut within a character is still UTF-8. */
static void test_is_cut(void **state)
{
    unsigned n_within = 0;

    log_init("test", LOG_LEVEL_INFO);
    for (unsigned shift = 0; shift < 2; shift++) {
        char text[3000] = "x";
        const char *line;

        for (size_t i = shift; i + 2 < sizeof(text); i += 2)
            memcpy(text + i, "\xc3\xa9", 2);
        line = logged(text);
        n_within += strcmp(line + strlen(line) - 2, "?\n") == 0;
        if (strchr(line, '?') == NULL)
            assert_ends(line, "\xc3\xa9\n");
    }
    assert_int_equal(n_within, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_plain),
        cmocka_unit_test(test_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
