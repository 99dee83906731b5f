/*
 * own_parts.h - the parts of an edge's status that their writers write themselves: which of them
 * the hub leaves alone.
 *
 * The agent and the probe of a node may write their parts of a MeshEdge in the cluster's API
 * themselves, and the hub writes those of all others. Whose part is written by whom is seen in the
 * part (kube_part.h). The hub leaves alone what was written in time, so there is no contest for a
 * field; when a writer stops, the hub writes its part again, with what it hears.
 *
 * Theory of operation. Nobody has to be believed that a part is its writer's. Where the API server
 * has a policy for that (deploy/kubernetes/edge-policy.yaml), it has refused all others. The
 * hub checks besides, as where there is none. A part is set aside, which means that the hub writes
 * it as if there were no such writer, and says so,
 *
 *   - at once, if its field manager is another one than the part's, or if it is that of a node
 * which is no end of the edge;
 *   - if for two minutes it says something else than the same node says to the hub, by a channel
 *     that proves who says it (docs/wire/member.md), and was written anew meanwhile.
 *
 * Pure: no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/kubernetes/kube_part.h"
#include "base/parse.h"

/** Most of an edge: two agents' and two probes'. */
#define OWN_PARTS_MAX 4

/** Longest name of a part: "agent/NAME". */
#define OWN_PART_NAME_MAX (sizeof("agent/") - 1 + NAME_MAX_LEN)

/** How long a part may contradict its node before it is set aside, s. */
#define OWN_PARTS_DIFFER_S 120

/** Room for the sentence why a part is set aside. */
#define OWN_PART_WHY_MAX 320

struct own_part {
    char name[OWN_PART_NAME_MAX + 1];
    char by[KUBE_PART_MANAGER_MAX + 1]; /* who else has written it; "": nobody */
    char says[KUBE_PART_SAYS_MAX];      /* kube_part_says() */
    char heard[KUBE_PART_SAYS_MAX];     /* what its node says to the hub; "": nothing */
    int64_t at;                         /* when it was observed, s since 1970 */
    int64_t every_s;                    /* it is written again at least so often */
    bool is_of_no_end;                  /* its node is no end of the edge */
    bool is_aside;
};

struct own_parts {
    struct own_part *items; /* owns; NULL: there are none */
    size_t n;
};

/**
 * own_parts_set() - as the API server has them
 * @o:		deinit; all zero is fine
 * @edge:	name of the edge's resource
 * @status:	of the resource
 * @managed:	its managedFields
 *
 * Return: 0 or -ENOMEM.
 */
int own_parts_set(
    struct own_parts *o, const char *edge, const json_t *status, const json_t *managed);

/** own_parts_deinit() - idempotent. */
void own_parts_deinit(struct own_parts *o);

/**
 * own_parts_hear() - what the nodes say to the hub
 * @heard:	of the edge, a new object at first; keeps since when each part differs
 * @status:	of the edge, as the hub has it
 */
void own_parts_hear(json_t *heard, const json_t *status);

/**
 * own_parts_assess() - which are to be set aside, or are old?
 * @heard:	of own_parts_hear(); NULL: nothing was heard
 * @now:	s since 1970
 *
 * Return: how many the hub does not leave alone.
 */
size_t own_parts_assess(struct own_parts *o, json_t *heard, int64_t now);

/** own_parts_find() - lends the part of that name, however old; NULL: its writer does not write it.
 */
const struct own_part *own_parts_find(const struct own_parts *o, const char *name);

/** own_parts_has() - does the hub leave the part of that name alone? */
bool own_parts_has(const struct own_parts *o, const char *name, int64_t now);

/** own_part_explain() - why it is set aside, a sentence. Returns @buf. */
const char *own_part_explain(const struct own_part *p, char buf[static OWN_PART_WHY_MAX]);

/**
 * own_parts_stale() - the condition "Stale"
 * @silent:	{"PART": s since 1970}: when each writer that is silent was heard last
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *own_parts_stale(const struct own_parts *o, const json_t *silent, int64_t now);
