/*
 * blocks_file.h - STATE.blocks, beside the state directory: whose names and which addresses root's
 * helper may write into the hosts file (agent/hosts_helper.h).
 *
 * The state directory is the agent's, so what it says is the agent's word. This file lies in the
 * directory above, is written by root at the join, and is read only if nobody else could have
 * written it.
 */
#pragma once

#include "mesh/names/hosts.h"

/** There is no such file. */
#define BLOCKS_FILE_E_ABSENT 1
/** The rules are good, but the file cannot be written, as beside a mounted state directory. */
#define BLOCKS_FILE_E_UNKEPT 2

/** blocks_file_rules() - whose names, and which addresses: those of the join. */
struct hosts_rules blocks_file_rules(const struct snapshot *born);

/** blocks_file_write() - 0; or negative errno with words that name the file. */
int blocks_file_write(const struct hosts_rules *rules, const char *state_dir, struct err *e);

/**
 * blocks_file_read() - what root wrote
 * @ret:	untouched on failure
 *
 * Return: 0; BLOCKS_FILE_E_ABSENT with words; or negative errno with words: -EPERM when another
 * user than root or this one owns it, or may write it, -EINVAL when it does not parse.
 */
int blocks_file_read(struct hosts_rules *ret, const char *state_dir, struct err *e);

/**
 * blocks_file_keep() - write it if there is none yet, for a machine that has joined by an earlier
 * version
 * @rules:	as node.json says; set to what the file says if there is one
 *
 * Call as root. Once the agent's user owns node.json its blocks are that user's word. They are
 * taken then only if they are private addresses, which lead to no host of the Internet.
 *
 * Return: 0; BLOCKS_FILE_E_UNKEPT with words; or negative errno with words, and no rules are good.
 */
int blocks_file_keep(struct hosts_rules *rules, const char *state_dir, struct err *e);

/** blocks_file_remove() - when the node has left; root's directory takes root. Failures are none.
 */
void blocks_file_remove(const char *state_dir);
