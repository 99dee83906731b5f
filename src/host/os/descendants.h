/*
 * descendants.h - the processes that a process has started, and what these are.
 *
 * Of a process that has ended meanwhile, or that the kernel does not show, nothing is told.
 *
 * Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Processes of one walk at most; those beyond are not visited. */
#define DESCENDANTS_MAX 4096

/** descendants_fn - takes a process. Return: false: no more are wanted. */
typedef bool (*descendants_fn)(void *ctx, int pid);

/**
 * descendants_walk() - visit all that @pid has started, and that these have started; not itself
 *
 * Those whose parent has ended are found if they have come to @pid, as to one that reaps them
 * (prctl(2), PR_SET_CHILD_SUBREAPER). It reads one small file for each thread of each process.
 */
void descendants_walk(int pid, descendants_fn fn, void *ctx);

/** descendants_name() - the process's name, of 15 bytes at most; "" when it is not known. */
const char *descendants_name(int pid, char buf[static 16]);

/** descendants_maps() - is a file whose name begins so in the process's memory map? */
bool descendants_maps(int pid, const char *prefix);
