/* run.c - weft run: start a training command so that it works over the overlay. */
#include "train/job/run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state/state.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/run_before.h"
#include "cmd/run_budget.h"
#include "os/child.h"
#include "os/clock.h"
#include "os/interrupt.h"
#include "os/rng_kernel.h"
#include "plan/model.h"
#include "train/job/again.h"
#include "train/job/env_text.h"
#include "train/job/job_plan.h"
#include "train/job/launcher_words.h"
#include "train/job/lost.h"
#include "train/job/rendezvous.h"
#include "train/job/run_island.h"

/* Exit statuses, as shells give them. */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127
#define STATUS_KILLED         128 /* and the number of the signal */

static struct {
    struct run_wish wish;
    struct option_list words;
    struct run_before before;
    struct run_budget budget;
    uint64_t max_restarts;
    const char *of_again; /* an option that is about beginning again, if one was given */
    bool explain;
} arg;

static const struct option options[] = {
    {"COMMAND", NULL, option_append, &arg.words, NULL, "what to run, with its own arguments",
        .need = OPTION_REQUIRED, .many = true, .is_command = true},
    {"--nnodes", "N|MIN:MAX", option_text, &arg.wish.nnodes, NULL,
        "how many nodes take part; the same on each of them"},
    {"--job", "NAME", option_name, &arg.wish.job, NULL,
        "what the nodes meet under, instead of the script's name"},
    {"--rendezvous", "BACKEND", option_text, &arg.wish.rendezvous, NULL,
        "c10d (unless the command says another), etcd-v2, or none"},
    {"--inside-islands", NULL, option_flag, &arg.wish.inside_islands, NULL,
        "NCCL's groups stay inside islands, and only Gloo's cross them"},
    {"--island-lan", NULL, option_flag, &arg.wish.island_lan, NULL,
        "inside this node's island use its private network, unencrypted"},
    {"--preflight", NULL, option_flag, &arg.before.preflight, NULL,
        "first weft preflight and weft bench --sweep, once for all nodes; do not start the command "
        "if either says no"},
    {"--anyway", NULL, option_flag, &arg.before.anyway, NULL,
        "start it although --preflight says no"},
    {"--plan", "FILE", option_text, &arg.wish.plan, NULL,
        "give the job this plan, of weft plan --json, as WEFT_PLAN"},
    {"--params", "N", option_text, &arg.wish.params, NULL,
        "have a plan made for a model of so many weights, such as 7B: once for all nodes"},
    {"--wan", "WORD", option_word, &arg.before.wan, NULL,
        "where gradients are better not averaged in each step, by a plan: warn (the default "
        "without --plan and --params), refuse, allow",
        .words = "warn, refuse, allow"},
    {"--budget", "AMOUNT", option_text, &arg.budget.amount, NULL,
        "what the job may cost a day, as in 20, or move, as in 2TB: weft cost and events tell of "
        "it; takes an administrator's rights"},
    {"--hub", "HOST:PORT", option_text, &arg.budget.target.hub, NULL,
        "with --budget: set it at a hub elsewhere, over HTTPS"},
    {"--admin-token-file", "FILE", option_text, &arg.budget.target.token_file, NULL,
        "with --hub: the file that holds its admin token"},
    {"--pin", "SHA256", option_text, &arg.budget.target.pin, NULL,
        "with --hub: base64 SHA-256 of its TLS key, as \"weft hub up\" prints it"},
    {"--once", NULL, option_flag, &arg.wish.once, NULL,
        "end with the command also when the hub or another node was lost"},
    {"--wait-lost", "DURATION", option_duration, &arg.wish.wait_lost, "10m",
        "how long a job of a fixed number of nodes waits for one that was lost, to begin again "
        "with it at its checkpoint; 0s: it ends",
        .given = &arg.of_again},
    {"--max-restarts", "N", option_u64, &arg.max_restarts, "100",
        "how often it is begun again on this node, whatever was lost; 0: never", .min = 0,
        .max = AGAIN_MAX, .given = &arg.of_again},
    {"--explain", NULL, option_flag, &arg.explain, NULL,
        "print each variable with its reason and source, and run nothing"},
    {"--quiet", NULL, option_flag, &arg.wish.is_quiet, NULL, "say nothing but what will hurt"},
    {"--state", "DIR", option_text, &arg.before.state_dir, STATE_DIR_DEFAULT,
        "of the agent; has what was last measured"},
    {"--socket", "PATH", option_socket, &arg.wish.socket_path, STATE_SOCKET_DEFAULT,
        "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "run",
    .summary = "Run a training command with all that it needs to know of the overlay.",
    .options = options,
    .notes =
        "It knows torchrun, python -m torch.distributed.run, mpirun, accelerate and deepspeed;\n"
        "anything else is a plain script. What you have set yourself is never changed.\n"
        "Its exit status is that of the command; 127 if that is not there, 126 if it cannot run,\n"
        "3 if --wan refuse or --preflight has kept it from starting, or if it has used torch,\n"
        "ended well, and met no other node of the job.",
};

/* Prints each line of @text as a note. */
static void print_notes(const char *text)
{
    size_t len;

    for (size_t off = 0; text[off] != '\0'; off += len + 1) {
        len = strcspn(text + off, "\n");
        (void)fprintf(stderr, "weft run: note: %.*s\n", (int)len, text + off);
    }
}

static void take_island(struct run *run)
{
    _cleanup_(str_deinit) struct str notes = STR_NULL;

    if (arg.wish.island_lan && run->island_interface[0] == '\0') {
        str_add(&notes, "--island-lan: no node of this node's island is reached over a private "
                        "network: the job stays on the overlay\n");
        run_leave_island();
    }
    run_take_island(run, &notes);
    print_notes(str_text(&notes));
}

/* Prints on standard error, since standard output belongs to the command. */
static void print_advice(const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;

    if (!arg.wish.is_quiet) {
        run_summary(run, &out);
        (void)fputs("weft run: ", stderr);
        (void)cmd_write(stderr, str_text(&out));
        str_deinit(&out);
    }
    run_advise(run, &out);
    print_notes(str_text(&out));
}

/* The words to start; @ret is to be released. */
static int make_words(const struct run *run, struct launcher_words *ret, struct err *e)
{
    char nnodes[16];
    bool is_number = run->min_nodes > 0 && !run->is_elastic;
    int r;

    (void)snprintf(nnodes, sizeof(nnodes), "%u", run->min_nodes);
    r = launcher_words_make(ret, arg.wish.words, &run->command,
        run->meeting.id[0] != '\0' ? &run->meeting : NULL, is_number ? nnodes : NULL);
    return r < 0 ? err_set(e, r, "no memory for the command") : 0;
}

static void add_words(struct str *out, const struct launcher_words *lw)
{
    for (size_t i = 0; i < lw->n_added; i++)
        str_addf(out, " %s", lw->added[i]);
}

static int explain(const struct run *run)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    _cleanup_(launcher_words_deinit) struct launcher_words lw = LAUNCHER_WORDS_NULL;

    run_summary(run, &out);
    if (make_words(run, &lw, NULL) == 0 && lw.n_added > 0) {
        str_add(&out, "options that it gets as well:");
        add_words(&out, &lw);
        str_add(&out, "\n");
    }
    str_add(&out, "\n");
    fabric_format(&out, &run->fabric);
    str_add(&out, "\n");
    env_text_explain(&out, &run->plan);
    run_advise(run, &out);
    return cmd_print("run", str_text(&out));
}

