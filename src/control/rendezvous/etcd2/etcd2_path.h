/*
 * etcd2_path.h - paths of an etcd tree. Pure.
 *
 * A clean path has a slash in front of each part, and no part that is "", "." or "..". The root's
 * path is "/".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Longest clean path, bytes; most parts of it. */
#define ETCD2_PATH_MAX  2048
#define ETCD2_DEPTH_MAX 64

/**
 * etcd2_path_clean() - a path as it is kept
 * @ret:	room for ETCD2_PATH_MAX + 1
 *
 * Return: false when it is too long or too deep.
 */
bool etcd2_path_clean(const char *path, char *ret);

/** etcd2_path_is_root() - is the clean @path the root's? */
bool etcd2_path_is_root(const char *path);

/**
 * etcd2_path_next() - the next longer prefix of a clean path that is not the root's
 * @len:	length of the prefix before; 0 at first
 * @part:	set to @path up to the end of its next part
 *
 * Return: the length of @part.
 */
size_t etcd2_path_next(const char *path, size_t len, char part[static ETCD2_PATH_MAX + 1]);

/** etcd2_path_is_below() - does the clean @path lie below @dir? Not when they are the same. */
bool etcd2_path_is_below(const char *path, const char *dir);
