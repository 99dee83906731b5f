/*
 * run_dir.h - a directory of one run of `weft run`, that only this user can enter: NCCL's logs and
 * the job's plan are in it.
 */
#pragma once

struct err;

/** Bytes of its path, with its zero: a value of a variable has room for a file in it. */
#define RUN_DIR_MAX 256

/**
 * run_dir_make() - make one
 * @ret:	set to its path, below TMPDIR or /tmp
 *
 * Return: 0 or negative errno with words.
 */
int run_dir_make(char ret[static RUN_DIR_MAX], struct err *e);

/** run_dir_remove() - remove it, and the files in it. Nothing happens when @dir is "". */
void run_dir_remove(const char *dir);