/* Before the job meets: are the options right for what is done before its start? Makes --plan's
 * path one that holds in every directory, and looks whether there is a plan. */
static int check_before(char path[static PATH_MAX], struct err *e)
{
    struct job_plan unused;
    double unused_weights;

    if (arg.before.anyway && !arg.before.preflight)
        return err_set(e, -EINVAL, "--anyway is for --preflight, and there is no --preflight");
    if (arg.wish.plan && arg.wish.params)
        return err_set(e, -EINVAL, "--plan and --params are two ways to get a plan");
    if (arg.wish.params)
        return model_parse_weights(&unused_weights, arg.wish.params, "--params", e);
    if (!arg.wish.plan)
        return 0;
    if (!realpath(arg.wish.plan, path))
        return err_set(e, -errno, "--plan %.200s: %s", arg.wish.plan, strerror(errno));
    arg.wish.plan = path;
    if (strlen(path) >= ENV_VALUE_MAX)
        return err_set(e, -ENAMETOOLONG, "--plan: the path %.40s... is too long", path);
    return job_plan_read(&unused, path, e);
}

/* Says why the command begins again. @r: what run_exec() has returned. */
static void say_again(int r, int status)
{
    const char *name = arg.wish.words[0];
    char time[32];

    if (r == RUN_E_CUT_OFF)
        (void)cmd_fail("run",
            "the hub or another node was away, and %s has ended with %d; starting it again", name,
            status);
    else if (r == RUN_E_MOVED)
        (void)cmd_fail("run",
            "the job meets at another hub or in a new run now, so %s was ended; starting it again",
            name);
    else if (r == RUN_E_LOST && arg.wish.wait_lost == 0)
        (void)cmd_fail("run", "starting %s again, in a new run of the job", name);
    else if (r == RUN_E_LOST)
        (void)cmd_fail("run",
            "waiting for up to %s until all nodes of the job are there, to start "
            "%s again",
            format_duration(arg.wish.wait_lost, time), name);
    else
        (void)cmd_fail("run",
            "%s was killed by signal %d; starting it again, here and on the other nodes", name,
            status - STATUS_KILLED);
}

