/*
 * tree.h - reads small text files below a root: this machine's, or those of a recorded machine.
 *
 * What a machine is made of is read from /sys, /proc and a few files of the distribution. The tests
 * read the same files below test/platform/machines, so that no such machine is needed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TREE_NAME_MAX                                                                              \
    64 /* bytes of an entry's name, with its zero; longer ones are passed over                     \
        */

/** Where the files are. */
struct tree {
    const char *root; /* borrowed; "" is this machine */
};

/**
 * tree_read() - the text of a file, without the white space at its end
 * @path:	from the root, begins with "/"
 * @ret:	of @cap bytes; set to "" when the file cannot be read; control bytes other than a
 *		newline become spaces, and what does not fit is cut off
 *
 * Return: false if there is no such file, or nothing in it.
 */
bool tree_read(const struct tree *t, const char *path, char *ret, size_t cap);

/** tree_has() - is there a file or a directory of that name? */
bool tree_has(const struct tree *t, const char *path);

/**
 * tree_list() - the names in a directory, sorted: "eth2" stands before "eth10"
 * @ret:	room for @max names; more are passed over
 *
 * Return: how many names; 0 when there is no such directory.
 */
size_t tree_list(const struct tree *t, const char *dir, char (*ret)[TREE_NAME_MAX], size_t max);
