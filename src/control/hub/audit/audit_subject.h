/*
 * audit_subject.h - what an operation of a commit is about, whether the audit log tells of it, and
 * in which words.
 *
 * What goes with something else has no entry of its own; audit.h says what that is. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "hub/record/audit_record.h"
#include "hub/record/record.h"
#include "mesh/object/object_meta.h"

struct store_op;

/** What an operation is about. */
struct audit_subject {
    const char *prefix;             /* of its key */
    enum record_kind kind;          /* NONE: nothing that the log tells of, or an admin token */
    bool is_admin;                  /* an admin token */
    char network[NAME_MAX_LEN + 1]; /* "": none is known */
    char name[OBJECT_NAME_MAX + 1]; /* of the node, edge or admin token; a join token's hash */
    uint64_t revision;              /* of the record, before; 0: there was none */
};

/** What the commit does besides, which makes some of its operations a part of something else. */
struct audit_subject_around {
    bool has_network;  /* a network is made or removed */
    bool adds_node;    /* a node is made */
    bool removes_node; /* a node is removed */
};

/** audit_subject_around_of() - all operations of one commit. */
struct audit_subject_around audit_subject_around_of(const struct store_op *ops, size_t n_ops);

/** audit_subject_of() - by the operation's key; its revision is not known yet. */
struct audit_subject audit_subject_of(const struct store_op *op);

/** audit_subject_learn() - the network of a token, which only its value tells. */
void audit_subject_learn(struct audit_subject *s, const char *key, const char *value);

/** audit_subject_is_told() - does it get an entry, with what the commit does besides? */
bool audit_subject_is_told(const struct audit_subject *s, const struct audit_subject_around *all);

/** audit_subject_fill() - what the entry says of it. @new_revision: what the commit becomes. */
void audit_subject_fill(const struct audit_subject *s, const struct store_op *op,
    uint64_t new_revision, struct audit_record *record);
