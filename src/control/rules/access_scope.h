/*
 * access_scope.h - which of a network's rules concern a node, and how: for the packet filter's
 * table (access_table.h) and for the lines of the data plane's own filter (access_lines.h).
 *
 * Pure. Threads: the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mesh/object/rule.h"

struct snapshot;

/** A node, and the rules of its network. */
struct access_scope {
    const struct snapshot *s; /* borrows */
    const struct node *self;
    bool is_open;                    /* what no rule allows passes */
    bool has_jobs;                   /* jobs that are isolated are here */
    const struct rule_peer **groups; /* owns; labels and islands that rules name, each once */
    unsigned n_groups;
};

/** access_scope_init() - 0; or -ENOMEM. */
int access_scope_init(struct access_scope *ret, const struct snapshot *s);

/** access_scope_deinit() - release. */
void access_scope_deinit(struct access_scope *a);

/** access_scope_rules() - how many rules there are. */
size_t access_scope_rules(const struct access_scope *a);

/** access_scope_rule(), access_scope_name() - number @i, and what it is called. Lent. */
const struct rule *access_scope_rule(const struct access_scope *a, size_t i);
const char *access_scope_name(const struct access_scope *a, size_t i);

/** access_scope_is_subnet() - a block behind this node? */
bool access_scope_is_subnet(const struct access_scope *a, const struct rule_peer *to);

/** access_scope_is_in() - may something come to this node by the rule, or to a subnet behind it? */
bool access_scope_is_in(const struct access_scope *a, const struct rule *r);

/** access_scope_is_out() - may this node begin something by it? */
bool access_scope_is_out(const struct access_scope *a, const struct rule *r);

/** access_scope_group() - the number of a label or an island among the groups. */
unsigned access_scope_group(const struct access_scope *a, const struct rule_peer *p);

/** access_scope_is_open() - is what no rule allows let in? */
bool access_scope_is_open(const struct snapshot *s);
