/*
 * hosts_file.h - our block in the machine's hosts file.
 *
 * The file is replaced whole, by a rename, under a lock that every agent takes
 * which shares it. Where it is mounted on its own, as in a container or below
 * /etc/netns, it cannot be renamed over, and is written in its place.
 */
#pragma once

#include <stdbool.h>

struct err;

#define HOSTS_FILE_DEFAULT "/etc/hosts"

/** Longest file that is read or written, bytes. */
#define HOSTS_FILE_MAX (16u << 20)

/**
 * hosts_file_put() - make the owner's part of the file exactly @block
 * @path:	made if it does not exist, unless there is nothing to put
 * @owner:	of the block, see mesh/names/hosts.h
 * @block:	NULL: the owner leaves
 * @ret_changed:	set on success; false when it was there already
 *
 * Return: 0; or negative errno with words that name @path.
 */
int hosts_file_put(
    const char *path, const char *owner, const char *block, bool *ret_changed, struct err *e);
