/*
 * run.h - starts a training command with the environment that it needs.
 *
 * Gathers the facts: the words of the command, the torch on disk, the node, and
 * the job's meeting at the hub. Then env.h makes the plan, and the command runs
 * with the plan's variables. Torch is not imported, so the command normally
 * starts within a fraction of a second.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "train/job/command.h"
#include "train/job/env.h"
#include "train/job/node.h"

/** Bytes of the path of run->dir, with its zero: a value of a variable has room for a file in it.
 */
#define RUN_DIR_MAX 256

/** What the person asked for. Pointers are borrowed. */
struct run_options {
    const char *socket_path; /* the agent's socket */
    const char *job;         /* the job's name; NULL: it is named after the script */
    const char *nnodes;      /* "4" or "2:4"; used where neither command nor environment says it */
    bool inside_islands;     /* NCCL's groups stay inside islands; only Gloo's cross them */
    bool is_isolated;        /* its ports are for its members alone */
    bool island_lan;         /* inside the island its private network is used, unencrypted */
    bool once;               /* it is never begun again */
    nsec_t wait_lost;        /* how long a job of fixed size waits for a node that was lost */
    const char *command_id;  /* what this command is called at the hub, as no other one; NULL: it
                                is not told that the command is there */
    const char *broken_run;  /* id of the run that it takes the place of; NULL: none */
    const char *rendezvous;  /* likewise "c10d", "etcd-v2" or "none"; NULL: c10d */
    bool starts;             /* the command is to be started, and not only explained: its script
                                has to be there, and NCCL's log is read */
    bool is_quiet;           /* only what will hurt is said */
    const char *plan;        /* a file with the job's plan; NULL: none */
    const char *params;      /* weights of the model, to have a plan made; NULL: none is made */
    char *const *words;      /* the command, ends with NULL; NULL: none, for `weft env` */
};

/** A command that is ready to run. It owns no memory; it borrows from the options. */
struct run {
    const char *socket_path; /* the agent's socket */
    struct command command;
    struct torch_install torch;
    struct train_node node;
    struct env_rendezvous rendezvous; /* its id is "" when the job does not meet at the hub */
    struct ranks ranks;               /* for a plain command */
    char job[64];                     /* the job's name */
    struct fabric_facts fabric;       /* of this machine */
    bool uses_fabric; /* the job stays inside one island, so NCCL is to use the machine's fabric */
    char island_interface[IF_NAMESIZE]; /* of the island's private network; "": that was not asked
                                           for, or nobody is reached by it */
    bool has_island_hosts;              /* a hosts file was laid, see run_take_island() */
    bool is_elastic;                    /* the number of nodes is a range */
    bool can_begin_again; /* it meets at the hub, and begins at its checkpoint when started again */
    bool follows_hub;     /* the meeting's endpoint is a name that leads to whichever hub serves
                             the job */
    unsigned min_nodes;   /* the job waits for so many; 0: it does not meet at the hub */
    nsec_t wait_lost;     /* as in the options */
    char command_id[32];  /* likewise; "": none */
    char host_name[HOST_NAME_MAX + 1]; /* the host name that the command is to see, see
                                          run_take_host_name(); "": the machine's own */
    char dir[RUN_DIR_MAX]; /* for NCCL's logs, the plan and the island's nodes; "": none.
                              run_exec() removes it */
    bool has_dir;          /* it was made */
    bool is_isolated;      /* as in the options */
    bool is_quiet;         /* only what will hurt is said */
    bool has_met;          /* the command has met another node, in an earlier start */
    struct env_plan plan;
};

/** run_check() - are --nnodes and --rendezvous well formed? Return: 0, or -EINVAL with words. */
int run_check(const struct run_options *opt, struct err *e);

/**
 * run_prepare() - gather the facts and make the plan
 * @ret:	untouched on failure; borrows from @opt
 *
 * Return: 0; or non-zero with words: the script is not there, the agent or the hub does not answer,
 * or the number of nodes or the job's name is not valid.
 */
int run_prepare(struct run *ret, const struct run_options *opt, struct err *e);

