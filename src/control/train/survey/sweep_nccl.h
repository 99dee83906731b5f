/*
 * sweep_nccl.h - runs all_reduce_perf of nccl-tests on all members that are up, by mpirun.
 *
 * mpirun reaches the other machines by ssh, and the program has to be there too; both are the
 * person's to set up. The hostfile, the variables of NCCL and those of mpirun are made here.
 */
#pragma once

#include <stdbool.h>

struct err;
struct members;
struct sweep;
struct nccl_tests;

/** What to run. Pointers are borrowed. */
struct sweep_nccl {
    const char *command; /* path of all_reduce_perf, or a command with blanks that runs it, such as
                            one in a container; NULL: sweep_nccl_find() */
    const char *socket_path; /* the agent's */
    const struct members *members;
};

/** sweep_nccl_find() - where all_reduce_perf is: in PATH or where images have it; NULL: nowhere. */
const char *sweep_nccl_find(void);

/**
 * sweep_nccl_run() - run it
 * @ret:	all zero; its sizes are filled in
 * @tests:	all zero; likewise, with what NCCL's log has said
 *
 * Blocks for some minutes, and for a quarter of an hour at most.
 *
 * Return: 0; or non-zero with words: it could not be run, or it has printed no size.
 */
int sweep_nccl_run(
    const struct sweep_nccl *what, struct sweep *ret, struct nccl_tests *tests, struct err *e);
