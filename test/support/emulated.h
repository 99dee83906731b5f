/*
 * emulated.h - whether a test runs in an emulator of its processor, as that for arm64 does on x86.
 *
 * Such an emulator (qemu-user) hands system calls on to this machine's kernel, but does not know
 * all of them. On a machine of the program's own processor nothing here skips anything.
 */
#pragma once

#include <stdbool.h>

/* Exit status of a program none of whose tests could run; meson knows it. */
#define EMULATED_SKIPPED 77

/**
 * emulated_lacks() - is this program emulated, so that there is no @what? Then says so.
 *
 * The test is to be skipped then.
 */
bool emulated_lacks(const char *what);
