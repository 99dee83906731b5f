/* captured_log.c - see captured_log.h. */
#include "test/support/captured_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

struct captured_log captured_log_begin(void)
{
    struct captured_log c = {.file = memfd_create("log", 0), .terminal = dup(STDERR_FILENO)};

    assert_true(c.file >= 0 && c.terminal >= 0);
    assert_true(dup2(c.file, STDERR_FILENO) >= 0);
    return c;
}

void captured_log_take(const struct captured_log *c, char ret[static CAPTURED_LOG_MAX])
{
    ssize_t n;

    assert_true(dup2(c->terminal, STDERR_FILENO) >= 0);
    n = pread(c->file, ret, CAPTURED_LOG_MAX - 1, 0);
    assert_true(n >= 0);
    ret[n] = '\0';
    (void)close(c->file);
    (void)close(c->terminal);
}

void captured_log_end(const struct captured_log *c, const char *expected)
{
    char buf[CAPTURED_LOG_MAX];

    captured_log_take(c, buf);
    assert_string_equal(buf, expected);
}
