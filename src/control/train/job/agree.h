/*
 * agree.h - one node of a job finds something out, and all nodes of the job take its result.
 *
 * A plan that each node made for itself could differ from node to node, and a job whose nodes
 * exchange at different steps hangs. And only one node can measure the network at a time. So the
 * first node that comes claims the work with a key in the job's store at the hub (the v2 keys API
 * of etcd), does it, and writes the result there; the others wait for the result. The keys belong
 * to one run of the job. A claim ends by itself when its node does not finish in time, and then
 * another node claims the work.
 */
#pragma once

struct env_meeting;
struct err;
struct str;

/** Longest result, bytes. The store keeps 256 KiB of a key (rendezvous/etcd2/etcd2_node.h). */
#define AGREE_TEXT_MAX (200u << 10)

/**
 * agree_make_fn - find it out
 * @out:	the result is appended
 *
 * Return: 0; or non-zero with words, which the other nodes get, too.
 */
typedef int (*agree_make_fn)(void *ctx, struct str *out, struct err *e);

/** What is to be found out, and by whom. Texts are borrowed. */
struct agree_wish {
    const struct env_meeting *meeting; /* where the job meets */
    const char *what;                  /* the key's name: letters and dashes */
    const char *doing;   /* what a node does for it, for those that wait: "measures the network" */
    const char *node;    /* this node's name, which the others are told */
    unsigned patience_s; /* how long a node may take for it; at most twice as long is waited */
};

/** agree_kept() - an agree_make_fn: what was found out before. @ctx: a struct str, which has it */
int agree_kept(void *ctx, struct str *out, struct err *e);

/**
 * agree_once() - the result of whichever node of the job has found it out
 * @out:	the result is appended
 *
 * A node that waits for another one says on standard error which one it is, after some seconds and
 * then each minute.
 *
 * Return: 0; or non-zero with words: it could not be found out, the store does not answer, or the
 * time is over.
 */
int agree_once(
    const struct agree_wish *wish, agree_make_fn make, void *ctx, struct str *out, struct err *e);
