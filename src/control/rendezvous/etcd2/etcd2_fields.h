/*
 * etcd2_fields.h - what the form of a request of etcd's v2 API asks for. Sans-I/O.
 *
 * The names of the fields, what each may hold, the order in which they are checked and the words of
 * refusals are etcd's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rendezvous/etcd2/etcd2_api.h"

/** What a form says, checked. Starts as zeroes, with an empty value. */
struct etcd2_fields {
    bool recursive;
    bool wait;
    bool has_exist;             /* prevExist is in the form */
    bool exist;                 /* its value */
    bool no_value;              /* noValueOnSuccess: the answer leaves out what was written */
    uint64_t from_index;        /* waitIndex; 0: it is not in the form */
    struct etcd2_text value;    /* borrowed from the form */
    struct etcd2_change change; /* prevValue is borrowed from the form */
};

/**
 * etcd2_fields_read() - read and check the form of @rq
 *
 * Return: 0; or a code of etcd2_tree.h with @why, and then @ret is not to be used.
 */
int etcd2_fields_read(
    const struct etcd2_request *rq, struct etcd2_fields *ret, struct etcd2_refusal *why);
