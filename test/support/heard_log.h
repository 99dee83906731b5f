/*
 * heard_log.h - what a process writes to standard error, for tests of what a daemon logs.
 */
#pragma once

/** heard_log_begin() - from now on it is kept in a file without a name, and not shown. */
void heard_log_begin(void);

/** heard_log_end() - shown again. Return: what was kept; lent until the next begin. */
const char *heard_log_end(void);