/**
 * run_take_host_name() - make run->host_name the host name of this process and of the command
 *
 * Before torch 2.0 rank 0 announces the machine's host name. Other nodes may not
 * know that name, or may resolve it to another address. The node's qualified
 * name resolves to the node everywhere in the network. The name changes in a new
 * UTS namespace of this process only, which needs root; the machine keeps its
 * name. Nothing is done when run->host_name is "".
 *
 * Return: false when the kernel refuses; then run->host_name is set to "".
 */
bool run_take_host_name(struct run *run);

/** run_make_dir() - make run->dir, with a name, unless that was done. 0; or -errno with words. */
int run_make_dir(struct run *run, struct err *e);

/** run_give() - set a variable of the plan to this value, unless the person has set it. */
void run_give(struct run *run, const char *name, const char *value);

/** run_give_up() - instead of run_exec(): end the job at the hub, and remove what was made for it.
 */
void run_give_up(const struct run *run);

/** run_summary() - append one line that says what will be started and where the job meets. */
void run_summary(const struct run *run, struct str *out);

/** run_advise() - append a line for each problem that the plan's variables do not solve. */
void run_advise(const struct run *run, struct str *out);

/**
 * Returned by run_exec(): the job has ended because the hub was lost, and the hub is back; or
 * because another node has had a new run of it begun. The caller prepares and runs the command
 * again.
 */
#define RUN_E_CUT_OFF 3

/**
 * Returned by run_exec(): the job could not go on where it was, because another hub serves it now
 * or a new run of it has begun, so it was ended. The caller prepares and runs the command again.
 */
#define RUN_E_MOVED 4

/**
 * Returned by run_exec(): a signal that nobody sent through us has ended the command of a job of
 * fixed size, as the kernel does when memory runs out. The others cannot go on without it. The
 * caller prepares and runs the command again, unless that happens each time.
 */
#define RUN_E_KILLED 5

/**
 * Returned by run_exec(): another node of a job of fixed size was lost, or an earlier command of
 * this one, and the command has failed or was not started. The caller prepares the run again and
 * waits for the nodes (lost.h) before it runs the command again.
 */
#define RUN_E_LOST 6

/** run_is_again() - is that an outcome of run_exec() after which the command is to be run again? */
bool run_is_again(int r);

/**
 * run_exec() - run the command with the plan's variables
 * @words:	the command; ends with NULL
 * @ret_status:	set to the command's exit status when it ran as a child and has ended
 *
 * A command that neither meets at the hub nor has a log of NCCL's that is read, or a plan that was
 * made for it, takes the place of this process. Any other runs as a child, so that the hub can be
 * told when it has ended; a new run under the same name can then begin at once. When NCCL has said
 * in its log which network it uses, that is said on standard error, and after a failure where the
 * log lies. torchrun gives up when the hub is started anew. A job that can begin again goes on from
 * its checkpoint, so in that case this waits for the hub, for about ten minutes at most. It looks
 * each few seconds whether another hub serves the job, because torch's c10d client knows one
 * address and would wait for it for minutes, and whether another node has had a new run begun.
 * A command that has met no other node is told of on standard error (lost.h), and one that has used
 * torch ends with RUN_STATUS_STRAYED then, instead of 0.
 *
 * Return: 0 with *@ret_status set; RUN_E_CUT_OFF, RUN_E_MOVED, RUN_E_KILLED or RUN_E_LOST,
 * likewise, but that RUN_E_LOST may leave it; -ENOMEM with words; or an error of child_become() or
 * child_run().
 */
int run_exec(struct run *run, char *const words[], int *ret_status, struct err *e);

/** run_broken() - the id that run_options.broken_run is to have when @run begins again; or NULL. */
const char *run_broken(const struct run *run);

/*
 * A directory of one run of `weft run`, that only this user can enter: NCCL's logs and
 * the job's plan are in it.
 */

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

/**
 * run_dir_remove() - remove it, and the files in it
 *
 * Nothing happens when @dir is "", or a symbolic link, or no directory of this user alone: then
 * run_make_dir() did not make it.
 */
void run_dir_remove(const char *dir);

