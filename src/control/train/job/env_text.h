/* env_text.h - a plan as text: for shells, JSON, Kubernetes, Slurm, and for people. */
#pragma once

#include "train/job/env.h"

struct err;
struct str;

enum env_text {
    ENV_TEXT_SH,    /* export NAME='VALUE', for eval */
    ENV_TEXT_JSON,  /* every entry, also those that are not set */
    ENV_TEXT_K8S,   /* the env: list of a container */
    ENV_TEXT_SLURM, /* what a TaskProlog prints */
    ENV_TEXT_N,
};

/** env_text_parse() - "sh", "json", "k8s", "slurm". 0, or -EINVAL with words. */
int env_text_parse(enum env_text *ret, const char *name, struct err *e);

/** env_text_add() - append @plan in that form. 0 or -ENOMEM. */
int env_text_add(struct str *out, const struct env_plan *plan, enum env_text form);

/** env_text_explain() - append every entry with its verdict, reason and source. */
void env_text_explain(struct str *out, const struct env_plan *plan);
