/* agent_privileges.h - what an agent keeps of root's rights: `weft agent` and `--relay-only`. */
#pragma once

struct agent_config;
struct err;

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
