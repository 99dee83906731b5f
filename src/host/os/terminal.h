/*
 * terminal.h - a terminal that is written whole, screen by screen, and read key by key.
 *
 * Theory of operation. While it is open, the terminal shows its alternate screen without a cursor,
 * and hands over each byte at once and without echo. It still makes signals of ^C, ^Z and ^\. What
 * it was set to before is restored by terminal_close(), and by the handlers of signals with which a
 * process dies of a fault of its own. The signals by which others end, stop or resize it are read
 * from a descriptor instead (terminal_signal()), so that they end the loop in order. After SIGSTOP,
 * which nobody sees coming, the shell has set the terminal for itself; so each SIGCONT has it set
 * anew.
 *
 * Only one is open at a time.
 *
 * Threads: one thread's; others that are started after terminal_open() have these signals blocked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

/** A terminal that is open. */
struct terminal {
    int signals; /* readable when one has come */
};

#define TERMINAL_NULL {-1}

/** terminal_is_there() - are standard input and standard output one? */
bool terminal_is_there(void);

/** terminal_open() - 0, or negative errno with words. */
int terminal_open(struct terminal *t, struct err *e);

/** terminal_close() - idempotent. */
void terminal_close(struct terminal *t);

/** What terminal_signal() says. */
enum terminal_event {
    TERMINAL_EVENT_NONE,
    TERMINAL_EVENT_REDRAW, /* it has another size, or this process goes on after a stop */
    TERMINAL_EVENT_END,    /* SIGTERM, SIGINT, SIGHUP or SIGQUIT */
};

/**
 * terminal_signal() - take a signal that has come; stops this process for a SIGTSTP (^Z)
 * @ret_signal:	which, for TERMINAL_EVENT_END
 */
enum terminal_event terminal_signal(struct terminal *t, int *ret_signal);

/** terminal_size() - as it is now; 80 and 24 where it does not say. */
void terminal_size(unsigned *ret_columns, unsigned *ret_lines);

/**
 * terminal_draw() - show @lines, with a newline between two, in place of what is there
 * @is_new:	nothing of what is there is as it was drawn
 *
 * Return: false: the terminal is gone.
 */
bool terminal_draw(const char *lines, bool is_new);