/*
 * Gives a job the private network of its node's island (`weft run --island-lan`).
 *
 * In a mount namespace of this process, and so of the command, the hosts file is another one: names
 * of the island's nodes lead to their addresses on its private network (node.h). The
 * machine's own file stays as it is. That needs root; without it the job has the variables alone.
 *
 * The agent replaces the machine's file by a rename, which takes away the file that lies over it in
 * other namespaces. So the job's one is looked for now and then, and made anew of what the agent
 * has written.
 */

/**
 * run_take_island() - write down the island's nodes, and lay the hosts file
 * @run:	after run_prepare(); nothing is done when run->island_interface is ""
 * @notes:	a line for each thing that could not be done is appended
 *
 * Threads: the process must have only one.
 */
void run_take_island(struct run *run, struct str *notes);

/**
 * run_leave_island() - take away the hosts file that was laid for an earlier start of the command
 *
 * Best effort. Threads: as run_take_island().
 */
void run_leave_island(void);

/** run_keep_island() - if the hosts file that was laid is gone, lay it anew. Best effort. */
void run_keep_island(const struct run *run);

/*
 * A job's command is to be begun again: how often it is, and waiting until it can be.
 *
 * Theory of operation. run_exec() has returned a RUN_E_. again_decide() counts: a script that takes
 * its machine down, or is killed for its memory, would otherwise be begun again for ever.
 * again_prepare() then asks for the job's next run. The agent or the hub may be away in that
 * moment, as they may have been started anew with the machine, so it asks again, less and less
 * often. Of a job of fixed size it waits for the nodes (lost.h).
 */

/** How often a command was begun again. All zero but for @max. */
struct again {
    unsigned max; /* it is begun again so often at the most */
    unsigned n;
    unsigned n_killed; /* it was killed so often, each time soon after its start */
};

enum again_verdict {
    AGAIN_VERDICT_GO,      /* begin it again */
    AGAIN_VERDICT_KILLED,  /* it was killed soon after its start once more */
    AGAIN_VERDICT_USED_UP, /* it was begun again @max times */
};

/**
 * again_decide() - may the command be begun again?
 * @r:		the outcome of run_exec(), one for which run_is_again() holds
 * @lasted:	so long after its start
 *
 * Counts it if it may.
 */
enum again_verdict again_decide(struct again *a, int r, nsec_t lasted);

/** again_pause_ms() - @n tries have failed: wait for so long, ms; longer each time, up to 30 s */
unsigned again_pause_ms(unsigned n);

/**
 * again_prepare() - prepare the next run of the job, and of one of fixed size wait for its nodes
 * @run:	the run that was; replaced by the next one, unless none could be prepared
 * @opt:	its broken_run is set meanwhile
 * @i:		begun; a signal ends the wait
 *
 * A run that cannot be prepared is tried again for wait_lost, or a minute if that is longer; the
 * first failure is said on standard error.
 *
 * Return: 0; LOST_E_ALONE, LOST_E_ENDED or, when there is no next run because the command has ended
 * on another node, RENDEZVOUS_E_OVER, with words; LOST_E_INTERRUPTED.
 */
int again_prepare(struct run *run, struct run_options *opt, struct interrupt *i, struct err *e);

/**
 * again_await_hub() - the first run could not be prepared, since no hub answers: wait for one, for
 * @opt's wait_lost, or a minute if that is longer
 * @ret:	as of run_prepare()
 * @i:		begun; a signal ends the wait
 * @e:		has run_prepare()'s words, which are said on standard error with what is waited for
 *
 * Return: 0; LOST_E_ALONE with words; LOST_E_INTERRUPTED; or an error of run_prepare().
 */
int again_await_hub(
    struct run *ret, const struct run_options *opt, struct interrupt *i, struct err *e);

/**
 * again_give_up() - the command is not begun again: tell the job's other nodes
 *
 * Those of a job of fixed size look at its next run, so they are told there. If there is none,
 * because the command has ended on one of them, the run is ended: it is of no use to who comes.
 */
void again_give_up(struct run *run, struct run_options *opt);
