/* env_fabric.c - see env_fabric.h. */
#include "train/job/env_fabric.h"

#include <stdio.h>
#include <string.h>

#include "train/profile/nccl_vars.h"
#include "train/profile/profile.h"

_Static_assert(ENV_VALUE_MAX == PROFILE_VALUE_MAX && ENV_NOTE_MAX == PROFILE_NOTE_MAX &&
                   ENV_NOTE_MAX == NCCL_NOTE_MAX,
    "values and notes have the same room everywhere");

bool env_fabric_applies(const struct env_facts *f)
{
    return f->fabric && f->islands == ENV_ISLANDS_ONE;
}

bool env_fabric_owns(const struct env_facts *f, const char *name)
{
    return env_fabric_applies(f) && profile_find(profile_of(f->fabric), name);
}

/* Judges the value that the person has set for a variable of the profile. */
static void judge_theirs(struct env_entry *entry, const struct profile *p,
    const struct profile_var *var, const char *wanted, const char *theirs)
{
    bool is_exact = theirs[0] == '=' && strcmp(theirs + 1, wanted) == 0;

    entry->verdict = ENV_VERDICT_KEPT;
    (void)snprintf(entry->value, sizeof(entry->value), "%s", theirs);
    if (wanted[0] == '\0' || is_exact || strcasecmp(wanted, theirs) == 0)
        return;
    if (profile_decides(var))
        entry->verdict = ENV_VERDICT_HURTS;
    (void)snprintf(entry->note, sizeof(entry->note), "the fabric profile %s has %.120s here%s",
        p->name, wanted,
        profile_decides(var) ? ", and with another value the job may not use the fabric" : "");
}

void env_fabric_add(
    struct env_plan *plan, const struct env_facts *f, env_lookup_fn lookup, void *ctx)
{
    const struct profile *p;

    if (!env_fabric_applies(f))
        return;
    p = profile_of(f->fabric);
    for (size_t i = 0; i < p->n_vars && plan->n < ENV_ROOM; i++) {
        const struct profile_var *var = &p->vars[i];
        const char *theirs = lookup(ctx, var->name);
        struct env_entry *entry = &plan->entries[plan->n++];
        char value[PROFILE_VALUE_MAX];
        bool is_needed;

        *entry = (struct env_entry){.reason = var->reason, .source = var->source};
        (void)snprintf(entry->name, sizeof(entry->name), "%s", var->name);
        is_needed = profile_make(var, f->fabric, value, entry->note);
        entry->verdict = is_needed ? ENV_VERDICT_SET : ENV_VERDICT_UNNEEDED;
        memcpy(entry->value, value, is_needed ? sizeof(value) : 1);
        if (theirs)
            judge_theirs(entry, p, var, is_needed ? value : "", theirs);
    }
}

static struct env_entry *find(struct env_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n; i++)
        if (strcmp(plan->entries[i].name, name) == 0)
            return &plan->entries[i];
    return NULL;
}

static void judge(
    struct env_plan *plan, const struct env_facts *f, const char *name, const char *value)
{
    struct env_entry *entry = find(plan, name);
    char note[NCCL_NOTE_MAX] = "";
    enum nccl_verdict verdict = nccl_var_judge(name, value, f->nccl, note);

    if (verdict == NCCL_VERDICT_FINE || (entry && entry->note[0] != '\0') ||
        (!entry && plan->n == ENV_ROOM))
        return;
    if (!entry) {
        entry = &plan->entries[plan->n++];
        *entry = (struct env_entry){.reason = "NCCL does not say which variables it ignores.",
            .source =
                "NCCL's source, 2.4 to 2.30; NCCL user guide; aws-ofi-nccl, doc/efa-env-var.md"};
        (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
        (void)snprintf(entry->value, sizeof(entry->value), "%s", value);
    }
    entry->verdict = verdict == NCCL_VERDICT_NOTHING ? ENV_VERDICT_HURTS : ENV_VERDICT_KEPT;
    memcpy(entry->note, note, sizeof(note));
}

void env_fabric_judge(struct env_plan *plan, const struct env_facts *f)
{
    for (char *const *theirs = f->theirs; theirs && *theirs; theirs++) {
        const char *equals = strchr(*theirs, '=');
        char name[ENV_NAME_MAX];

        if (!equals || (size_t)(equals - *theirs) >= sizeof(name))
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - *theirs), *theirs);
        judge(plan, f, name, equals + 1);
    }
}
