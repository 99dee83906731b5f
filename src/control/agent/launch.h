/*
 * launch.h - start the agent, and wait until the node can be used.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;

/** This variable is set for an agent that logs to a file of its own: each line has the time. */
#define LAUNCH_LOG_TIME "WEFT_LOG_TIME"

/** How an agent was started. */
struct launch {
    bool by_systemd;
    pid_t pid;               /* of the process that watches a detached one; else 0 */
    char log_path[PATH_MAX]; /* where a detached one writes; else "" */
};

/** Where the agent is to run, and how. */
struct launch_config {
    const char *state_dir;
    const char *socket_path;
    const char *const *options; /* further options of weft agent; NULL: none */
    size_t n_options;           /* LAUNCH_OPTIONS_MAX at most */
};

#define LAUNCH_OPTIONS_MAX 64

/**
 * launch_agent() - start the agent: by systemd where it runs and has our unit, else as a detached
 * process that starts it again when it dies (weft agent --watched)
 *
 * Our unit is for the default paths and no options; with others the agent is always a detached
 * process.
 *
 * Return: 0; or non-zero with words.
 */
int launch_agent(const struct launch_config *config, struct launch *ret, struct err *e);

/**
 * launch_wait_answer() - wait until the agent answers at its socket, whatever the hub does
 *
 * Return: 0; or non-zero with words.
 */
int launch_wait_answer(
    const struct launch *launch, const char *socket_path, unsigned timeout_ms, struct err *e);

/**
 * launch_watch() - run an agent, and again when it dies, until it has left or a signal comes
 * @words:	its command line: a path, arguments, NULL; borrowed
 * @state_dir:	without a state there nothing is started again
 *
 * What happens is logged. Threads: the process must have only one.
 *
 * Return: the exit status of the last agent; or negative errno with words.
 */
int launch_watch(char *const words[], const char *state_dir, struct err *e);

/**
 * launch_wait() - wait until the agent has had a handshake with the hub
 *
 * And for three seconds more, at most, until the hub has told it who the other nodes are, and their
 * names are in the hosts file.
 * @timeout_ms:	from the agent's first answer on, which may take a minute on a busy machine
 * @ret_status:	the agent's status then; gives a reference
 *
 * Return: 0; -ETIMEDOUT with words about what is missing by then: the agent goes on
 * trying; or another negative errno with words: it cannot run here.
 */
int launch_wait(const struct launch *launch, const char *socket_path, unsigned timeout_ms,
    json_t **ret_status, struct err *e);

/** launch_stop() - end the agent that launch_agent() has started, and wait for its end. */
void launch_stop(const struct launch *launch);
