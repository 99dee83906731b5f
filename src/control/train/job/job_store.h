/*
 * job_store.h - asks a job's store at the hub: the v2 keys API of etcd.
 *
 * What the nodes of a job agree on (agree.h) and their ranks (ranks.h) are keys of it, of one run
 * of the job each.
 *
 * Threads: one at a time for each store. All but job_store_close() block.
 */
#pragma once

#include <jansson.h>

struct env_meeting;
struct err;
struct remote_http;

/* HTTP statuses of its answers. */
#define JOB_STORE_OK     200
#define JOB_STORE_MADE   201
#define JOB_STORE_ABSENT 404
#define JOB_STORE_EXISTS 412 /* prevExist=false was asked for, and it is there */

/** Room for a path, bytes. */
#define JOB_STORE_PATH_MAX 256

struct job_store {
    struct remote_http *http; /* owns */
    char folder[160];         /* path of the run's keys */
};

/** job_store_open() - @m: where the job meets, and its run. 0; or negative errno with words. */
int job_store_open(struct job_store *ret, const struct env_meeting *m, struct err *e);

/** job_store_close() - idempotent. */
void job_store_close(struct job_store *s);

/**
 * job_store_ask() - one request
 * @what:	of the run's keys, such as "plan", or "ranks?sorted=true"
 * @form:	the fields, encoded; NULL: none
 * @ret:	gives the answer's object "node", NULL if it has none; may be NULL
 *
 * Return: an HTTP status; or negative errno with words.
 */
int job_store_ask(struct job_store *s, const char *method, const char *what, const char *form,
    json_t **ret, struct err *e);

/** job_store_refuse() - an answer that was not expected. Return: -EPROTO, with words. */
int job_store_refuse(int status, struct err *e);
