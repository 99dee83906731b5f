/* agent_privileges.h - what an agent keeps of root's rights: `weft agent` and `--relay-only`. */
#pragma once

#include <limits.h>

struct agent_config;
struct err;
struct kube_config;
struct privileges;

/**
 * agent_privileges_drop() - start the helper for the hosts file, open the socket for pings, then
 *			     give up what is not needed
 * @config:	its @memlock is set; its @hosts, to be released with hosts_helper_free(); and its
 *		@pings, likewise with echo_socket_free()
 * @user:	as --user says
 *
 * On a machine that has not joined nothing is given up: agent_run() says that, and ends.
 *
 * Return: 0; or non-zero with words.
 */
int agent_privileges_drop(struct agent_config *config, const char *user, struct err *e);

/**
 * agent_privileges_prepare() - as root, for an agent that is then started as @user
 *
 * Writes which addresses the names of the hosts file may have, if no join has
 * (agent/state/blocks_file.h), and gives the state directory to that user.
 *
 * Return: 0; or non-zero with words.
 */
int agent_privileges_prepare(const char *state_dir, const char *user, struct err *e);

/* A Kubernetes API on the command line, and what a daemon reads to reach it. */

/**
 * kube_access_parse() - the URL "kubernetes:", perhaps with what kube_client.h allows behind it
 * @ret:	what follows the colon; borrows from @text
 * @option:	that has it, for the words
 *
 * Return: 0, or -EINVAL with words.
 */
int kube_access_parse(const char **ret, const char *option, const char *text, struct err *e);

/**
 * kube_access_add() - the files by which the API is reached, to those that a daemon reads
 * @c:		for kube_config_deinit() when @p is used no more
 * @where:	what follows "kubernetes:"
 * @token_folder:	room: a token is replaced in its folder
 *
 * Return: 0; or negative errno with words.
 */
int kube_access_add(struct privileges *p, struct kube_config *c, const char *where,
    char token_folder[static PATH_MAX], struct err *e);
