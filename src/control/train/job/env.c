/* env.c - see env.h: the rules of env_rules.h are applied. */
#include "train/job/env.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "train/job/env_fabric.h"
#include "train/job/env_rules.h"

static const char *const verdict_names[] = {
    [ENV_VERDICT_SET] = "set",
    [ENV_VERDICT_KEPT] = "kept",
    [ENV_VERDICT_HURTS] = "hurts",
    [ENV_VERDICT_UNNEEDED] = "unneeded",
};

const char *env_verdict_name(enum env_verdict v)
{
    return verdict_names[v];
}

static bool concerns(const struct env_rule *rule, const struct env_facts *f)
{
    if (!f->command)
        return !rule->needs_command;
    return (rule->kinds & (1u << f->command->kind)) != 0;
}

/* Fills in the entry for a variable that the person has set. Its value is never changed. */
static void judge_theirs(struct env_entry *entry, const struct env_rule *rule,
    const struct env_facts *f, const char *theirs)
{
    (void)snprintf(entry->value, sizeof(entry->value), "%s", theirs);
    entry->verdict =
        rule->hurts && rule->hurts(f, theirs, entry->note) ? ENV_VERDICT_HURTS : ENV_VERDICT_KEPT;
}

static void judge(struct env_entry *entry, const struct env_rule *rule, const struct env_facts *f,
    env_lookup_fn lookup, void *ctx)
{
    const char *theirs = lookup(ctx, rule->name);

    *entry = (struct env_entry){.reason = rule->reason, .source = rule->source};
    (void)snprintf(entry->name, sizeof(entry->name), "%s", rule->name);
    if (theirs) {
        judge_theirs(entry, rule, f, theirs);
        return;
    }
    entry->verdict = ENV_VERDICT_UNNEEDED;
    if (rule->otherwise && lookup(ctx, rule->otherwise))
        (void)snprintf(entry->note, sizeof(entry->note), "%s is set", rule->otherwise);
    else if (rule->make(f, entry->value, entry->note))
        entry->verdict = ENV_VERDICT_SET;
}

void env_plan_make(
    struct env_plan *ret, const struct env_facts *facts, env_lookup_fn lookup, void *ctx)
{
    ret->n = 0;
    for (size_t i = 0; i < env_n_rules; i++)
        if (concerns(&env_rules[i], facts) && !env_fabric_owns(facts, env_rules[i].name))
            judge(&ret->entries[ret->n++], &env_rules[i], facts, lookup, ctx);
    env_fabric_add(ret, facts, lookup, ctx);
    env_fabric_judge(ret, facts);
}

const struct env_entry *env_plan_find(const struct env_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n; i++)
        if (strcmp(plan->entries[i].name, name) == 0)
            return &plan->entries[i];
    return NULL;
}

size_t env_plan_count(const struct env_plan *plan, enum env_verdict verdict)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        n += plan->entries[i].verdict == verdict;
    return n;
}

static void add_kinds(struct str *out, unsigned kinds)
{
    const char *separator = "";

    if (kinds == ENV_FOR_ALL) {
        str_add(out, "all");
        return;
    }
    for (unsigned k = 0; k < COMMAND_KIND_N; k++)
        if (kinds & (1u << k)) {
            str_addf(out, "%s%s", separator, command_kind_name((enum command_kind)k));
            separator = ", ";
        }
}

void env_format_table(struct str *out)
{
    str_add(out, "| variable | for | value | why | source |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < env_n_rules; i++) {
        const struct env_rule *rule = &env_rules[i];

        str_addf(out, "| `%s` | ", rule->name);
        add_kinds(out, rule->kinds);
        str_addf(out, " | %s | %s | %s |\n", rule->value, rule->reason, rule->source);
    }
}
