/*
 * kube_part.h - one writer's part of the status of a resource: how it is applied, what of it is
 * worth a write, and when it is old.
 *
 * Each part has one writer, and is applied as the field manager that is called as the part:
 * "agent/gpu-1". The agent and the probe of a node write theirs themselves, where they are told to
 * (agent/cluster/cluster_writer.h); for all others the hub writes what they report
 * (hub/resources/resource.h). Both say when it was observed. Who writes its own part also says how
 * often it does at least, and so everybody can see which parts are their writers' own, and when one
 * of them has stopped.
 *
 * Pure, but for kube_part_apply().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/kubernetes/kube_client.h"
#include "base/clock.h"

/** When it was observed, RFC 3339. */
#define KUBE_PART_AT "observedAt"

/** It is written again at least so often, s; only of a part that its own writer writes. */
#define KUBE_PART_EVERY "everySeconds"

/** The longest that is believed: two days. */
#define KUBE_PART_EVERY_MAX (2 * 86400)

/** Room for what kube_part_says() says. */
#define KUBE_PART_SAYS_MAX 64

/** Longest name of a field manager, as Kubernetes has it. */
#define KUBE_PART_MANAGER_MAX 128

/** kube_part_stamp() - now, by the writer's clock: add to its own @part that it is so. */
void kube_part_stamp(json_t *part, int64_t at, int64_t every_s);

/** kube_part_is_own() - does its own writer write it? @ret_at, @ret_every_s: set if so. */
bool kube_part_is_own(const json_t *part, int64_t *ret_at, int64_t *ret_every_s);

/**
 * kube_part_is_old() - has its writer missed two turns?
 *
 * So it is as well when the part is dated so far ahead that its age says nothing.
 */
bool kube_part_is_old(int64_t at, int64_t every_s, int64_t now);

/**
 * kube_part_says() - the gist of it, which two who know the same say in the same words: "relay",
 * "reached, UDP silent"
 *
 * "": it is no part of an agent's or a probe's.
 */
void kube_part_says(char ret[static KUBE_PART_SAYS_MAX], const json_t *part);

/** kube_part_hash() - of a part, or a whole status, without what alone is not worth a write. */
void kube_part_hash(char ret[static KUBE_SPEC_HASH_MAX], const json_t *status);

/** kube_part_is_restless() - is the field of that name such a one? */
bool kube_part_is_restless(const char *field);

/** kube_part_drop_empty() - take fields away that are an empty text: Kubernetes 1.20 takes them
 * for null. */
void kube_part_drop_empty(json_t *status);

/**
 * kube_part_apply() - server-side, as the field manager @manager
 * @status:	its fields alone; what it had applied before and is not in it is gone
 * @by_force:	take fields that others own; else KUBE_E_EXISTS, with the server's words
 *
 * Return, and the rest: as of kube_client_ask().
 */
int kube_part_apply(struct kube_client *c, const struct object_kind *kind, const char *name,
    const char *manager, const json_t *status, bool by_force, nsec_t until, json_t **ret,
    struct err *e);
