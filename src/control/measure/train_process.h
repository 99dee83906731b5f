/*
 * train_process.h - trains from this machine to one node (uplink/train.h), in a process of its own,
 * without any capability: how a hub measures its line.
 *
 * A hub has no measuring service, and nothing is ordered of it. It starts this same program with
 * one end of a socket pair, says to whom to send, and with which key to prove the session there, in
 * one line of JSON, and reads what has come of it, in another one. The process ends then.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "measure/result.h"
#include "wire/measure_proof.h"

struct err;

#define TRAIN_INTERFACE_CAP 16 /* bytes, with the terminating zero */

/** To whom to send. */
struct train_task {
    char interface[TRAIN_INTERFACE_CAP]; /* of the overlay; "": bound to none (tests) */
    uint32_t port;                       /* of the node's measuring service */
    struct ip_addr own;                  /* this machine's address on the overlay, IPv4 */
    struct ip_addr peer;                 /* the node's */
    struct ip_addr underlay;             /* where its datagrams come from */
    struct measure_proof_key key;        /* of orders from this machine to it */
    uint64_t known;                      /* what the line was found to carry, bit/s; 0: not known */
};

/** What has come of it. */
struct train_answer {
    uint64_t bits_per_s;      /* with headers; 0: nothing was measured */
    bool is_line;             /* the line carries that; else it carries that at least */
    char why[RESULT_WHY_MAX]; /* why nothing was; "": something was */
};

/** train_task_encode() - as JSON, which has the key: a new reference; NULL: no memory. */
json_t *train_task_encode(const struct train_task *t);

/** train_task_decode() - check every field, and take them in. 0; or -EINVAL with words, and @ret is
 * untouched. */
int train_task_decode(struct train_task *ret, const json_t *json, struct err *e);

/** train_answer_encode() - as JSON: a new reference; NULL: no memory. */
json_t *train_answer_encode(const struct train_answer *a);

/** train_answer_decode() - as train_task_decode(). */
int train_answer_decode(struct train_answer *ret, const json_t *json, struct err *e);

/** train_task_run() - begin a session with the node, and send. Blocks for some seconds. @ret:
 * always set. */
void train_task_run(const struct train_task *t, struct train_answer *ret);

/**
 * train_process_run() - read a task from @fd, of a socket, carry it out, and write the answer there
 *
 * Gives up what it does not need first. Threads: while the process has one.
 *
 * Return: 0; or negative errno with words.
 */
int train_process_run(int fd, struct err *e);
