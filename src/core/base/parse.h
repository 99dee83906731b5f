/*
 * parse.h - numbers, durations and names from text, each with its bounds.
 *
 * Every function takes the whole string or fails with a sentence that names
 * the value and what is allowed; outputs are untouched on failure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct err;

/** Longest name of a node or network, as a DNS label (RFC 1035). */
#define NAME_MAX_LEN 63

/**
 * parse_u64() - decimal digits only
 * @what:	the value's name for the sentence ("port")
 *
 * Return: 0, or -EINVAL when it is not a number in [@min, @max].
 */
int parse_u64(
    uint64_t *ret, const char *text, uint64_t min, uint64_t max, const char *what, struct err *e);

/** parse_duration() - "90s", "15m", "1h", "7d"; a plain number is seconds. [@min, @max]. */
int parse_duration(
    nsec_t *ret, const char *text, nsec_t min, nsec_t max, const char *what, struct err *e);

/**
 * parse_rate() - bits per second: "10Gbit", "500Mbit", "64kbit", or a plain number
 *
 * Decimal units; a fraction ("2.5Gbit") and "/s" behind the unit are understood. At least 1, at
 * most 10^15.
 */
int parse_rate(uint64_t *ret, const char *text, const char *what, struct err *e);

/**
 * parse_name() - check a node's, network's or interface's name
 *
 * A DNS label: 1 to 63 of a-z, 0-9 and '-', not first or last a '-'.
 *
 * Return: 0, or -EINVAL with words.
 */
int parse_name(const char *text, const char *what, struct err *e);

/** parse_word() - the place of @text among @words; @n: it is none of them, or NULL. */
size_t parse_word(const char *text, const char *const words[], size_t n);

/**
 * parse_decimal() - the number that a text begins with, as people write amounts: "12", "2.5", "7e9"
 * @ret_end:	gives what stands behind it; @text itself when it begins with none
 *
 * None with a sign, and none in hexadecimal, which strtod() takes, too.
 *
 * Return: the number, perhaps INFINITY; 0 when there is none.
 */
double parse_decimal(const char *text, char **ret_end);

/** format_duration() - "3 s", "5 min 10 s", "2 h 4 min", for people. Returns @buf. */
const char *format_duration(nsec_t d, char buf[static 32]);
