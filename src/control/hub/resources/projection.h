/*
 * projection.h - all objects of the hub and all resources of a namespace, and which of them is
 * next.
 *
 * It is told what the hub has, what the API server has, and what became of each request, in any
 * order; and it says what to do next, one step at a time. What one step is, resource.h decides.
 *
 * Theory of operation. An item is an object, a resource, or both. Whatever is told about it puts it
 * in the list @due; projection_next() takes it from there and decides. Nothing is decided before
 * both sides have been told whole, or an object that was not told of yet would look removed.
 *
 * After a write the item waits until the watch shows the version that the server has answered with,
 * or for five seconds: what was read before the write must not be decided upon. While the hub
 * judges a wish, the item waits for that.
 *
 * What nodes report changes all the time. So writes of status are rare: only what resource_parts()
 * finds worth it, after all that is due otherwise, and no more than twenty a second.
 *
 * What becomes old does so by the time alone: so items are looked at in turns, some with each
 * projection_next().
 *
 * Pure: no clock, no socket. Threads: one at a time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/rate.h"
#include "hub/resources/resource.h"
#include "os/clock.h"
#include "store/keys.h"

/** Writes of status: each costs so long, and so many may come at once. */
#define PROJECTION_STATUS_EACH  (NSEC_PER_SEC / 20)
#define PROJECTION_STATUS_BURST 20

struct projection_item {
    struct keyed keyed; /* "PLURAL/NAME" */
    const struct object_kind *kind;
    const char *name; /* of the resource; in the key */
    struct resource_want want;
    struct resource_seen seen;
    json_t *status;  /* owns; as the hub told it, until it is written; NULL: it is */
    json_t *own;     /* owns; the hub's own part of it; NULL: not told yet */
    json_t *heard;   /* owns; of an edge: own_parts_hear(); NULL: nothing yet */
    size_t n_off;    /* parts that their writers write themselves, and that do not count; as of the
                        last look */
    bool is_to_tell; /* there are more of them: people are told, and the hub tells its status again
                      */
    char *refused;   /* owns; why the hub does not do what the spec says; NULL */
    const char *reason;            /* "Refused" or "Conflict"; with @refused */
    char asked[RESOURCE_HASH_MAX]; /* spec that the hub was asked for last */
    bool is_asked;                 /* the hub has not answered yet */
    bool is_kept;                  /* it has refused to remove the object */
    bool has_to_mark;              /* it has refused @asked, and the resource does not say so yet */
    char *awaited;                 /* owns; the version that the watch has to show; NULL: none */
    bool has_waited;               /* that time is over */
    nsec_t wait_until;             /* in @waiting: it is due then at the latest */
    unsigned n_failed;             /* writes that have failed since the last success */
    struct list due;               /* in @due or @waiting */
    struct list status_due;        /* in @status_due */
    bool is_listed;                /* by the list that is being read */
};

struct projection {
    struct keys items;
    struct list due;
    struct list waiting; /* the rest is in no list */
    struct list status_due;
    struct rate status_rate;
    char now[CLOCK_TEXT_MAX];        /* the time, RFC 3339: set before projection_next() */
    size_t cursor;                   /* of the looks at what becomes old, in @items */
    bool is_complete;                /* the hub has told all that it has */
    bool keeps_all;                  /* see projection_keep_all() */
    bool has_list[OBJECT_KINDS_MAX]; /* all resources of the kind were read */
};

/** projection_init() - nothing is known. */
void projection_init(struct projection *p);

/** projection_reset() - forget everything. Also the end; idempotent. */
void projection_reset(struct projection *p);

/** projection_find() - lends the item; NULL: there is none. @name: of the resource. */
struct projection_item *projection_find(
    const struct projection *p, const struct object_kind *kind, const char *name);

/* ---- what is told ----
 *
 * Return: 0 or -ENOMEM.
 */

/** projection_want() - the hub has @object, or none (NULL), of that name. */
int projection_want(
    struct projection *p, const struct object_kind *kind, const char *name, const json_t *object);

/** projection_status() - and this is its status, as resource_parts() takes it. */
int projection_status(
    struct projection *p, const struct object_kind *kind, const char *name, const json_t *status);

/** projection_saw() - a resource was read, or the watch tells of it. */
int projection_saw(struct projection *p, const struct object_kind *kind, const json_t *resource);

/** projection_gone() - the watch tells that it is no more. */
void projection_gone(struct projection *p, const struct object_kind *kind, const char *name);

/**
 * projection_keep_all() - delete no resource until the next call
 *
 * The hub has records that it cannot understand, so what it does not tell of may be there.
 */
void projection_keep_all(struct projection *p, bool is_it);

/** projection_list_begin(), projection_list_end() - around projection_saw() of all of a kind. */
void projection_list_begin(struct projection *p, const struct object_kind *kind);
void projection_list_end(struct projection *p, const struct object_kind *kind);

/* ---- what is done ---- */

struct projection_step {
    struct projection_item *item; /* lent until the next projection_next() or reset */
    enum resource_step what;      /* RESOURCE_NOTHING: write its status */
    enum resource_yield yield;    /* for RESOURCE_APPLY */
};

/** projection_next() - what to do now. False: nothing. */
bool projection_next(struct projection *p, nsec_t now, struct projection_step *ret);

/** projection_verdict() - what the item's conditions say; @now: RFC 3339, borrowed. */
struct resource_verdict projection_verdict(const struct projection_item *item, const char *now);

/** projection_parts() - those parts of its status that are to be written, for
 * resource_part_deinit(); @now: as above. Returns how many. */
size_t projection_parts(struct resource_part ret[static RESOURCE_PARTS_MAX],
    const struct projection_item *item, const char *now);

/** projection_asked() - the step was given to the hub; the answer will come. */
void projection_asked(struct projection *p, struct projection_item *item);

/**
 * projection_judged() - it has answered
 * @is_remove:	that was RESOURCE_ASK_REMOVE
 * @status:	as HTTP has it
 * @text:	the sentence, when it refuses
 * @object:	what the hub has now, when it has done a PUT
 *
 * Return: true: it is a refusal that is to be shown.
 */
bool projection_judged(struct projection *p, struct projection_item *item, bool is_remove,
    int status, const char *text, const json_t *object, nsec_t now);

/** projection_clash() - fields of others stay as they are. True: that is new, and to be shown. */
bool projection_clash(struct projection_item *item, const char *text);

/** projection_wrote() - a write of the resource succeeded. @version: as it is then; NULL: none. */
void projection_wrote(
    struct projection *p, struct projection_item *item, const char *version, nsec_t now);

/** projection_wrote_status() - its status is written, as far as that is worth it. */
void projection_wrote_status(struct projection_item *item);

/** projection_failed() - a write failed: it is tried again, later each time. */
void projection_failed(struct projection *p, struct projection_item *item, nsec_t now);
