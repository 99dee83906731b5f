/*
 * run.h - starts a training command with the environment that it needs.
 *
 * Gathers the facts (the words of the command, the torch on disk, the node, the
 * job's meeting at the hub), has env.h make the plan, applies it and becomes
 * the command. Everything before that takes a fraction of a second.
 */
#pragma once

#include <limits.h>

#include "train/job/command.h"
#include "train/job/env.h"
#include "train/job/node.h"
#include "train/job/torch.h"

struct err;
struct str;

/** What the person said. Texts are borrowed. */
struct run_wish {
    const char *socket_path; /* of the agent */
    const char *job;         /* NULL: named after the script */
    const char *nnodes;      /* NULL: as the command or the environment says */
    const char *rendezvous;  /* "c10d", "etcd-v2" or "none"; NULL: c10d, unless the command says */
    char *const *words;      /* the command, ends with NULL; NULL: none, for `weft env` */
};

struct run {
    const char *socket_path; /* of the agent; borrowed from the wish */
    struct command command;
    struct torch_install torch;
    struct train_node node;
    struct env_meeting meeting;        /* id "": the job needs none from us */
    char job[64];                      /* "": it needs no name */
    bool is_elastic;                   /* the number of nodes is a range */
    unsigned min_nodes;                /* fewest that begin; 0: the job needs no meeting from us */
    char host_name[HOST_NAME_MAX + 1]; /* that the command is to see as the machine's, see
                                          run_take_host_name(); "": the machine's own */
    struct env_plan plan;
};

/** run_check() - is what was said well formed? 0, or -EINVAL with words. */
int run_check(const struct run_wish *wish, struct err *e);

/**
 * run_prepare() - find out all that the plan needs, and make it
 * @ret:	untouched on failure; borrows from @wish
 *
 * Return: 0; or non-zero with words: no agent, no hub, a wish that makes no sense.
 */
int run_prepare(struct run *ret, const struct run_wish *wish, struct err *e);

/**
 * run_take_host_name() - have this process, and the command after it, see run->host_name
 *
 * Before torch 2.0 rank 0 announces the machine's host name, which other nodes
 * may not know, or know as something else. The node's qualified name leads to
 * it everywhere. The name changes for this process only, in a UTS namespace of
 * its own, for which it takes root; the machine keeps its name.
 *
 * Return: false when that may not be; then run->host_name is "".
 */
bool run_take_host_name(struct run *run);

/** run_summary() - append one line that says what will be started, and how it meets. */
void run_summary(const struct run *run, struct str *out);

/** run_advise() - append what the environment cannot do for this command, a line each. */
void run_advise(const struct run *run, struct str *out);

/** run_exec(): the hub was lost under an elastic job, and is back: prepare and run again. */
#define RUN_E_CUT_OFF 3

/**
 * run_exec() - become the command, with the plan's variables
 * @ret_status:	set when the command has ended before us
 *
 * A command that meets others through the hub is run as a child instead, so that
 * the hub can be told when it has ended; a run under the same name may then
 * begin at once. torchrun gives up when the hub is started anew; an elastic job
 * may go on from its checkpoint, so then this waits for the hub.
 *
 * Return: 0 with *@ret_status; RUN_E_CUT_OFF; or as child_become() and child_run().
 */
int run_exec(const struct run *run, char *const words[], int *ret_status, struct err *e);
