/* access_scope.c - see access_scope.h. */
#include "rules/access_scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
#include "rules/job_ports.h"

/* Most selectors of several nodes that the rules of one node have. */
#define GROUPS_MAX 4096

size_t access_scope_rules(const struct access_scope *a)
{
    return snapshot_list(a->s, &rule_kind)->n;
}

const struct rule *access_scope_rule(const struct access_scope *a, size_t i)
{
    return rule_of(snapshot_list(a->s, &rule_kind)->items[i]);
}

const char *access_scope_name(const struct access_scope *a, size_t i)
{
    return snapshot_list(a->s, &rule_kind)->items[i]->meta.name;
}

bool access_scope_is_subnet(const struct access_scope *a, const struct rule_peer *to)
{
    return to->kind == RULE_PEER_SUBNET && a->self->routes &&
           subnets_find(a->self->routes, &to->subnet);
}

bool access_scope_is_in(const struct access_scope *a, const struct rule *r)
{
    bool has = rule_is_about(r->to, r->n_to, &(struct rule_end){.node = a->self});

    for (unsigned k = 0; k < r->n_to && !has; k++)
        has = access_scope_is_subnet(a, &r->to[k]);
    return has;
}

bool access_scope_is_out(const struct access_scope *a, const struct rule *r)
{
    return rule_is_about(r->from, r->n_from, &(struct rule_end){.node = a->self});
}

static bool is_group(const struct rule_peer *p)
{
    return p->kind == RULE_PEER_LABEL || p->kind == RULE_PEER_ISLAND;
}

static bool is_same_group(const struct rule_peer *a, const struct rule_peer *b)
{
    return a->kind == b->kind && strcmp(a->label.key, b->label.key) == 0 &&
           strcmp(a->label.value, b->label.value) == 0;
}

unsigned access_scope_group(const struct access_scope *a, const struct rule_peer *p)
{
    unsigned i = 0;

    while (i < a->n_groups && !is_same_group(a->groups[i], p))
        i++;
    return i;
}

static void note_groups(struct access_scope *a, const struct rule_peer *peers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (is_group(&peers[i]) && access_scope_group(a, &peers[i]) == a->n_groups &&
            a->n_groups < GROUPS_MAX)
            a->groups[a->n_groups++] = &peers[i];
}

bool access_scope_is_open(const struct snapshot *s)
{
    const struct snapshot_list *rules = snapshot_list(s, &rule_kind);

    return rules_are_open((const struct object *const *)rules->items, rules->n,
        s->network.isolation == ISOLATION_STRICT);
}

int access_scope_init(struct access_scope *ret, const struct snapshot *s)
{
    struct access_scope a = {.s = s, .self = snapshot_self(s)};

    a.groups = calloc(GROUPS_MAX, sizeof(*a.groups));
    if (!a.groups)
        return -ENOMEM;
    a.is_open = access_scope_is_open(s);
    a.has_jobs = job_ports_is_any(s);
    for (size_t i = 0; i < access_scope_rules(&a); i++) {
        const struct rule *r = access_scope_rule(&a, i);

        if (access_scope_is_in(&a, r))
            note_groups(&a, r->from, r->n_from);
        if (access_scope_is_out(&a, r))
            note_groups(&a, r->to, r->n_to);
    }
    *ret = a;
    return 0;
}

void access_scope_deinit(struct access_scope *a)
{
    free(a->groups);
    *a = (struct access_scope){.s = NULL};
}
