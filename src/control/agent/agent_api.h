/*
 * agent_api.h - the node's own socket: `weft status`, `weft run` and `weft leave` ask here.
 *
 * Threads: the loop's.
 */
#pragma once

struct agent;
struct err;
struct server;

/**
 * agent_api_open() - listen on the socket that the agent was told
 * @ret:	gives; also after a failure, if it is not NULL then
 * @a:		pinned
 *
 * Return: 0 or negative errno with words.
 */
int agent_api_open(struct server **ret, struct agent *a, struct err *e);
