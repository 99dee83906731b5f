/* env_text.c - a plan as text for shells, JSON, Kubernetes and Slurm, and for people; see env.h. */
#include "train/job/env.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

static const char *const form_names[] = {
    [ENV_TEXT_SH] = "sh",
    [ENV_TEXT_JSON] = "json",
    [ENV_TEXT_K8S] = "k8s",
    [ENV_TEXT_SLURM] = "slurm",
};
_Static_assert(sizeof(form_names) / sizeof(*form_names) == ENV_TEXT_N, "a name for each form");

int env_text_parse(enum env_text *ret, const char *name, struct err *e)
{
    size_t form = parse_word(name, form_names, ENV_TEXT_N);

    if (form == ENV_TEXT_N)
        return err_set(e, -EINVAL, "format \"%.20s\" is none of sh, json, k8s, slurm", name);
    *ret = (enum env_text)form;
    return 0;
}

/* Appends text in single quotes, as every shell reads it. */
static void add_quoted(struct str *out, const char *value)
{
    str_add(out, "'");
    for (; *value != '\0'; value++) {
        if (*value == '\'')
            str_add(out, "'\\''");
        else
            str_add_bytes(out, value, 1);
    }
    str_add(out, "'");
}

static int add_lines(struct str *out, const struct env_plan *plan, enum env_text form)
{
    if (form == ENV_TEXT_K8S)
        str_add(out, "env:\n");
    for (size_t i = 0; i < plan->n; i++) {
        const struct env_entry *entry = &plan->entries[i];

        if (entry->verdict != ENV_VERDICT_SET)
            continue;
        if (form == ENV_TEXT_SH) {
            str_addf(out, "export %s=", entry->name);
            add_quoted(out, entry->value);
            str_add(out, "\n");
        } else if (form == ENV_TEXT_K8S) {
            json_auto_t *value = json_string(entry->value);
            _cleanup_(freep) char *text = json_dumps(value, JSON_ENCODE_ANY);

            /* Every JSON string is a YAML string. */
            str_addf(out, "- name: %s\n  value: %s\n", entry->name, text ? text : "\"\"");
        } else {
            str_addf(out, "export %s=%s\n", entry->name, entry->value);
        }
    }
    return out->failed ? -ENOMEM : 0;
}

static int add_json(struct str *out, const struct env_plan *plan)
{
    json_auto_t *all = json_pack("{s:{}, s:[]}", "env", "variables");
    _cleanup_(freep) char *text = NULL;

    for (size_t i = 0; all && i < plan->n; i++) {
        const struct env_entry *entry = &plan->entries[i];
        bool set = entry->verdict == ENV_VERDICT_SET;

        if (json_array_append_new(json_object_get(all, "variables"),
                json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", entry->name, "verdict",
                    env_verdict_names[entry->verdict], "value", entry->value, "note", entry->note,
                    "reason", entry->reason, "source", entry->source)) < 0 ||
            (set && json_object_set_new(
                        json_object_get(all, "env"), entry->name, json_string(entry->value)) < 0))
            all = (json_decref(all), NULL);
    }
    text = json_dumps(all, JSON_INDENT(2));
    if (!text)
        return -ENOMEM;
    str_addf(out, "%s\n", text);
    return out->failed ? -ENOMEM : 0;
}

int env_text_add(struct str *out, const struct env_plan *plan, enum env_text form)
{
    return form == ENV_TEXT_JSON ? add_json(out, plan) : add_lines(out, plan, form);
}

void env_text_explain(struct str *out, const struct env_plan *plan)
{
    for (size_t i = 0; i < plan->n; i++) {
        const struct env_entry *entry = &plan->entries[i];

        switch (entry->verdict) {
        case ENV_VERDICT_SET:
            str_addf(out, "%s=%s\n", entry->name, entry->value);
            break;
        case ENV_VERDICT_KEPT:
            str_addf(out, "%s=%s  (yours, kept%s%s)\n", entry->name, entry->value,
                entry->note[0] != '\0' ? ": " : "", entry->note);
            break;
        case ENV_VERDICT_HURTS:
            str_addf(out, "%s=%s  (yours, kept; it hurts: %s)\n", entry->name, entry->value,
                entry->note);
            break;
        case ENV_VERDICT_UNNEEDED:
            str_addf(out, "%s is not set: %s\n", entry->name, entry->note);
            break;
        }
        str_addf(out, "    %s\n    source: %s\n", entry->reason, entry->source);
    }
}
