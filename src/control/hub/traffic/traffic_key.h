/*
 * traffic_key.h - the keys of the records of what nodes have moved.
 *
 *     traffic/NET/2026-11-23/NODE/HUB    the day's sums of that node (traffic.h), as it has told
 * that hub
 *
 * Each hub writes its own records, so none overwrites another one's.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "hub/record/record.h"

#define TRAFFIC_KEY_PREFIX "traffic/"

struct traffic_key {
    char network[NAME_MAX_LEN + 1];
    int32_t day;
    char node[NAME_MAX_LEN + 1];
    char hub[NAME_MAX_LEN + 1];
};

/** traffic_key_format() - Returns @buf. */
const char *traffic_key_format(char buf[static RECORD_KEY_MAX], const struct traffic_key *key);

/** traffic_key_parse() - false: it is none; @ret is untouched then. */
bool traffic_key_parse(struct traffic_key *ret, const char *text);

/** traffic_key_network() - what all keys of a network begin with. Returns @buf. */
const char *traffic_key_network(char buf[static RECORD_KEY_MAX], const char *network);

/** traffic_key_day() - what all keys of a day begin with, without the last slash. Returns @buf. */
const char *traffic_key_day(char buf[static RECORD_KEY_MAX], const char *network, int32_t day);
