/*
 * preflight_text.h - a report as JSON, which is a contract, and for people.
 *
 * Fields are added, not renamed. Pure.
 */
#pragma once

#include <jansson.h>

#include "train/preflight/preflight.h"

struct str;

/** preflight_encode() - a new reference, NULL for no memory. @elapsed: of the measuring. */
json_t *preflight_encode(
    const struct preflight_report *r, const struct preflight_input *in, nsec_t elapsed);

/** preflight_format() - appended to @out. */
void preflight_format(const struct preflight_report *r, const struct preflight_input *in,
    nsec_t elapsed, struct str *out);
