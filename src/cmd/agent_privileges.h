/* agent_privileges.h - what an agent keeps of root's rights: `weft agent` and `--relay-only`. */
#pragma once

struct agent_config;
struct err;

/**
 * agent_privileges_drop() - start the helper for the hosts file, and drop the rest
 * @config:	its @hosts is set; to be released with hosts_helper_free()
 * @user:	as --user says
 *
 * A machine that has not joined keeps everything: agent_run() will say so, and end.
 *
 * Return: 0; or non-zero with words.
 */
int agent_privileges_drop(struct agent_config *config, const char *user, struct err *e);
