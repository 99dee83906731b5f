/* fd_cleanup.h - scope-bound destructors for descriptors and streams; see base/cleanup.h. */
#pragma once

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

/** TAKE_FD() - the descriptor; the variable becomes -1 (ownership moves out). */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

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
