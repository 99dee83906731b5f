/* env.c - weft env: the variables of weft run, for whoever starts the command in another way. */
#include "train/job/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "health/nccl_faults.h"
#include "os/file.h"
#include "train/job/run.h"
#include "train/names/members.h"
#include "train/profile/nccl_log.h"
#include "train/profile/profile.h"

/* How long the metadata service of a cloud may take, ms. */
#define METADATA_MS 1000

#define ASK_TIMEOUT_MS 10000
#define MEMBERS_MAX    65536

static struct {
    struct run_options opt;
    const char *format;
    bool explain;
    bool table;
    bool hostfile;
    const char *nccl_log;
} arg;

static const struct option options[] = {
    {"--format", "FORM", option_text, &arg.format, "sh",
        "sh (for eval), json, k8s (a container's env:) or slurm (a TaskProlog's output)"},
    {"--nnodes", "N|MIN:MAX", option_text, &arg.opt.nnodes, NULL,
        "how many nodes take part; without it no meeting place is printed"},
    {"--job", "NAME", option_name, &arg.opt.job, "job", "what the nodes meet under"},
    {"--rendezvous", "BACKEND", option_text, &arg.opt.rendezvous, NULL,
        "c10d (the default), etcd-v2, or none"},
    {"--inside-islands", NULL, option_flag, &arg.opt.inside_islands, NULL,
        "NCCL's groups stay inside islands, and only Gloo's cross them"},
    {"--explain", NULL, option_flag, &arg.explain, NULL,
        "each variable with its reason and source"},
    {"--table", NULL, option_flag, &arg.table, NULL,
        "every variable that weft run knows, in Markdown; asks no agent"},
    {"--hostfile", NULL, option_flag, &arg.hostfile, NULL,
        "a hostfile for mpirun (Open MPI): the members that are up, and a slot for each GPU"},
    {"--nccl-log", "FILE", option_text, &arg.nccl_log, NULL,
        "say whether NCCL took this machine's fabric, by its log (NCCL_DEBUG=INFO); asks no agent"},
    {"--socket", "PATH", option_socket, &arg.opt.socket_path, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "env",
    .summary = "Print the environment with which training commands work over the overlay.",
    .options = options,
    .notes = "What is set already is left out, except with --format json and --explain.",
};

/* 0 or non-zero with words. */
static int make_text(struct str *out, enum env_text form, struct err *e)
{
    struct run run;
    int r = run_prepare(&run, &arg.opt, e);

    if (r != 0)
        return r;
    if (arg.explain) {
        env_text_explain(out, &run.plan);
        return 0;
    }
    return env_text_add(out, &run.plan, form);
}

/* Reads a log of the job's, and compares it with the profile of this machine. */
static int assess_log(const char *path)
{
    static struct fabric_facts fabric;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct nccl_faults faults = {.kinds = {{.n = 0}}};
    struct nccl_log log = {.n_lines = 0};
    enum nccl_log_verdict verdict;
    enum nccl_fault_kind kind;
    bool is_known = false;
    char line[4096];
    _cleanup_(fclosep) FILE *f = fopen(path, "re");
    int error;

    if (!f)
        return cmd_fail("env", "--nccl-log %s: %m", path);
    while (fgets(line, sizeof(line), f)) {
        is_known = is_known || !nccl_log_take(&log, line, strcspn(line, "\n"));
        (void)nccl_faults_take(&faults, line, strcspn(line, "\n"), &kind);
    }
    error = ferror(f) ? errno : 0;
    if (error != 0)
        return cmd_fail("env", "--nccl-log %s: %s", path, strerror(error));
    fabric_read_here(&fabric, FABRIC_VIEW_JOB, METADATA_MS);
    verdict = nccl_log_assess(&log, profile_of(&fabric), fabric_count_serving(&fabric), NULL, &out);
    str_add(&out, "\n");
    for (unsigned i = 0; i < NCCL_FAULT_N; i++)
        if (faults.kinds[i].n > 0)
            str_addf(&out, "NCCL says \"%s\"%s\n", faults.kinds[i].text,
                faults.kinds[i].n > 1 ? ", and more like it" : "");
    if (cmd_print("env", str_text(&out)) != CMD_OK)
        return CMD_FAILED;
    return verdict == NCCL_LOG_WANTED ? CMD_OK : CMD_VERDICT_NO;
}

static int print_hostfile(void)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    _cleanup_(members_deinit) struct members members = MEMBERS_NULL;
    struct err e = ERR_NULL;
    json_auto_t *status = NULL;
    int r = agent_ask(arg.opt.socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, &e);

    if (r == 0)
        r = members_decode(&members, status, NULL, MEMBERS_MAX, &e);
    if (r != 0)
        return cmd_fail("env", "%s", err_text(&e));
    (void)members_hostfile(&members, &out);
    return cmd_print("env", str_text(&out));
}

int cmd_env(int argc, char **argv)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    enum env_text form;
    int status;
    int r = 0;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (env_text_parse(&form, arg.format, &e) != 0 || run_check(&arg.opt, &e) != 0)
        return cmd_refuse("env", "%s", err_text(&e));
    if (arg.nccl_log)
        return assess_log(arg.nccl_log);
    if (arg.hostfile)
        return print_hostfile();
    if (arg.table)
        env_format_table(&out);
    else
        r = make_text(&out, form, &e);
    if (r != 0)
        return cmd_fail("env", "%s", err_text(&e));
    return cmd_print("env", str_text(&out));
}
