/*
 * job_loader.h - which jobs there are, and which blobs, out of the hub's store.
 *
 * A record that cannot be understood is set aside: it is named in the log, counted, and left where
 * it is. It never keeps a hub from starting. What is in the blobs only a rendezvous process reads.
 */
#pragma once

struct err;
struct jobs_env;
struct list;

struct store_item;

/** job_loader_take() - take in one of the items of a list; @networks as for job_loader_run(). */
void job_loader_take(struct list *networks, struct jobs_env *env, const struct store_item *item);

/**
 * job_loader_run() - read all of it; waits for the store
 * @networks:	of struct job_network; empty
 *
 * Return: 0 or negative errno with words.
 */
int job_loader_run(struct list *networks, struct jobs_env *env, struct err *e);
