/*
 * job_feed.h - tells a rendezvous process which jobs there are, what is in them, and where it is to
 * serve them.
 *
 * One job after the other, and each in that order: that there is such a job, what the store has of
 * it, and last its listening sockets. So nobody is served before all that was acknowledged is there
 * again. How far each job is, is in its struct job_told.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>

struct blob_reader;
struct job_network;
struct rdzv_child;

/** job_feed_restart() - a new process knows nothing of any job. */
void job_feed_restart(struct job_network *n);

/**
 * job_feed_run() - tell as much as the process takes now
 * @reader:	of that process alone
 *
 * What cannot be read is set aside. When the store is away the process is killed: the next one may
 * be told more.
 *
 * Return: is there more to be told? Then it is to be called again when the process takes more, and
 * when @reader has some.
 */
bool job_feed_run(struct job_network *n, struct rdzv_child *child, struct blob_reader *reader);