/* The command's exit status; or that of a failure, when it was ended by a signal, which was ours,
 * or has not ended. */
static int last_status(int status)
{
    return status != CMD_OK && status < STATUS_KILLED ? status : CMD_FAILED;
}

/* It is to be begun again: prepares that. Return: 0; else *@ret_status is set. */
static int begin_again(struct run *run, int *ret_status)
{
    struct interrupt i;
    struct err e = ERR_NULL;
    int r;

    interrupt_begin(&i);
    r = again_prepare(run, &arg.wish, &i, &e);
    if (r != 0) {
        if (r == AGAIN_E_ALONE)
            (void)cmd_fail("run", "%s: not started again", err_text(&e));
        else
            (void)cmd_fail("run", "interrupted while it waited: the job's other nodes are told");
        lost_give_up(run);
        run_dir_remove(run->dir);
        *ret_status = last_status(*ret_status);
    }
    interrupt_end(&i);
    return r;
}

/* Why it is not begun again. */
static void say_never_again(enum again_verdict verdict, int status)
{
    const char *name = arg.wish.words[0];

    if (verdict == AGAIN_VERDICT_KILLED)
        (void)cmd_fail("run",
            "%s was killed by signal %d once more, soon after its start: not started again", name,
            status - STATUS_KILLED);
    else
        (void)cmd_fail("run",
            "%s was started again %" PRIu64 " time%s, as often as --max-restarts allows: not "
            "started again",
            name, arg.max_restarts, arg.max_restarts == 1 ? "" : "s");
}

/* Starts the command, with the options that its launcher needs. Return: as run_exec(). */
static int start(struct run *run, int *ret_status, struct err *e)
{
    _cleanup_(launcher_words_deinit) struct launcher_words lw = LAUNCHER_WORDS_NULL;
    _cleanup_(str_deinit) struct str added = STR_NULL;
    int r = make_words(run, &lw, e);

    if (r != 0)
        return r;
    add_words(&added, &lw);
    if (lw.n_added > 0 && !arg.wish.is_quiet)
        (void)fprintf(stderr, "weft run: %s gets these options as well:%s\n",
            command_kind_name(run->command.kind), str_text(&added));
    return run_exec(run, lw.items, ret_status, e);
}

/* The outcome @r of run_exec() asks for another start. Return: true if there is one; else
 * *@ret_status is set. */
static bool is_again(struct again *again, struct run *run, int r, nsec_t lasted, int *ret_status)
{
    enum again_verdict verdict = again_judge(again, r, lasted);

    switch (verdict) {
    case AGAIN_VERDICT_GO:
        say_again(r, *ret_status);
        return begin_again(run, ret_status) == 0;
    case AGAIN_VERDICT_KILLED:
        say_never_again(verdict, *ret_status);
        run_give_up(run);
        return false;
    case AGAIN_VERDICT_USED_UP:
        say_never_again(verdict, *ret_status);
        again_give_up(run, &arg.wish);
        *ret_status = last_status(*ret_status);
        return false;
    }
    return false;
}

