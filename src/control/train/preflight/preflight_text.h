/*
 * preflight_text.h - a report of preflight.h as JSON, and as text for people.
 *
 * Programs rely on the JSON: fields may be added to it, but none is renamed. Pure.
 */
#pragma once

#include <jansson.h>

#include "train/preflight/preflight.h"

struct str;

/**
 * preflight_encode() - the report as JSON
 * @in:		what was judged; borrowed
 * @elapsed:	how long the measuring took, ns
 *
 * Return: a new reference; NULL for no memory.
 */
json_t *preflight_encode(
    const struct preflight_report *r, const struct preflight_input *in, nsec_t elapsed);

/**
 * preflight_format() - the report as text for people
 * @in:		what was judged; borrowed
 * @elapsed:	how long the measuring took, ns
 * @out:	appended to; remembers a failure
 */
void preflight_format(const struct preflight_report *r, const struct preflight_input *in,
    nsec_t elapsed, struct str *out);
