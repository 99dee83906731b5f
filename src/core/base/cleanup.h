/*
 * cleanup.h - scope-bound destructors for set-up and control code.
 *
 * Packet and crypto code does not use these: there, one forward `goto out`
 * keeps the order of wiping and releasing visible.
 */
#pragma once

#include <stdlib.h>

/** _cleanup_() - run @fn on the variable's address when it leaves scope. */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

/** TAKE_PTR() - the pointer's value; the variable becomes NULL (ownership moves out). */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __auto_type take_ptr_ = (p);                                                               \
        (p) = NULL;                                                                                \
        take_ptr_;                                                                                 \
    })

/** freep() - cleanup handler for anything from malloc(). */
static inline void freep(void *p)
{
    free(*(void **)p);
}
