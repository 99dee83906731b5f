/*
 * resolve_task.h - look names up without waiting for the resolver.
 *
 * Theory of operation. The C library's resolver blocks, for half a minute and more where name
 * servers do not answer. So a detached thread asks it. An owner who frees the task does not wait
 * for that thread, and the last of the two releases what they share. The owner asks from time to
 * time whether the task is done.
 *
 * Threads: all calls are the owner's; what is shared is guarded by a lock that is held for moments.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

struct resolve_task;

/** Most texts of a task, and most addresses that are taken of one name. */
#define RESOLVE_TASK_TEXTS 16
#define RESOLVE_TASK_EACH  8

/** What one text leads to. */
struct resolve_answer {
    char text[HOST_PORT_MAX + 1];                 /* what was asked for */
    struct endpoint endpoints[RESOLVE_TASK_EACH]; /* in the resolver's order, v4 and v6 */
    unsigned n;                                   /* 0: none, and @why says why */
    struct err why;
};

/**
 * resolve_task_start() - begin to look up
 * @texts:	"HOST" or "HOST:PORT", as for resolve_host(); copied
 * @n:		1 to RESOLVE_TASK_TEXTS
 * @dflt_port:	of those without a port
 *
 * Return: 0 or negative errno with words.
 */
int resolve_task_start(struct resolve_task **ret, const char (*texts)[HOST_PORT_MAX + 1],
    unsigned n, uint16_t dflt_port, struct err *e);

/**
 * resolve_task_take() - is it done?
 * @ret:	room for RESOLVE_TASK_TEXTS answers: one of each text, in their order
 *
 * Return: how many; 0 while it is not, and @ret is untouched.
 */
unsigned resolve_task_take(struct resolve_task *t, struct resolve_answer *ret);

/** resolve_task_free() - may be called before the task is done; NULL is fine. Returns NULL. */
struct resolve_task *resolve_task_free(struct resolve_task *t);