/* Runs the command until it need not begin again. Return: as run_exec(), or run_prepare(). */
static int run_all(struct run *run, int *ret_status, struct err *e)
{
    struct again again = {.max = (unsigned)arg.max_restarts};
    int status = CMD_OK; /* the command's, at its last end */
    nsec_t begun_at;
    int r;

    for (;;) {
        (void)run_take_host_name(run);
        print_advice(run);
        *ret_status = run_before(&arg.before, run, &arg.wish);
        if (*ret_status != CMD_OK) {
            run_give_up(run);
            return 0;
        }
        take_island(run);
        *ret_status = status;
        begun_at = clock_now();
        r = start(run, ret_status, e);
        if (!run_is_again(r))
            return r;
        if (!is_again(&again, run, r, clock_now() - begun_at, ret_status))
            return 0;
        status = *ret_status;
    }
}

/* No hub has answered, as @e says. 0; or an exit status, after a sentence. */
static int await_hub(struct run *run, struct err *e)
{
    struct interrupt i;
    int r;

    interrupt_begin(&i);
    r = again_await_hub(run, &arg.wish, &i, e);
    if (r == AGAIN_E_INTERRUPTED)
        r = cmd_fail("run", "interrupted while it waited for the hub");
    else if (r == AGAIN_E_ALONE)
        r = cmd_fail("run", "%s: not started", err_text(e));
    else if (r != 0)
        r = cmd_fail("run", "%s", err_text(e));
    interrupt_end(&i);
    return r;
}

/* Prepares the first run; while no hub answers, that is waited for. Return: CMD_OK; or an exit
 * status, after a sentence. */
static int prepare(struct run *run)
{
    struct err e = ERR_NULL;
    int r = run_prepare(run, &arg.wish, &e);

    if (r == RENDEZVOUS_E_AWAY && arg.wish.starts)
        return await_hub(run, &e);
    return r == 0 ? CMD_OK : cmd_fail("run", "%s", err_text(&e));
}

/* CMD_OK; or an exit status, after a sentence. */
static int set_budget(const struct run *run)
{
    if (arg.budget.amount && run->meeting.id[0] == '\0')
        return cmd_fail("run",
            "--budget \"%.60s\": the job does not meet at the hub, which counts only what jobs "
            "that do have moved",
            arg.budget.amount);
    return run_budget_set(&arg.budget, run->node.network, run->job);
}

int cmd_run(int argc, char **argv)
{
    struct rng rng = rng_kernel();
    struct err e = ERR_NULL;
    struct run run;
    char path[PATH_MAX];
    uint8_t id[8];
    char id_text[2 * sizeof(id) + 1];
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.wish.once && arg.of_again)
        return cmd_refuse("run",
            "with --once nothing is begun again, and %s is about beginning again: give one of them",
            arg.of_again);
    /* The words are the last ones of argv, which ends with NULL, as exec needs it. */
    arg.wish.words = argv + argc - arg.words.n;
    option_list_deinit(&arg.words);
    arg.wish.starts = !arg.explain;
    rng_fill(&rng, id, sizeof(id));
    hex_encode(id, sizeof(id), id_text);
    arg.wish.command_id = id_text;
    if (run_budget_check(&arg.budget, &e) != 0 || run_check(&arg.wish, &e) != 0 ||
        check_before(path, &e) != 0)
        return cmd_refuse("run", "%s", err_text(&e));
    status = prepare(&run);
    if (status != CMD_OK)
        return status;
    if (arg.explain)
        return explain(&run);
    status = set_budget(&run);
    if (status != CMD_OK) {
        run_give_up(&run);
        return status;
    }
    r = run_all(&run, &status, &e);
    if (r == 0)
        return status;
    (void)cmd_fail("run", "%s", err_text(&e));
    if (r == CHILD_E_NOT_FOUND)
        return STATUS_NOT_FOUND;
    return r == CHILD_E_NOT_EXECUTABLE ? STATUS_NOT_EXECUTABLE : CMD_FAILED;
}
