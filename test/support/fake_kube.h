/*
 * fake_kube.h - as much of a Kubernetes API server as the hub asks of it: resources that are
 * applied, watched and removed, a Lease, and Events. HTTP on this machine, from a thread.
 *
 * A person is everybody who writes by fake_kube_put(). What a person has written of a spec is that
 * person's: who applies another value without force is refused with 409.
 *
 * Paths are "meshedges/default.a--b": the plural and the name.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct fake_kube;

/** fake_kube_start() - it is at once there. */
struct fake_kube *fake_kube_start(void);

/** fake_kube_stop() - it is gone. */
void fake_kube_stop(struct fake_kube *f);

/** fake_kube_write_config() - a kubeconfig of it, for the namespace "weft", at @path. */
void fake_kube_write_config(const struct fake_kube *f, const char *path);

/** fake_kube_get() - a resource as it is now, a new reference; NULL: there is none. */
json_t *fake_kube_get(struct fake_kube *f, const char *path);

/** fake_kube_put() - the person called @manager writes these fields of the spec; taken. */
void fake_kube_put(struct fake_kube *f, const char *path, const char *manager, json_t *spec);

/** fake_kube_delete() - a person deletes it: it goes when it has no finalizers any more. */
void fake_kube_delete(struct fake_kube *f, const char *path);

/** fake_kube_drop() - a person takes its finalizers away and deletes it: it is gone at once. */
void fake_kube_drop(struct fake_kube *f, const char *path);

/** fake_kube_hold() - who has the Lease; "": nobody. */
void fake_kube_hold(struct fake_kube *f, const char *holder);

/** fake_kube_holder() - the same; until the next call. */
const char *fake_kube_holder(struct fake_kube *f);

/** fake_kube_has_event() - was there an Event of that reason whose message has these words? */
bool fake_kube_has_event(struct fake_kube *f, const char *reason, const char *words);
