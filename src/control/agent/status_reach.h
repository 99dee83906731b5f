/*
 * status_reach.h - how one peer is reached: the fields that the status and `weft paths` share.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/clock.h"

struct reach_peer;

#define STATUS_REACH_PATH_MAX 128 /* of a path's words, with the NUL */

/**
 * status_reach_encode() - {"path", "relay", "why", "sinceSeconds", "rttMs", "leastRttMs", "loss",
 * "rateBitsPerSecond"}
 * @rate:	what is sent to it is kept to so many bit/s; 0: to none
 *
 * Return: a new reference, NULL for no memory.
 */
json_t *status_reach_encode(const struct reach_peer *peer, uint64_t rate, nsec_t now);

/** status_reach_path() - the first two of these in words, as "relay via r1". Return: @buf. */
const char *status_reach_path(const json_t *peer, char buf[static STATUS_REACH_PATH_MAX]);
