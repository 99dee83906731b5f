/* admin_tokens.c - see admin_tokens.h. */
#include "admin_tokens.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/model/model.h"
#include "os/file.h"
#include "store/store.h"

/* Longest text of the token in STATE/admin.token, in characters. */
#define ADMIN_FILE_MAX 64

#define TEXT_PREFIX "weft-admin1."

/* What is kept of a token after its end, so that the sentence can say "expired". */
#define LINGER_S 86400

void admin_tokens_init(struct admin_tokens *at, struct model *model, const struct rng *rng)
{
    *at = (struct admin_tokens){.model = model, .rng = *rng};
    ratelimit_init(&at->failures, GUESSES_EACH, GUESSES_BURST, rng_u64(rng));
}

void admin_tokens_deinit(struct admin_tokens *at)
{
    at->watch = store_watch_close(at->watch);
    ratelimit_deinit(&at->failures);
    free(at->items);
    at->items = NULL;
    at->n = 0;
}

/* ---- the records ---------------------------------------------------------------------------- */

struct admin_token *admin_tokens_find(const struct admin_tokens *at, const char *name)
{
    for (size_t i = 0; i < at->n; i++)
        if (strcmp(at->items[i].record.name, name) == 0)
            return &at->items[i];
    return NULL;
}

/* Take in what the store has for one key. A record that cannot be understood opens nothing. */
static int take_item(void *ctx, const struct store_item *item)
{
    const char *name = item->key + strlen(ADMIN_RECORD_PREFIX);
    struct admin_tokens *at = ctx;
    struct admin_record record;
    struct err e = ERR_NULL;
    struct admin_token *t = admin_tokens_find(at, name);

    if (!item->value || admin_record_decode(&record, item->key, item->value, &e) != 0) {
        if (t)
            memmove(t, t + 1, (size_t)(&at->items[--at->n] - t) * sizeof(*t));
        if (item->value)
            model_set_aside(at->model, item->key, item->revision, &e);
        return 0;
    }
    if (!t && at->n == ADMIN_TOKENS_MAX)
        return 0;
    if (!t) {
        t = &at->items[at->n++];
        *t = (struct admin_token){.last_used_at = 0};
    }
    t->record = record;
    t->revision = item->revision;
    return 0;
}

static void on_change(void *ctx, const struct store_item *item)
{
    if (item)
        (void)take_item(ctx, item);
}

int admin_tokens_load(struct admin_tokens *at, struct err *e)
{
    struct store *store = at->model->store;
    int r;

    at->items = calloc(ADMIN_TOKENS_MAX, sizeof(*at->items));
    if (!at->items)
        return err_set(e, -ENOMEM, "no memory for admin tokens");
    r = store_watch(
        store, ADMIN_RECORD_PREFIX, store_revision(store) + 1, on_change, at, &at->watch, e);
    return r == 0 ? store_now_list(store, ADMIN_RECORD_PREFIX, take_item, at, NULL, e) : r;
}

/* ---- the file ------------------------------------------------------------------------------- */

static struct token_hash hash_of_text(const char *text)
{
    struct token_hash h;

    SHA256((const unsigned char *)text, strlen(text), h.b);
    return h;
}

int admin_tokens_write_file(
    const struct rng *rng, const char *path, struct token_hash *ret, struct err *e)
{
    uint8_t secret[32];
    char text[BASE64_SIZE(sizeof(secret))];
    int r;

    rng_fill(rng, secret, sizeof(secret));
    base64url_encode(secret, sizeof(secret), text);
    *ret = hash_of_text(text);
    r = statefile_replace(path, text, strlen(text), 0600, e);
    secret_wipe(secret, sizeof(secret));
    secret_wipe(text, sizeof(text));
    return r;
}

int admin_tokens_open_file(struct admin_tokens *at, const char *path, struct err *e)
{
    char *text = NULL;
    int r = statefile_read(path, 256, &text, NULL, e);

    if (r == STATEFILE_E_ABSENT)
        r = admin_tokens_write_file(&at->rng, path, &at->file, e);
    at->has_file = r == 0;
    if (r != 0 || !text)
        return r;
    text[strcspn(text, "\r\n")] = '\0';
    at->file = hash_of_text(text);
    at->has_file = strlen(text) >= 16 && strlen(text) <= ADMIN_FILE_MAX;
    if (!at->has_file)
        r = err_set(e, -EUCLEAN,
            "\"%s\" does not hold an admin token of 16 to %d characters; it is left as it is: "
            "remove it to have one made",
            path, ADMIN_FILE_MAX);
    secret_wipe(text, strlen(text));
    free(text);
    return r;
}

/* ---- who is it? ----------------------------------------------------------------------------- */

