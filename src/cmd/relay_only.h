/* relay_only.h - weft hub up --relay-only: a machine that relays for a network, and does no more.
 */
#pragma once

#include "base/addr.h"

struct err;

/** What was asked for. Borrowed. */
struct relay_only {
    const char *token; /* NULL: this machine has joined already */
    const char *name;  /* NULL: the host's */
    const char *state_dir;
    const char *socket_path; /* of the agent */
    const char *user;        /* to run as, as --user says */
    const char *interface;
    const struct endpoint *publics; /* where nodes reach it, as the operator says */
    unsigned n_publics;
    uint16_t listen_port;
};

/**
 * relay_only_run() - be a member that relays, until a signal ends it; joins first where it has not
 *
 * Return: 0; or non-zero with words.
 */
int relay_only_run(const struct relay_only *wish, struct err *e);
