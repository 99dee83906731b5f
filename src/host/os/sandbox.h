/*
 * sandbox.h - a process gives up what it does not need: user, capabilities, files, system calls.
 *
 * Theory of operation. A daemon is started by root. Before it begins its work it calls
 * sandbox_enter() once, which does, in this order: no new privileges, no core dumps and no tracing;
 * memory that is not swapped out, where the process holds keys;
 * the file system narrowed to a list of paths (Landlock, where the kernel has it); another user,
 * and only the capabilities that are named; and an allow list of system calls (seccomp). All of it
 * holds for threads that are started later, and for programs that the process starts: these can
 * only give up more. Nothing of it can be taken back.
 *
 * A system call that is not in the list ends the process with SANDBOX_EXIT and is named in one line
 * on standard error. sandbox_calls.c has the lists, each group with its reason.
 *
 * Builds with a sanitizer have no list of calls, because the sanitizer's own calls are not known.
 *
 * Threads: sandbox_enter() while the process has one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/** Exit status of a process that made a system call which is not in its list. */
#define SANDBOX_EXIT 86

/** What a process is; each has its list of system calls. */
enum sandbox_kind {
    SANDBOX_HUB,        /* weft hub up */
    SANDBOX_AGENT,      /* weft agent, and weft hub up --relay-only */
    SANDBOX_WG,         /* weft wg */
    SANDBOX_PROBE,      /* weft probe: its sockets are open already */
    SANDBOX_RENDEZVOUS, /* serves jobs on sockets that it was handed: no files, no other socket */
    SANDBOX_MEASURE,    /* the measuring service of an agent */
    SANDBOX_HOSTS,      /* writes the hosts file for the agent */
    SANDBOX_GPUS,       /* asks the GPUs' driver for the agent, by the driver's own library */
    SANDBOX_N,
};

/** sandbox_kind_has_keys() - it holds secrets, so its memory is locked. */
bool sandbox_kind_has_keys(enum sandbox_kind kind);

/** sandbox_kind_names - "hub", "agent", ...: as the log has it. */
extern const char *const sandbox_kind_names[];

/* What may be done with a path and all that lies below it. */
enum {
    SANDBOX_READ = 1 << 0,  /* read files, list directories */
    SANDBOX_WRITE = 1 << 1, /* change files, make and remove files, directories and sockets */
    SANDBOX_EXEC = 1 << 2,  /* start it as a program */
};

/** One entry of the list of paths. */
struct sandbox_path {
    const char *path; /* borrowed; what does not exist is left out */
    unsigned access;  /* SANDBOX_READ, ... */
};

#define SANDBOX_CAP(number) (UINT64_C(1) << (number)) /* CAP_NET_ADMIN of <linux/capability.h> */

/** What a process keeps. */
struct sandbox {
    enum sandbox_kind kind;
    uid_t uid;             /* to become, when the process is root; else it stays who it is */
    gid_t gid;             /* the same */
    uint64_t capabilities; /* SANDBOX_CAP()s that stay; those that it does not have are left out */
    bool may_start;        /* programs that it starts have these capabilities, too */
    const struct sandbox_path *paths; /* borrowed; all other files are out of reach */
    size_t n_paths;
    bool all_files; /* leave the file system as it is; @paths is not looked at */
};

/** What has become of it, for one line in the log. */
struct sandbox_result {
    uint64_t capabilities; /* that the process has now */
    bool has_landlock;     /* the list of paths holds */
    bool has_calls;        /* the list of system calls holds; not in sanitizer builds */
    bool is_locked;        /* its memory is not swapped out; always false where it holds no keys */
};

/**
 * sandbox_enter() - give up all that is not named
 * @ret:	what holds now; NULL if not wanted
 *
 * Spec: capabilities(7), landlock(7), seccomp(2).
 *
 * Return: 0; or negative errno with words: the process must end then, as some of it may hold.
 */
int sandbox_enter(const struct sandbox *s, struct sandbox_result *ret, struct err *e);

/** sandbox_format_capabilities() - "net_admin net_raw", or "none". Returns @buf. */
const char *sandbox_format_capabilities(uint64_t set, char *buf, size_t cap);

/** sandbox__calls() - a part of sandbox_enter(), in sandbox_calls.c: the list of system calls, for
 * all threads. 0 or negative errno with words. */
int sandbox__calls(enum sandbox_kind kind, bool *ret_holds, struct err *e);
