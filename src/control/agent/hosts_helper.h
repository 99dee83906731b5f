/*
 * hosts_helper.h - the process that writes the hosts file for an agent that is not root.
 *
 * The agent replaces one block of /etc/hosts. That file is root's, and it is replaced by a rename,
 * so whoever does it has to be able to make files in /etc. Instead of the agent, which talks to the
 * network, a child that it starts before it gives up being root does it: root without capabilities,
 * without sockets, which can write below the file's own directory only. It is told the lines over a
 * pair of sockets and takes nothing but what mesh/names/hosts.h allows. It ends with the
 * agent.
 *
 * An agent that a service manager starts as another user than root cannot start a helper. The
 * service manager does: it listens on a socket of that user's and starts a helper for whoever
 * connects, which says whose names they are. Which addresses are the network's that helper takes
 * from a file that only root can write (agent/state/blocks_file.h), and not from who connects.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>

#include "mesh/names/hosts.h"

struct hosts_helper;

/** Where the service manager listens: weft-hosts.socket. */
#define HOSTS_HELPER_SOCKET "/run/weft-hosts.sock"

/**
 * hosts_helper_start() - start a helper as a child; only while this process is root and has one
 * thread
 * @path:	the file
 * @rules:	borrowed: which lines the helper will accept, as blocks_file_keep() has them
 *
 * Return: 0 or negative errno with words.
 */
int hosts_helper_start(
    struct hosts_helper **ret, const char *path, const struct hosts_rules *rules, struct err *e);

/**
 * hosts_helper_find() - connect to a helper that a service manager starts
 * @socket_path:	copied
 * @rules:	copied
 *
 * Connects now, and again when the helper has ended.
 *
 * Return: 0; -ENOENT when nobody listens there; or another negative errno, with words.
 */
int hosts_helper_find(struct hosts_helper **ret, const char *socket_path,
    const struct hosts_rules *rules, struct err *e);

/**
 * hosts_helper_serve() - be the helper of the agent that is connected to standard input
 * @state_dir:	of that agent: which addresses it may be given is read beside it
 *
 * Where that file is missing, or of another network or node, or has other blocks than the agent
 * says, lines are refused with a sentence that says so, for the agent's log. Lines can be taken
 * away all the same.
 *
 * Return: negative errno with words when the agent sends rules that are not valid. Otherwise it
 * does not return: the process exits when the agent ends.
 */
int hosts_helper_serve(const char *path, const char *state_dir, struct err *e);

/**
 * hosts_helper_put() - as hosts_file_put(), by the helper
 *
 * Blocks until the helper has written the file.
 *
 * Return: 0; or negative errno with words: -EINVAL when the helper refuses the lines, -EPIPE when
 * it has ended.
 */
int hosts_helper_put(
    struct hosts_helper *h, const char *owner, const char *block, bool *ret_changed, struct err *e);

/** hosts_helper_free() - close the connection, so that the helper ends. */
struct hosts_helper *hosts_helper_free(struct hosts_helper *h);
