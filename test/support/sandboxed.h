/*
 * sandboxed.h - running a function in a child that has entered a sandbox, and what came of it.
 */
#pragma once

#include "os/sandbox.h"

struct sandboxed {
    int status;      /* exit status; 1000 + the signal that ended it */
    char said[2048]; /* on standard error */
};

/**
 * sandboxed_run() - call @act in a child, in the sandbox @s; its return value is the exit status
 *
 * The test fails when the child cannot enter the sandbox.
 */
struct sandboxed sandboxed_run(const struct sandbox *s, int (*act)(void));

/** sandboxed_plain() - a sandbox of that kind which keeps the user and all files. */
struct sandbox sandboxed_plain(enum sandbox_kind kind);
