/*
 * end_signals.h - the signals by which a person or a service manager ends a
 * program, as a descriptor.
 */
#pragma once

/**
 * end_signals_open() - SIGTERM and SIGINT from now on
 *
 * Both are blocked in this thread and in those that it starts later. SIGPIPE is
 * ignored: a reader that went away is an error of the write.
 *
 * Return: a descriptor that is readable once one has come; or negative errno.
 */
int end_signals_open(void);
