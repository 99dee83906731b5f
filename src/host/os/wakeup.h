/*
 * wakeup.h - wake a thread that sleeps in poll() or epoll_wait(), by an eventfd.
 *
 * The sleeper waits for the descriptor to be readable; any number of signals before it looks are
 * one. It clears the descriptor before it looks for the work, so that later work wakes it again.
 */
#pragma once

#include <stdbool.h>

/** wakeup_open() - a descriptor that is not readable yet, non-blocking. Or negative errno. */
int wakeup_open(void);

/** wakeup_signal() - make it readable. Any thread; never blocks. */
void wakeup_signal(int fd);

/** wakeup_clear() - make it unreadable. Was it readable? */
bool wakeup_clear(int fd);
