/*
 * capture.h - run another program to its end and keep what it prints.
 *
 * For tools that print what we want to know. Unlike process.h's programs it stays in our session,
 * so a person who interrupts us interrupts it too, and its standard error is ours unless that is
 * kept as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct str;

/** What to run. Everything is borrowed. */
struct capture_wish {
    const char *const *argv; /* looked up in PATH; ends with NULL */
    unsigned timeout_ms;     /* then it is killed */
    size_t max;              /* bytes of output that are kept; what follows is read and dropped */
    bool takes_errors;       /* its standard error is kept as well, in the order of the writing */
    bool drops_errors;       /* its standard error leads nowhere */
};

/** There is no such program, or it cannot be run. */
#define CAPTURE_E_NOT_RUN 1

/**
 * capture_run() - run it, and wait for its end
 * @out:	its output is appended
 * @ret_status:	its exit status; 128 and the signal's number when it was killed
 *
 * It does not outlive us.
 *
 * Return: 0; CAPTURE_E_NOT_RUN with words; -ETIMEDOUT with words; or another negative errno with
 * words.
 */
int capture_run(const struct capture_wish *wish, struct str *out, int *ret_status, struct err *e);
