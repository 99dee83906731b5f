/*
 * captured_log.h - what a test's program writes into its log meanwhile.
 *
 * Lines of the log go to standard error, which is a file in memory in between.
 */
#pragma once

struct captured_log {
    int file;
    int terminal;
};

/** captured_log_begin() - from now on; one at a time. */
struct captured_log captured_log_begin(void);

/** captured_log_end() - it is exactly @expected, or the test fails. */
void captured_log_end(const struct captured_log *c, const char *expected);
