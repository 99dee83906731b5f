/*
 * child.h - a person's command and the processes it starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/*
 * The processes that a process has started, and what these are.
 *
 * Of a process that has ended meanwhile, or that the kernel does not show, nothing is told.
 *
 * Threads: any.
 */

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

/** How a process is. */
struct process_stat {
    char state;            /* of its first thread, as ps(1) has it: 'R', 'S', 'D', 'T', ... */
    uint64_t user_ticks;   /* that it has computed, in sysconf(_SC_CLK_TCK) a second */
    uint64_t kernel_ticks; /* that the kernel has computed for it */
};

/** descendants_stat() - false: it has ended, or the kernel does not say. */
bool descendants_stat(int pid, struct process_stat *ret);

/** process_stat_parse() - from a line of /proc/PID/stat; the name in it may be anything. */
bool process_stat_parse(const char *line, struct process_stat *ret);

/** descendants_sockets() - the inodes of the sockets that the process has open, @cap at most.
 * Return: how many; 0 also where this user may not look. */
unsigned descendants_sockets(int pid, uint32_t *ret, unsigned cap);

/** descendants_maps() - is a file whose name begins so in the process's memory map? */
bool descendants_maps(int pid, const char *prefix);

/*
 * A person's command, run in our place or as our child.
 *
 * Unlike process.h's programs it keeps our terminal, standard streams, session
 * and process group. Its words are looked up in PATH.
 */

/** How a command has ended. */
struct child_end {
    int status;         /* its exit status; 128 and the signal's number when it was killed */
    bool was_signalled; /* somebody had told it to end, by a signal */
    bool is_by_person;  /* and the first one is what a terminal sends: SIGINT or SIGQUIT */
    bool was_stopped;   /* the watch had it end */
};

/** What a watch wants. */
struct child_order {
    unsigned next_ms; /* when it is to be called again; 0: never */
    bool stops;       /* send the command SIGTERM, and SIGKILL when it lasts too long */
};

/** A function that the waiting thread calls while the command runs; @pid: the command's. */
struct child_watch {
    struct child_order (*fn)(void *ctx, int pid);
    void *ctx;
    unsigned first_ms; /* after the start; 0: never */
    unsigned stop_ms;  /* from SIGTERM to SIGKILL; 0: it is not killed */
};

/** There is no such command; a shell's status for it is 127. */
#define CHILD_E_NOT_FOUND 1

/** It is there, and cannot be run; 126. */
#define CHILD_E_NOT_EXECUTABLE 2

/**
 * child_become() - exec
 * @words:	ends with NULL
 * @env:	its environment; ends with NULL
 *
 * Return: only when it failed: CHILD_E_NOT_FOUND or CHILD_E_NOT_EXECUTABLE, with words.
 */
int child_become(char *const words[], char *const env[], struct err *e);

/**
 * child_run() - run it, and wait for its end
 * @watch:	borrowed; NULL: nothing is done
 * @ret:	set on success
 *
 * Signals that are sent to us go on to it; those of a terminal reach it anyway.
 * It does not outlive us, and when it is killed by a signal that we have not
 * passed on, as that of a watch, its own children do not outlive it.
 *
 * Threads: the process must have only one; its signal mask is used.
 *
 * Return: 0; CHILD_E_NOT_FOUND or CHILD_E_NOT_EXECUTABLE; or negative errno; with words.
 */
int child_run(char *const words[], char *const env[], const struct child_watch *watch,
    struct child_end *ret, struct err *e);

/** child_has_children() - has that process any? True also when the kernel does not tell. */
bool child_has_children(int pid);
