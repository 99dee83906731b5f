/*
 * main.c - finds the subcommand and runs it.
 *
 * The table below is the one list of commands: help, completion and the
 * dispatcher are made from it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

/*
 * The program weft-wg beside this one is the same command without the control half's libraries.
 * `weft wg` becomes it; where only weft has been installed, it does the work itself, in more
 * memory.
 */
static int run_wg(int argc, char **argv)
{
    char path[PATH_MAX + sizeof("/weft-wg")];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash;

    if (len > 0) {
        path[len] = '\0';
        slash = strrchr(path, '/');
        if (slash) {
            (void)snprintf(slash, sizeof("/weft-wg"), "/weft-wg");
            (void)execv(path, argv);
        }
    }
    return cmd_wg(argc, argv);
}

/* What has no help is started by daemons alone. */
static const struct option_subcommand commands[] = {
    {"hub", cmd_hub, "run the hub: enrolment, desired state, relay"},
    {"token", cmd_token, "make, list or end tokens with which machines join"},
    {"join", cmd_join, "make this machine a node of a network"},
    {"leave", cmd_leave, "leave the network"},
    {"status", cmd_status, "say how this node and its peers are"},
    {"doctor", cmd_doctor, "list what is wrong with this node, with what mends it"},
    {"health", cmd_health, "check this machine, and have one that fails get no new work"},
    {"top", cmd_top, "watch nodes, pairs, jobs and findings in a terminal"},
    {"paths", cmd_paths, "show all that was tried to reach a peer"},
    {"islands", cmd_islands, "show which nodes share a fast fabric"},
    {"run", cmd_run, "run a training command over the overlay"},
    {"env", cmd_env, "print the environment that training commands need"},
    {"preflight", cmd_preflight, "say whether a training job would run, pair by pair"},
    {"plan", cmd_plan, "say where the parts of a job go, how often islands meet, and the cost"},
    {"tune", cmd_tune, "show and set what of the kernel's settings holds the mesh back"},
    {"addrmap", cmd_addrmap, "lead private addresses to public ones, unencrypted"},
    {"probe", cmd_probe, "watch whether every member is reached, without the agent"},
    {"bench", cmd_bench, "measure throughput, latency and all-reduce"},
    {"agent", cmd_agent, "keep a node as its network wants it"},
    {"nodes", cmd_nodes, "list a network's nodes as the hub sees them"},
    {"jobs", cmd_jobs, "list a network's jobs, what they keep, and limits they met"},
    {"cost", cmd_cost, "show what edges and jobs have moved, and what that cost"},
    {"page", cmd_page, "write a page of HTML with a network's nodes, edges, jobs and costs"},
    {"web", cmd_web, "print a login for the page that the hub shows to browsers"},
    {"node", cmd_node, "add a stock WireGuard, say what a node may do, or remove it"},
    {"network", cmd_network, "add, remove or list networks"},
    {"admin", cmd_admin, "say who may administer the hub from elsewhere"},
    {"audit", cmd_audit, "show who changed what on the hub, and who was refused"},
    {"get", cmd_get, "print objects of the desired state"},
    {"apply", cmd_apply, "make the hub's objects as a file says"},
    {"delete", cmd_delete, "remove an object of the desired state"},
    {"edge", cmd_edge, "say how two nodes talk"},
    {"render", cmd_render, "print a node's configuration for a stock WireGuard"},
    {"wg", run_wg, "run a WireGuard interface in user space"},
    {"rendezvous", cmd_rdzv, NULL},
    {"measuring", cmd_measuring, NULL},
    {"gpus", cmd_gpus, NULL},
    {"trains", cmd_trains, NULL},
    {NULL},
};

static void print_help(FILE *out)
{
    (void)fprintf(out, "weft %s: an encrypted overlay network for GPU clusters\n\n", version_text);
    (void)fprintf(out, "usage: weft COMMAND [ARGUMENT...]\n\n");
    for (size_t i = 0; commands[i].name; i++)
        if (commands[i].help)
            (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    (void)fprintf(out, "\n\"weft COMMAND --help\" tells a command's own options.\n");
}

/* A status of success is kept only if all that @command printed has been written. */
static int finish(const char *command, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return status == CMD_OK ? cmd_fail(command, "standard output does not take it") : status;
}

int main(int argc, char **argv)
{
    static char help[] = "--help";
    const struct option_subcommand *command;

    if (argc < 2) {
        print_help(stderr);
        return CMD_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        strcmp(argv[1], "version") == 0) {
        (void)printf("weft %s\n", version_text);
        return finish(argv[1], CMD_OK);
    }
    /* "help edge set" is "edge set --help". */
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof(*argv));
        argv[argc - 1] = help;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return finish(argv[1], CMD_OK);
    }
    command = options_find("", commands, argv[1]);
    return command ? finish(argv[1], command->run(argc - 1, argv + 1)) : CMD_USAGE;
}
