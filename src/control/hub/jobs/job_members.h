/*
 * job_members.h - which members have come to the present run of a job, and what NCCL took there.
 *
 * `weft run` says by it who is missing, and only who has come to a run may say that it is broken.
 * It lives in memory. A hub that was started anew, or has taken the job over, knows of nobody until
 * they ask again, and so it does not know that somebody has not come: see @is_whole.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/** Members of which it is kept what NCCL took; the others' word on that is passed over. */
#define JOB_MEMBERS_NCCL_MAX 256

/** Who has come. All zero: nobody is known. */
struct job_members {
    json_t *names; /* owns; by name: what it says of NCCL, or true; NULL: nobody */
    bool is_whole; /* the run began here, so that all who have come are known */
    unsigned n_nccl;
};

/** job_members_deinit() - forget all. Idempotent. */
void job_members_deinit(struct job_members *m);

/** job_members_begin() - a run begins: nobody has come to it. */
void job_members_begin(struct job_members *m);

/** job_members_add() - @name has come; again is fine. Without memory it is not told of. */
void job_members_add(struct job_members *m, const char *name);

/** job_members_may_be() - has @name come, or is that not known? */
bool job_members_may_be(const struct job_members *m, const char *name);

/** job_members_list() - the names, sorted; gives a reference, NULL: no memory. */
json_t *job_members_list(const struct job_members *m);

/** job_members_set_nccl() - what NCCL took on @name; @said: an object of text, taken. */
void job_members_set_nccl(struct job_members *m, const char *name, json_t *said);

/**
 * job_members_nccl() - what NCCL took, sorted by the node's name
 *
 * Return: a reference to an array, each of its objects with "node"; NULL: nobody has said, or no
 * memory.
 */
json_t *job_members_nccl(const struct job_members *m);
