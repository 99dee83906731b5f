/* env_text.h - writes a plan as text for shells, JSON, Kubernetes and Slurm, and for people. */
#pragma once

#include "train/job/env.h"

struct err;
struct str;

/** The forms. Only JSON also has the variables that are not to be set. */
enum env_text {
    ENV_TEXT_SH,    /* lines "export NAME='VALUE'", for a shell's eval */
    ENV_TEXT_JSON,  /* an object: "env" to be set, and "variables" with every entry */
    ENV_TEXT_K8S,   /* the "env:" list of a container, in YAML */
    ENV_TEXT_SLURM, /* lines "export NAME=VALUE", as a TaskProlog prints them */
    ENV_TEXT_N,     /* the number of forms */
};

/** env_text_parse() - a form from "sh", "json", "k8s" or "slurm". 0, or -EINVAL with words. */
int env_text_parse(enum env_text *ret, const char *name, struct err *e);

/** env_text_add() - append @plan in that form. Return: 0 or -ENOMEM. */
int env_text_add(struct str *out, const struct env_plan *plan, enum env_text form);

/** env_text_explain() - append every entry with its verdict, reason and source. */
void env_text_explain(struct str *out, const struct env_plan *plan);
