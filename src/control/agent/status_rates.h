/*
 * status_rates.h - the rates in a node's status: those that its interface keeps now.
 *
 * Parts of status.h's JSON and table.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct str;
struct traffic_rates;

/** status_rates_encode() - {"bitsPerSecond", "classes", "showsDscp", "why"}; NULL for no memory.
 * @why: why rates are not kept; "" or NULL: they are, or none is wanted. */
json_t *status_rates_encode(const struct traffic_rates *rates, bool shows_dscp, const char *why);

/** status_rates_encode_one() - bit/s, or null for none. */
json_t *status_rates_encode_one(uint64_t bits_per_s);

/** status_rates_format() - for people, nothing where there are none. @status: the whole status.
 * Appends to @out. */
void status_rates_format(const json_t *status, struct str *out);

/** status_rates_format_path() - of what status_encode_paths() made. Appends to @out. */
void status_rates_format_path(const json_t *paths, struct str *out);