/* The token with that text. All are compared, so that the time does not tell which one it is. */
static struct admin_token *find_text(struct admin_tokens *at, const char *text)
{
    size_t skip = strlen(TEXT_PREFIX);
    struct admin_token *found = NULL;
    struct token_secret secret;
    struct token_hash hash;
    size_t len;

    if (strncmp(text, TEXT_PREFIX, skip) != 0 ||
        !base64url_decode(text + skip, strlen(text + skip), secret.b, sizeof(secret.b), &len) ||
        len != sizeof(secret.b))
        return NULL;
    hash = token_hash_of(&secret);
    secret_wipe(&secret, sizeof(secret));
    for (size_t i = 0; i < at->n; i++)
        if (secret_equal(at->items[i].record.hash.b, hash.b, sizeof(hash.b)))
            found = &at->items[i];
    return found;
}

enum caller_verdict admin_tokens_identify(struct admin_tokens *at, const char *bearer,
    const struct ip_addr *from, nsec_t now, int64_t wall_s, struct caller *ret)
{
    const struct model_network *net;
    struct token_hash hash;
    struct admin_token *t;
    bool is_for_none;

    if (ratelimit_is_spent(&at->failures, from, now))
        return CALLER_LIMITED;
    hash = hash_of_text(bearer);
    if (at->has_file && secret_equal(hash.b, at->file.b, sizeof(hash.b))) {
        ret->role = ROLE_ADMIN;
        (void)snprintf(ret->name, sizeof(ret->name), "file:admin.token");
        return CALLER_KNOWN;
    }
    t = find_text(at, bearer);
    if (t)
        (void)snprintf(ret->name, sizeof(ret->name), "admin:%s", t->record.name);
    /* A network that was made again under the same name has another key, and is not it. */
    net = t && t->record.network[0] ? model_find_network(at->model, t->record.network) : NULL;
    is_for_none = t && t->record.network[0] &&
                  !(net && x25519_public_equal(&net->maker.key, &t->record.hub_key));
    if (t && t->record.expires_at > wall_s && !is_for_none) {
        ret->role = t->record.role;
        memcpy(ret->network, t->record.network, sizeof(ret->network));
        t->last_used_at = wall_s;
        return CALLER_KNOWN;
    }
    at->n_failed++;
    ratelimit_pay(&at->failures, from, now);
    return t && t->record.expires_at <= wall_s ? CALLER_EXPIRED : CALLER_UNKNOWN;
}

/* ---- making --------------------------------------------------------------------------------- */

void token_write_deinit(struct token_write *w)
{
    free(w->value);
    w->value = NULL;
}

static int check_space(const struct admin_tokens *at, const char *name, struct err *e)
{
    char key[RECORD_KEY_MAX];

    if (admin_tokens_find(at, name) ||
        damaged_find(&at->model->damaged, admin_record_key(key, name)))
        return err_set(e, ADMIN_E_EXISTS,
            "there is an admin token \"%s\" already: \"weft admin rm %s\" removes it", name, name);
    if (at->n + at->n_coming < ADMIN_TOKENS_MAX)
        return 0;
    return err_set(e, ADMIN_E_FULL,
        "there are %d admin tokens, as many as a hub keeps: \"weft admin ls\" lists them, "
        "\"weft admin rm NAME\" removes one",
        ADMIN_TOKENS_MAX);
}

int admin_tokens_make(struct admin_tokens *at, const struct admin_request *rq,
    const struct x25519_public *hub_key, const char *by, int64_t wall_s, struct token_write *ret,
    char ret_text[static ADMIN_TEXT_MAX], struct err *e)
{
    struct admin_record a = {
        .role = rq->role, .created_at = wall_s, .expires_at = wall_s + rq->ttl_seconds};
    struct token_secret secret;
    int r = check_space(at, rq->name, e);

    if (r != 0)
        return r;
    (void)snprintf(a.name, sizeof(a.name), "%s", rq->name);
    (void)snprintf(a.network, sizeof(a.network), "%s", rq->network);
    (void)snprintf(a.created_by, sizeof(a.created_by), "%s", by);
    a.hub_key = *hub_key;
    rng_fill(&at->rng, secret.b, sizeof(secret.b));
    a.hash = token_hash_of(&secret);
    ret->value = admin_record_encode(&a);
    ret->op = (struct store_op){.kind = STORE_OP_PUT,
        .key = admin_record_key(ret->key, a.name),
        .value = ret->value,
        .expect = STORE_EXPECT_ABSENT,
        .ttl_seconds = rq->ttl_seconds + LINGER_S};
    if (!ret->value) {
        r = err_set(e, -ENOMEM, "no memory for an admin token");
    } else {
        memcpy(ret_text, TEXT_PREFIX, sizeof(TEXT_PREFIX));
        base64url_encode(secret.b, sizeof(secret.b), ret_text + strlen(TEXT_PREFIX));
    }
    secret_wipe(&secret, sizeof(secret));
    return r;
}
