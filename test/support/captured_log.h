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

/** Longest text that is captured, with its end. */
#define CAPTURED_LOG_MAX 2048

/** captured_log_take() - what there was; it is not captured any more. */
void captured_log_take(const struct captured_log *c, char ret[static CAPTURED_LOG_MAX]);

/** captured_log_end() - it is exactly @expected, or the test fails. */
void captured_log_end(const struct captured_log *c, const char *expected);
