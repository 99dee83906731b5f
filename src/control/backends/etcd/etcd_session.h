/*
 * etcd_session.h - the session of one hub in etcd: a key that each of its commits writes.
 *
 * The key "s/NAME" holds the number of the session's last commit. Each commit expects the key at
 * the revision that the commit before it left, and writes its own number. So a commit whose answer
 * was lost can be sent again as often as needed: it is done once, and the number in the key says
 * whether it was done. A copy of a commit that arrives after a later commit was done fails.
 *
 * The key has a lease of etcd's, which the hub keeps. When a hub dies, etcd deletes the key ten
 * minutes later. After that, no request of the session can take effect. A hub that was cut off for
 * so long begins another session.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/etcd/etcd_client.h"
#include "backends/etcd/etcd_news.h"
#include "base/clock.h"

/** Length of the lease, s. The hub renews it each third of that time. */
#define ETCD_SESSION_TTL_S 600

struct etcd_session {
    char name[ETCD_SESSION_MAX + 1]; /* "": there is none yet */
    uint64_t lease;                  /* etcd's */
    uint64_t mod;                    /* etcd's revision of the key; 0: it is not written yet */
    nsec_t keep_at;                  /* time at which the lease is to be renewed next */
};

#define ETCD_SESSION_NULL                                                                          \
    {                                                                                              \
        0                                                                                          \
    }

/** etcd_session_begin() - another session, with a lease. As etcd_client_ask(). */
int etcd_session_begin(struct etcd_session *s, struct etcd_client *c, nsec_t until, struct err *e);

/** etcd_session_keep() - keep the lease, if that is due; one that has ended ends the session. */
void etcd_session_keep(struct etcd_session *s, struct etcd_client *c, nsec_t now, nsec_t until);

/** etcd_session_end() - give the lease back, so that the key goes now. */
void etcd_session_end(struct etcd_session *s, struct etcd_client *c, nsec_t until);

/** etcd_session_key() - the name of its key. Returns @buf. */
const char *etcd_session_key(const char *session, char buf[static ETCD_SESSION_MAX + 3]);

/** etcd_session_add_compare() - add the comparison that its key is as it was left. */
void etcd_session_add_compare(const struct etcd_session *s, const char *prefix, struct str *to);

/** etcd_session_add_put() - add the operation that writes @seq. */
void etcd_session_add_put(
    const struct etcd_session *s, const char *prefix, uint64_t seq, struct str *to);
