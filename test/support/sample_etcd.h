/*
 * sample_etcd.h - a real etcd cluster on this machine, for tests.
 *
 * Its members are processes of this test, on ports of the loopback that were free, with their data
 * below /tmp, and end with it. They do not sync their disks: what is tested is who died, not a
 * machine that lost its power.
 *
 * Threads: one; a disturbance is a thread of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most members. */
#define SAMPLE_ETCD_MAX 3

struct sample_etcd;

/** What is special about a cluster. */
struct sample_etcd_options {
    unsigned n;            /* members, 1 to SAMPLE_ETCD_MAX */
    const char *tls_dir;   /* NULL: none; else it has ca.pem, server.pem, server.key: clients show
                            * certificates of that authority */
    const char *token_ttl; /* seconds that a token is good for; NULL: as etcd has it */
};

/** sample_etcd_is_there() - is the program installed? If not, the reason is printed. */
bool sample_etcd_is_there(void);

/** sample_etcd_start() - and wait until all members answer. NULL: it did not; the log is printed.
 */
struct sample_etcd *sample_etcd_start(const struct sample_etcd_options *opt);

/** sample_etcd_free() - end it, and remove its data. NULL is fine. Always NULL. */
struct sample_etcd *sample_etcd_free(struct sample_etcd *c);

/** sample_etcd_url() - "etcd://...?prefix=PREFIX" with all members. Returns @buf. */
const char *sample_etcd_url(
    const struct sample_etcd *c, const char *prefix, char *buf, size_t size);

/** sample_etcd_server() - "HOST:PORT" of member @i; borrowed. */
const char *sample_etcd_server(const struct sample_etcd *c, unsigned i);

/** sample_etcd_ctl() - run etcdctl with @words, of a shell, on the first member. Its exit status.
 */
int sample_etcd_ctl(const struct sample_etcd *c, const char *words);

/** sample_etcd_kill() - member @i dies at once; sample_etcd_revive() starts it again. */
void sample_etcd_kill(struct sample_etcd *c, unsigned i);
void sample_etcd_revive(struct sample_etcd *c, unsigned i);

/** sample_etcd_pause() - member @i stands still, until sample_etcd_resume(). */
void sample_etcd_pause(struct sample_etcd *c, unsigned i);
void sample_etcd_resume(struct sample_etcd *c, unsigned i);

/**
 * sample_etcd_disturb() - from now on kill a member and start it again, and pause one, by @seed
 * sample_etcd_calm() - no longer; all members are up, or on their way
 */
void sample_etcd_disturb(struct sample_etcd *c, uint64_t seed);
void sample_etcd_calm(struct sample_etcd *c);
