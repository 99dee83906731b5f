/*
 * fabric_report.h - `status.fabric` of a Node: the fast fabric that its agent has found, and what
 * tells with whom the node shares it.
 *
 * Pure: JSON in, a struct out, and back.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

#define FABRIC_REPORT_TEXT_MAX 64  /* bytes of a text, with its zero */
#define FABRIC_KEY_MAX         128 /* bytes of a key, with its zero */
#define FABRIC_KEYS_MAX        4
#define FABRIC_GBIT_MAX        1000000
#define FABRIC_GPUS_MAX        1024

/** A text that nodes have in common which may share a fabric, such as "aws-group/use1-az4/train".
 */
struct fabric_key {
    char text[FABRIC_KEY_MAX];
    bool is_exact; /* false: others elsewhere may have it, too, so nearness has to be measured */
};

struct fabric_report {
    char kind[FABRIC_REPORT_TEXT_MAX];    /* "efa", "infiniband"; others from newer nodes */
    char machine[FABRIC_REPORT_TEXT_MAX]; /* its type, as its cloud calls it; "": not known */
    char gpu[FABRIC_REPORT_TEXT_MAX];     /* model; "": none, or not known */
    unsigned n_gpus;
    unsigned gbit;       /* of all active ports together, Gbit/s; 0: not known */
    bool asked_together; /* the machine was asked to be placed near the others of its group */
    struct fabric_key keys[FABRIC_KEYS_MAX];
    size_t n_keys;
};

/**
 * fabric_report_decode() - check the field and take it in
 * @ret:	untouched on failure
 * @where:	what it is of, for the words
 *
 * Fields and keys of a newer node are passed over.
 *
 * Return: 0, or -EINVAL with words that name the field and what is allowed.
 */
int fabric_report_decode(
    struct fabric_report *ret, const json_t *json, const char *where, struct err *e);

/** fabric_report_encode() - a new reference, NULL: no memory. */
json_t *fabric_report_encode(const struct fabric_report *r);
