/*
 * cleanup.h - scope-bound destructors for set-up and control code.
 *
 * Packet and crypto code does not use these: there, one forward `goto out`
 * keeps the order of wiping and releasing visible.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** _cleanup_() - run @fn on the variable's address when it leaves scope. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

/** TAKE_PTR() - the pointer's value; the variable becomes NULL (ownership moves out). */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __auto_type take_ptr_ = (p);                                                               \
        (p) = NULL;                                                                                \
        take_ptr_;                                                                                 \
    })

/** TAKE_FD() - the descriptor; the variable becomes -1 (ownership moves out). */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

/** freep() - cleanup handler for anything from malloc(). */
static inline void freep(void *p)
{
    free(*(void **)p);
}

/** closep() - cleanup handler for a file descriptor; -1 is fine. */
static inline void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/** fclosep() - cleanup handler for a stdio stream; NULL is fine. */
static inline void fclosep(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}
