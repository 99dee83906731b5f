/*
 * params.h - the words in which a lane's parameters are written: "delay=50ms".
 *
 * The same words stand in a topology file and in a command on the control
 * socket.
 */
#pragma once

#include <stdbool.h>

#include "lane.h"

/**
 * params_parse() - read one KEY=VALUE into the parameters of a link's two lanes
 * @word:	KEY=VALUE for both directions, out.KEY=VALUE or in.KEY=VALUE for one
 * @out:	from the first end to the second; borrowed, changed only on success
 * @in:		from the second end to the first; borrowed, changed only on success
 * @ret_error:	one sentence, static
 *
 *   delay=, jitter=	a number and ns, us, ms or s; at most 60 s
 *   loss=, reorder=	a percentage, such as 0.5%
 *   rate=		a number and kbit, mbit or gbit, per second; 0kbit = unlimited
 *   queue=		bytes, or a number and k (KiB) or m (MiB)
 *   mtu=		bytes of payload; 0 = any
 *
 * Return: true if the word was understood.
 */
bool params_parse(
    const char *word, struct lane_params *out, struct lane_params *in, const char **ret_error);
