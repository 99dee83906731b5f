/*
 * node_fabric.h - finds out which fabric this machine has, on a thread: a cloud's metadata service
 * may take its time.
 *
 * Threads: the agent's main thread calls; "fabric" reads, once, and ends.
 */
#pragma once

struct fabric_report;
struct node_fabric;

/** node_fabric_new() - begin to find out. NULL: no memory, or no thread; then nothing is told. */
struct node_fabric *node_fabric_new(void);

/**
 * node_fabric_report() - what there is to tell others
 * @nf:	NULL is fine
 *
 * Return: borrowed until node_fabric_free(); NULL: it is not known yet, or the machine has neither
 * a fabric nor GPUs nor a place that its cloud names.
 */
const struct fabric_report *node_fabric_report(const struct node_fabric *nf);

/** node_fabric_free() - wait for the thread, and release it. NULL is fine. Return: NULL. */
struct node_fabric *node_fabric_free(struct node_fabric *nf);
