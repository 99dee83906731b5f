/* web_access.c - see web_access.h. */
#include "hub/web/web_access.h"

#include <stddef.h>
#include <string.h>

#include "api/content/token.h"
#include "base/text.h"
#include "hub/enrol/admin_tokens.h"

void web_access_init(struct web_access *w, const struct rng *rng)
{
    *w = (struct web_access){.rng = *rng};
    ratelimit_init(&w->failures, GUESSES_EACH, GUESSES_BURST, rng_u64(rng));
}

void web_access_deinit(struct web_access *w)
{
    ratelimit_deinit(&w->failures);
    memset(w->logins, 0, sizeof(w->logins));
    memset(w->sessions, 0, sizeof(w->sessions));
}

/* ---- secrets -------------------------------------------------------------------------------- */

static void new_secret(
    const struct rng *rng, char ret[static WEB_SECRET_MAX], struct token_hash *ret_hash)
{
    struct token_secret secret;

    _Static_assert(BASE64_SIZE(sizeof(secret.b)) >= WEB_SECRET_MAX, "base64url is no longer");
    rng_fill(rng, secret.b, sizeof(secret.b));
    base64url_encode(secret.b, sizeof(secret.b), ret);
    *ret_hash = token_hash_of(&secret);
    secret_wipe(&secret, sizeof(secret));
}

/* False: @text is none. */
static bool hash_of(const char *text, struct token_hash *ret)
{
    size_t len = strnlen(text, WEB_SECRET_MAX);
    struct token_secret secret;
    size_t n;

    if (len != WEB_SECRET_MAX - 1 || !base64url_decode(text, len, secret.b, sizeof(secret.b), &n) ||
        n != sizeof(secret.b))
        return false;
    *ret = token_hash_of(&secret);
    secret_wipe(&secret, sizeof(secret));
    return true;
}

/* ---- logins --------------------------------------------------------------------------------- */

void web_access_offer(struct web_access *w, const struct web_grant *grant, uint32_t ttl_s,
    nsec_t now, char ret[static WEB_SECRET_MAX])
{
    struct web_login *slot = &w->logins[0];

    for (size_t i = 1; i < WEB_LOGINS_MAX; i++)
        if (w->logins[i].ends_at < slot->ends_at)
            slot = &w->logins[i];
    *slot = (struct web_login){.grant = *grant, .ends_at = now + ttl_s * NSEC_PER_SEC};
    new_secret(&w->rng, ret, &slot->hash);
}

/* All are compared, so that the time does not tell which one it is. */
static struct web_login *find_login(struct web_access *w, const char *text)
{
    struct web_login *found = NULL;
    struct token_hash hash;

    if (!hash_of(text, &hash))
        return NULL;
    for (size_t i = 0; i < WEB_LOGINS_MAX; i++)
        if (secret_equal(w->logins[i].hash.b, hash.b, sizeof(hash.b)) && w->logins[i].ends_at > 0)
            found = &w->logins[i];
    return found;
}

static const struct web_session *begin(struct web_access *w, const struct web_grant *grant,
    nsec_t now, char ret_text[static WEB_SECRET_MAX])
{
    struct web_session *slot = &w->sessions[0];

    for (size_t i = 1; i < WEB_SESSIONS_MAX; i++)
        if (w->sessions[i].ends_at < slot->ends_at)
            slot = &w->sessions[i];
    *slot = (struct web_session){
        .id = ++w->last_id, .grant = *grant, .ends_at = now + WEB_SESSION_LIFE};
    new_secret(&w->rng, ret_text, &slot->hash);
    return slot;
}

enum web_verdict web_access_login(struct web_access *w, const char *text,
    const struct ip_addr *from, nsec_t now, const struct web_session **ret,
    char ret_text[static WEB_SECRET_MAX])
{
    struct web_login *login;
    struct web_grant grant;

    if (ratelimit_is_spent(&w->failures, from, now))
        return WEB_LIMITED;
    login = find_login(w, text);
    if (!login || login->ends_at <= now) {
        ratelimit_pay(&w->failures, from, now);
        return login ? WEB_EXPIRED : WEB_UNKNOWN;
    }
    grant = login->grant;
    *login = (struct web_login){.ends_at = 0};
    *ret = begin(w, &grant, now, ret_text);
    return WEB_TAKEN;
}

/* ---- sessions ------------------------------------------------------------------------------- */

bool web_cookie_read(const char *cookies, char ret[static WEB_SECRET_MAX])
{
    static const char name[] = WEB_COOKIE "=";
    const size_t name_len = sizeof(name) - 1;
    const char *p = cookies;
    bool is_found = false;

    if (strnlen(cookies, WEB_COOKIES_MAX + 1) > WEB_COOKIES_MAX)
        return false;
    while (*p) {
        size_t len;

        p += strspn(p, "; ");
        len = strcspn(p, ";");
        if (strncmp(p, name, name_len) == 0) {
            /* Two of them are not ours: a browser keeps one with that prefix. */
            if (is_found || len - name_len != WEB_SECRET_MAX - 1)
                return false;
            memcpy(ret, p + name_len, WEB_SECRET_MAX - 1);
            ret[WEB_SECRET_MAX - 1] = '\0';
            is_found = true;
        }
        p += len;
    }
    return is_found;
}

const struct web_session *web_access_find(
    const struct web_access *w, const char *cookies, nsec_t now)
{
    const struct web_session *found = NULL;
    char text[WEB_SECRET_MAX];
    struct token_hash hash;

    if (!web_cookie_read(cookies, text) || !hash_of(text, &hash))
        return NULL;
    secret_wipe(text, sizeof(text));
    for (size_t i = 0; i < WEB_SESSIONS_MAX; i++)
        if (secret_equal(w->sessions[i].hash.b, hash.b, sizeof(hash.b)) &&
            w->sessions[i].ends_at > now)
            found = &w->sessions[i];
    return found;
}

const struct web_session *web_access_find_id(const struct web_access *w, uint64_t id, nsec_t now)
{
    for (size_t i = 0; i < WEB_SESSIONS_MAX; i++)
        if (w->sessions[i].id == id && w->sessions[i].ends_at > now)
            return &w->sessions[i];
    return NULL;
}

void web_access_end(struct web_access *w, uint64_t id)
{
    for (size_t i = 0; i < WEB_SESSIONS_MAX; i++)
        if (w->sessions[i].id == id)
            w->sessions[i] = (struct web_session){.ends_at = 0};
}
