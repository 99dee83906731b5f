/*
 * cmd.h - the subcommands of weft, one file each.
 *
 * A command parses its arguments, wires the parts together and turns failures
 * into one sentence on standard error. It holds no logic of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/** A subcommand. argv[0] is its name. Returns the exit status. */
typedef int cmd_fn(int argc, char **argv);

/** Exit statuses of every subcommand. */
enum cmd_status {
    CMD_OK = 0,         /* done */
    CMD_FAILED = 1,     /* understood, but could not be done; the sentence says why */
    CMD_USAGE = 2,      /* the command line itself is wrong */
    CMD_VERDICT_NO = 3, /* it was found out, and the answer is no */
};

/**
 * cmd_fail() - "weft COMMAND: sentence" on standard error
 *
 * Return: CMD_FAILED, so that `return cmd_fail("join", "...")` reads well.
 */
int cmd_fail(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** cmd_refuse() - the same about a command line that is wrong in itself. Return: CMD_USAGE. */
int cmd_refuse(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * cmd_write() - @text on @out, without what a terminal might obey
 *
 * Of what is not plain (base/text.h) lines and tabs stay; all else becomes '?', since texts of
 * hubs, members and jobs are among what is printed.
 *
 * Return: false: @out does not take it.
 */
bool cmd_write(FILE *out, const char *text);

/**
 * cmd_print() - the same on standard output, all of it
 *
 * Return: CMD_OK; CMD_FAILED, after a sentence on standard error, when it could not be written.
 */
int cmd_print(const char *command, const char *text);

/* ---- the commands, each in a file of its name, or in the one that is named ------------------- */

cmd_fn cmd_addrmap, cmd_admin, cmd_agent, cmd_audit, cmd_bench, cmd_cost, cmd_doctor, cmd_edge,
    cmd_env, cmd_health, cmd_hub, cmd_hub_up, cmd_islands, cmd_jobs, cmd_join, cmd_leave,
    cmd_network, cmd_page, cmd_paths, cmd_plan, cmd_preflight, cmd_probe, cmd_render, cmd_run,
    cmd_status, cmd_token, cmd_top, cmd_tune, cmd_web, cmd_wg;

/* node.c */
cmd_fn cmd_node, cmd_nodes;

/* object.c; cmd_edges() is below edge. */
cmd_fn cmd_apply, cmd_delete, cmd_edges, cmd_get;

/* internal.c; daemons alone start them. */
cmd_fn cmd_measuring, cmd_gpus, cmd_rdzv, cmd_trains;
