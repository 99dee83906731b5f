/*
 * etcd.h - the store in etcd v3: several hubs may serve one network from it.
 *
 * It speaks the gateway's JSON (etcd 3.4 and later, under /v3/) with libcurl, on a thread of its
 * own, to any of the members. etcd_codec.h says what the URL holds, and what the keys are.
 *
 * How the promises of store.h are kept:
 *
 *   order      The thread does one job after the other. Commits that have gathered and have no key
 *              in common go into one transaction, which may give them the same revision.
 *   durable    etcd answers when most members have it on their disks.
 *   compare    A revision is etcd's, less the one at which the store's prefix was made.
 *   unknown    A commit is sent again until it is answered; the key of the session makes sure that
 *              it is done once (etcd_client.h). Only when no member has answered for eight seconds
 *              is the answer STORE_E_UNKNOWN, or -EIO where nothing can have been done.
 *   watches    Everything is told from one watch of etcd's, own changes as well: a commit is
 *              answered when the watch has shown it. So changes come in the order of etcd's
 *              revisions, whoever made them. When a member is lost, the watch continues at another
 *              one, behind the last change that came. If etcd has compacted those revisions by
 *              then, everything is read again. Then watches are told the present value of each key
 *              that changed, and not each change.
 *   leases     The length of a lease is kept with the key's value. Each hub measures the time
 *              itself, from when it saw the key written; other hubs do not know of a store_keep().
 *   large      A commit that is too long for a transaction of etcd's is done in parts, and is seen
 *              whole or not at all (etcd_commit.c).
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;

/**
 * etcd_open() - the store at the servers of "etcd:WHERE"; waits for them, five seconds at most
 * @ret:	gives it; store_free()
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL with words for a URL that is none, or a prefix that holds something else;
 * negative errno with words.
 */
int etcd_open(struct store **ret, const char *where, nsec_t now, struct err *e);

/** etcd_open_tls() - the same of "etcds:WHERE", over TLS. */
int etcd_open_tls(struct store **ret, const char *where, nsec_t now, struct err *e);

/** etcd_check() - is it a URL? 0, or -EINVAL with words. Opens nothing. */
int etcd_check(const char *where, struct err *e);

/** etcd_check_tls() - the same of "etcds:WHERE". */
int etcd_check_tls(const char *where, struct err *e);
