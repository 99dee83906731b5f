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
typedef int (*cmd_fn)(int argc, char **argv);

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

/** Each is a cmd_fn, in the file that is named beside it. */
int cmd_addrmap(int argc, char **argv);   /* addrmap.c */
int cmd_admin(int argc, char **argv);     /* admin.c */
int cmd_agent(int argc, char **argv);     /* agent.c */
int cmd_apply(int argc, char **argv);     /* object.c */
int cmd_cost(int argc, char **argv);      /* cost.c */
int cmd_page(int argc, char **argv);      /* page.c */
int cmd_delete(int argc, char **argv);    /* object.c */
int cmd_audit(int argc, char **argv);     /* audit.c */
int cmd_bench(int argc, char **argv);     /* bench.c */
int cmd_edge(int argc, char **argv);      /* object.c */
int cmd_edges(int argc, char **argv);     /* object.c; below edge */
int cmd_env(int argc, char **argv);       /* env.c */
int cmd_get(int argc, char **argv);       /* object.c */
int cmd_hub(int argc, char **argv);       /* hub.c */
int cmd_hub_up(int argc, char **argv);    /* hub_up.c; below hub */
int cmd_islands(int argc, char **argv);   /* islands.c */
int cmd_jobs(int argc, char **argv);      /* jobs.c */
int cmd_join(int argc, char **argv);      /* join.c */
int cmd_leave(int argc, char **argv);     /* leave.c */
int cmd_measuring(int argc, char **argv); /* internal.c */
int cmd_network(int argc, char **argv);   /* network.c */
int cmd_node(int argc, char **argv);      /* node.c */
int cmd_nodes(int argc, char **argv);     /* node.c */
int cmd_paths(int argc, char **argv);     /* paths.c */
int cmd_plan(int argc, char **argv);      /* plan.c */
int cmd_preflight(int argc, char **argv); /* preflight.c */
int cmd_probe(int argc, char **argv);     /* probe.c */
int cmd_rdzv(int argc, char **argv);      /* internal.c */
int cmd_render(int argc, char **argv);    /* render.c */
int cmd_run(int argc, char **argv);       /* run.c */
int cmd_status(int argc, char **argv);    /* status.c */
int cmd_token(int argc, char **argv);     /* token.c */
int cmd_wg(int argc, char **argv);        /* wg.c */
