/*
 * agent_ask.h - asks the agent that runs on this machine, through its socket.
 *
 * Threads: any; waits for the answer.
 */
#pragma once

#include <jansson.h>

struct err;

/** No agent answers on the socket. */
#define AGENT_ASK_E_NONE 1

/**
 * agent_ask() - a request, and its answer
 * @socket_path:	of the agent; also where its socket for members of a group is found
 * @ret:	gives a reference; may be NULL when the body is not wanted
 *
 * Return: 0; AGENT_ASK_E_NONE with words that say why, and which command helps; or negative errno
 * with words.
 */
int agent_ask(const char *socket_path, const char *method, const char *path, unsigned timeout_ms,
    json_t **ret, struct err *e);

/** agent_ask_with() - the same with a body, which is borrowed; NULL: none. */
int agent_ask_with(const char *socket_path, const char *method, const char *path,
    const json_t *body, unsigned timeout_ms, json_t **ret, struct err *e);

/**
 * agent_ask_to_end() - a POST upon which the agent ends, and wait until it has
 * @timeout_ms:	of the answer, and once more of the end
 *
 * The agent writes its state while it ends, and holds the state directory until then.
 *
 * Return: as agent_ask(). When the agent has answered and does not end: negative errno with words,
 * and @ret is given all the same.
 */
int agent_ask_to_end(
    const char *socket_path, const char *path, unsigned timeout_ms, json_t **ret, struct err *e);
