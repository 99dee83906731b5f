/*
 * privileges.h - what a daemon keeps of root's rights once it is set up.
 *
 * A daemon that root has started becomes the user of --user, with the capabilities that its work
 * needs. What it has to write is given to that user before. Where that cannot be, it stays root,
 * but without root's capabilities: it owns the system's files, and is bound by the modes of all
 * others. A daemon that was not started by root keeps its user.
 *
 * It stays root when:
 *   - there is no such user, and --user does not insist on one;
 *   - a directory or device is out of that user's reach (a state directory below /root,
 * /dev/net/tun with the mode 0600);
 *   - others may enter a state directory: it may hold more than the daemon's files.
 */
#pragma once

#include <stddef.h>

#include "os/sandbox.h"

/** The user that the package's sysusers.d file makes; the one that need not exist. */
#define PRIVILEGES_USER "weft"

/** The row of --user in a daemon's table of options. */
#define PRIVILEGES_OPTION(field)                                                                   \
    {                                                                                              \
        "--user", "NAME", option_text, field, PRIVILEGES_USER,                                     \
            "started by root: the user to run as; root stays root, without most of its rights"     \
    }

/** What a path is to the daemon, and so what is done with it. */
enum privileges_use {
    PRIVILEGES_STATE,  /* its own directory: made if it is missing, and given with its files */
    PRIVILEGES_RUN,    /* a directory of sockets: made and given below /run, else it has to be
                          writable already */
    PRIVILEGES_SOCKET, /* a socket; one that an earlier run as root has left is given */
    PRIVILEGES_WRITE,  /* a directory in which files are made, if it is there */
    PRIVILEGES_READ,   /* to be read */
    PRIVILEGES_DEVICE, /* to be read and written */
};

/** One path that the daemon needs. */
struct privileges_path {
    const char *path; /* borrowed; NULL: none */
    enum privileges_use use;
};

#define PRIVILEGES_PATHS_MAX 24

/** Longest line about what is left, with its zero. */
#define PRIVILEGES_SAID_MAX 512

/** What a daemon needs. */
struct privileges {
    enum sandbox_kind kind;
    const char *user;           /* as --user says */
    uint64_t capabilities;      /* SANDBOX_CAP()s */
    uint64_t root_capabilities; /* SANDBOX_CAP()s that it keeps besides when it stays root */
    bool may_start;             /* it starts our own program, with these capabilities */
    bool has_tunnel;            /* it makes TUN interfaces, or starts a program that does */
    struct privileges_path paths[PRIVILEGES_PATHS_MAX];
    size_t n_paths;
    char *said; /* borrowed: room for PRIVILEGES_SAID_MAX, for the line of the log; NULL: log it */
};

/** privileges_add() - one more path; @path is borrowed until privileges_drop(). */
void privileges_add(struct privileges *p, const char *path, enum privileges_use use);

/** privileges_add_folder_of() - the folder of @path, as privileges_add(); @buf: PATH_MAX bytes. */
void privileges_add_folder_of(
    struct privileges *p, const char *path, char *buf, enum privileges_use use);

/**
 * privileges_give() - give a daemon's own directory to the user that a service manager starts it as
 * @path:	absolute; the directory, its files and the directories in it
 *
 * Call as root, before the daemon starts. Symbolic links are not followed, and a file that has a
 * second name is left alone: the user could have made that one of a file of somebody else's. A
 * directory that is not there is none of a failure.
 *
 * Return: 0; or negative errno with words.
 */
int privileges_give(const char *path, const char *user, struct err *e);

/**
 * privileges_drop() - give up the rest, and say in one line of the log what is left
 *
 * Threads: while the process has one.
 *
 * Return: 0; or non-zero with words: the daemon must not go on.
 */
int privileges_drop(const struct privileges *p, struct err *e);
