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

/**
 * job_loader_run() - read all of it; waits for the store
 * @networks:	of struct job_network; empty
 *
 * Return: 0 or negative errno with words.
 */
int job_loader_run(struct list *networks, struct jobs_env *env, struct err *e);
