/*
 * resources.h - the hub's networks, nodes and edges as resources of Kubernetes, and what people
 * wish there: the half of it on the hub's loop. The other half is a thread (writer.h).
 *
 * While this hub is the one that writes, the model is looked through each second: whatever has
 * another revision than was told before is told. So nothing of the hub has to know that this is
 * here. The status of some two hundred objects is looked at each second, in turns, and told when it
 * says something new; of one object no more often than each five seconds.
 *
 * A wish is judged as a request of an administrator called "kubernetes:claimed:MANAGER", or
 * "kubernetes" where somebody deletes a resource, as Kubernetes does not tell who: by the same
 * handlers, with the same sentences, and the audit log tells of it. Who may write the resources is
 * what Kubernetes' own roles say.
 *
 * Threads: the hub's loop only.
 */
#pragma once

struct err;
struct handlers;
struct resources;
struct uv_loop_s;

/**
 * resources_start() - read the store's files, and start the thread
 * @where:	borrowed: what follows "kubernetes:" in the store's URL
 * @h:		pinned: judges the wishes
 */
int resources_start(struct resources **ret, struct uv_loop_s *loop, struct handlers *h,
    const char *where, struct err *e);

/** resources_stop() - end the thread, and close the handles. NULL is fine; idempotent. */
void resources_stop(struct resources *s);

/** resources_free() - after resources_stop() and the loop's end. */
struct resources *resources_free(struct resources *s);
