/*
 * access.h - what a node has let in and refused by its network's rules (rule.h), as it reports it.
 *
 * {"rules": {"ssh": [PASSED, REFUSED], "": [0, REFUSED]}, "refused": [{"from": "n1", "to": "n3",
 * "service": "tcp/2300", "packets": 5}]}. The numbers of a rule have grown since the agent's start;
 * those of what was refused just now are of it alone.
 *
 * A packet that is refused counts for the first rule that names both its ends, and does not allow
 * the port; for "" where none names them.
 *
 * Pure: JSON in, a struct out, and back.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "mesh/object/object_meta.h"

struct err;

/** Most of each in one report. */
#define ACCESS_RULES_MAX   64
#define ACCESS_REFUSED_MAX 8

/** What is counted up to, 2^53: more is not exact as a number in JSON. */
#define ACCESS_COUNT_MAX (UINT64_C(1) << 53)

/** Room for a node's name or an address, and for "udp/5000-5999", with the zero. */
#define ACCESS_END_MAX     (NAME_MAX_LEN + 1)
#define ACCESS_SERVICE_MAX 24

/** Of one rule. */
struct access_count {
    char rule[NAME_MAX_LEN + 1]; /* its name; "": no rule names both ends */
    uint64_t passed;             /* packets that have begun something, and that it has let in */
    uint64_t refused;            /* packets */
};

/** Packets that were refused. */
struct access_refusal {
    char from[ACCESS_END_MAX]; /* a node, or an address behind one */
    char to[ACCESS_END_MAX];
    char service[ACCESS_SERVICE_MAX]; /* as rule_service_format() has it */
    uint64_t packets;
};

struct access_report {
    struct access_count rules[ACCESS_RULES_MAX];
    struct access_refusal refused[ACCESS_REFUSED_MAX];
    unsigned n_rules;
    unsigned n_refused;
};

/** access_report_encode() - a new reference; NULL: no memory. */
json_t *access_report_encode(const struct access_report *r);

/** access_report_decode() - 0, or -EINVAL with words; @ret is untouched then. */
int access_report_decode(struct access_report *ret, const json_t *json, struct err *e);
