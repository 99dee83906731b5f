/*
 * run_dir.h - a directory of one run of `weft run`, that only this user can enter: NCCL's logs and
 * the job's plan are in it.
 */
#pragma once

struct err;

/** Bytes of its path, with its zero: a value of a variable has room for a file in it. */
#define RUN_DIR_MAX 256

/**
 * run_dir_name() - a path at which one can be made, and which nobody can guess
 * @ret:	set to it, below TMPDIR or /tmp
 *
 * Nothing is there, neither yet nor for a moment, so that whoever watches the folder learns no
 * name. What is interrupted before the job begins, such as a test of the network that takes
 * minutes, leaves nothing behind.
 *
 * Return: 0 or negative errno with words.
 */
int run_dir_name(char ret[static RUN_DIR_MAX], struct err *e);

/** run_dir_make() - make it, at a path of run_dir_name(). 0 or negative errno with words. */
int run_dir_make(const char *dir, struct err *e);

/**
 * run_dir_remove() - remove it, and the files in it
 *
 * Nothing happens when @dir is "", or a symbolic link, or no directory of this user alone: then
 * run_dir_make() did not make it.
 */
void run_dir_remove(const char *dir);
