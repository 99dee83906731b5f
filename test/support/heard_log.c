/* heard_log.c - see heard_log.h. */
#include "test/support/heard_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static int shown = -1;
static int kept = -1;
static char text[8192];

void heard_log_begin(void)
{
    (void)fflush(stderr);
    shown = dup(STDERR_FILENO);
    kept = memfd_create("log", MFD_CLOEXEC);
    assert_true(shown >= 0 && kept >= 0);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
}

const char *heard_log_end(void)
{
    ssize_t n;

    (void)fflush(stderr);
    assert_int_equal(dup2(shown, STDERR_FILENO), STDERR_FILENO);
    n = pread(kept, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    (void)close(shown);
    (void)close(kept);
    return text;
}
