/*
 * web_access.h - who is at the hub's page: logins that are used once, and the sessions that they
 * begin.
 *
 * Theory of operation. Somebody who administers the hub is given a login, 32 random bytes, in a URL
 * behind "#", which no browser sends to a server. The page sends it in the body of a request, and
 * gets a session for it: another 32 random bytes, in a cookie that no script can read. A login is
 * gone with its first use, and after some minutes; a session ends by itself, when its user ends it,
 * or when who made the login has no admin token any more. Of both only the SHA-256 is kept, in
 * memory: they do not outlive the hub's process.
 *
 * Both are few. A login or a session that has no space takes the place of the one that ends first.
 *
 * Pure but for random bytes, which are the owner's.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/content/route.h"
#include "base/rate.h"
#include "base/secret.h"
#include "crypto/x25519.h"
#include "hub/record/record.h"

/** Logins that wait for their use, and how long one does unless said otherwise; s. */
#define WEB_LOGINS_MAX 16
#define WEB_LOGIN_TTL  600
#define WEB_LOGIN_LONG 86400

/** Sessions at a time, and how long one lasts. */
#define WEB_SESSIONS_MAX 64
#define WEB_SESSION_LIFE (12 * 3600 * NSEC_PER_SEC)

/** Room for the text of a login or a session, with the terminating zero. */
#define WEB_SECRET_MAX 44

/** The cookie of a session; with that prefix a browser takes it over TLS only, for this host only
 * and for all paths (RFC 6265, and its successor's section 4.1.3). */
#define WEB_COOKIE "__Host-weft"

/** Longest header Cookie that is looked at, bytes. */
#define WEB_COOKIES_MAX 4096

/** What a login, and then its session, is good for. */
struct web_grant {
    enum role role;
    char network[NAME_MAX_LEN + 1]; /* the only one; "": all */
    struct x25519_public
        network_key; /* of the hub that made it: another one of that name is not it */
    char maker[CALLER_NAME_MAX + 1]; /* who made the login, as the audit log names them */
    uint64_t maker_mark; /* another number than now: their token was removed or replaced; not 0 */
};

struct web_login {
    struct token_hash hash;
    struct web_grant grant;
    nsec_t ends_at; /* 0: there is none here */
};

struct web_session {
    uint64_t id; /* above 0 */
    struct token_hash hash;
    struct web_grant grant;
    nsec_t ends_at; /* 0: there is none here */
};

struct web_access {
    struct rng rng; /* for secrets */
    struct web_login logins[WEB_LOGINS_MAX];
    struct web_session sessions[WEB_SESSIONS_MAX];
    struct ratelimit failures; /* by source */
    uint64_t last_id;          /* of a session */
};

/** What became of a login. */
enum web_verdict {
    WEB_TAKEN,   /* a session has begun */
    WEB_UNKNOWN, /* there is no such login: it was used already, or never was one */
    WEB_EXPIRED, /* it was not used in time */
    WEB_LIMITED, /* not looked at: that address has sent too many wrong ones */
};

/** web_access_init() - nobody is there. @rng: copied. */
void web_access_init(struct web_access *w, const struct rng *rng);

/** web_access_deinit() - everybody is out. Idempotent. */
void web_access_deinit(struct web_access *w);

/** web_access_offer() - a new login for @ttl_s; its text in @ret, to be wiped after use. */
void web_access_offer(struct web_access *w, const struct web_grant *grant, uint32_t ttl_s,
    nsec_t now, char ret[static WEB_SECRET_MAX]);

/**
 * web_access_login() - somebody comes with the login @text
 * @from:	where from: after too many failures from there nothing is looked at
 * @ret:	lends the session that has begun
 * @ret_text:	of it, for the cookie; to be wiped after use
 */
enum web_verdict web_access_login(struct web_access *w, const char *text,
    const struct ip_addr *from, nsec_t now, const struct web_session **ret,
    char ret_text[static WEB_SECRET_MAX]);

/** web_access_find() - lends the session that the header Cookie holds; NULL: none, or it is over.
 */
const struct web_session *web_access_find(
    const struct web_access *w, const char *cookies, nsec_t now);

/** web_access_find_id() - lends the session with that number; NULL: it is over. */
const struct web_session *web_access_find_id(const struct web_access *w, uint64_t id, nsec_t now);

/** web_access_end() - the session is over, if there is one. */
void web_access_end(struct web_access *w, uint64_t id);

/**
 * web_cookie_read() - the value of WEB_COOKIE in a header Cookie (RFC 6265 section 4.2.1)
 *
 * Return: false: it is not there, there are several, or it is no text of a session.
 */
bool web_cookie_read(const char *cookies, char ret[static WEB_SECRET_MAX]);
