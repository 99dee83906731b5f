/*
 * machines.h - the recorded machines of test/platform/machines, for the tests that read them.
 */
#pragma once

#include <limits.h>

#define MACHINES_PATH_MAX PATH_MAX

struct fabric_facts;

/** machines_each() - call @fn with the name of each, in order; fails the test if there are few. */
void machines_each(void (*fn)(const char *name));

/**
 * machines_unpack() - lay a machine's files below a new directory
 * @root:	set to the directory, for machines_remove()
 *
 * A line "== PATH" begins a file; what follows is its text. Fails the test when it cannot.
 */
void machines_unpack(const char *name, char root[static MACHINES_PATH_MAX]);

/** machines_remove() - remove that directory and all in it. */
void machines_remove(const char *root);

/** machines_read() - what a job would find of that machine. */
void machines_read(struct fabric_facts *ret, const char *name);

/**
 * machines_compare() - fail the test unless the file NAME.@suffix says @text
 *
 * With GOLDEN_REWRITE=1 in the environment the file is written instead.
 */
void machines_compare(const char *name, const char *suffix, const char *text);
