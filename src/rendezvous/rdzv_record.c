/* rdzv_record.c - see rdzv_record.h. */
#include "rdzv_record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "crypto/blake2s.h"

static const char kind_letters[RDZV_KEY_N] = {[RDZV_KEY_ENTRY] = 't', [RDZV_KEY_NODE] = 'e'};

/* The next part of a key, up to the slash or the end; false when it does not fit. */
static bool take_part(const char **at, char *ret, size_t cap)
{
    size_t len = strcspn(*at, "/");

    if (len == 0 || len >= cap)
        return false;
    memcpy(ret, *at, len);
    ret[len] = '\0';
    *at += len;
    if (**at == '/')
        *at += 1;
    return true;
}

static bool take_chunk(const char *at, unsigned *ret)
{
    size_t len = strlen(at);

    /* Two digits, as hubs have written it when a blob had at most 2 MiB. */
    if (len < 2 || len > 3 || strspn(at, "0123456789") != len)
        return false;
    *ret = 0;
    for (size_t i = 0; i < len; i++)
        *ret = *ret * 10 + (unsigned)(at[i] - '0');
    return *ret > 0 && *ret < RDZV_CHUNKS_MAX;
}

static bool parse_rest(struct rdzv_key *k, const char *at)
{
    char letter[2];

    k->kind = RDZV_KEY_JOB;
    if (*at == '\0')
        return true;
    if (!take_part(&at, letter, sizeof(letter)) || !take_part(&at, k->hash, sizeof(k->hash)))
        return false;
    k->kind = RDZV_KEY_NONE;
    for (enum rdzv_key_kind kind = RDZV_KEY_ENTRY; kind < RDZV_KEY_N; kind++)
        if (letter[0] == kind_letters[kind])
            k->kind = kind;
    return *at == '\0' || take_chunk(at, &k->chunk);
}

struct rdzv_key rdzv_key_parse(const char *key)
{
    struct rdzv_key k = {.kind = RDZV_KEY_NONE};
    const char *at = key;

    if (strncmp(key, RDZV_KEY_PREFIX, sizeof(RDZV_KEY_PREFIX) - 1) != 0)
        return k;
    at += sizeof(RDZV_KEY_PREFIX) - 1;
    if (!take_part(&at, k.network, sizeof(k.network)) || !take_part(&at, k.job, sizeof(k.job)) ||
        !parse_rest(&k, at))
        k.kind = RDZV_KEY_NONE;
    return k;
}

const char *rdzv_key_of_job(char buf[static RDZV_KEY_MAX], const char *network, const char *job)
{
    (void)snprintf(buf, RDZV_KEY_MAX, RDZV_KEY_PREFIX "%s/%s", network, job);
    return buf;
}

const char *rdzv_key_of_blob(char buf[static RDZV_KEY_MAX], enum rdzv_key_kind kind,
    const char *network, const char *job, const void *name, size_t len)
{
    struct blake2s_digest digest;
    char hash[2 * BLAKE2S_SIZE + 1];

    blake2s_hash(name, len, NULL, 0, &digest);
    hex_encode(digest.b, sizeof(digest.b), hash);
    (void)snprintf(
        buf, RDZV_KEY_MAX, RDZV_KEY_PREFIX "%s/%s/%c/%s", network, job, kind_letters[kind], hash);
    return buf;
}

const char *rdzv_key_of_chunk(char buf[static RDZV_KEY_MAX], const char *first, unsigned chunk)
{
    (void)snprintf(buf, RDZV_KEY_MAX, chunk ? "%s/%03u" : "%s", first, chunk);
    return buf;
}

unsigned rdzv_chunks(size_t len)
{
    return len <= RDZV_CHUNK ? 1 : (unsigned)((len + RDZV_CHUNK - 1) / RDZV_CHUNK);
}

char *rdzv_chunk_encode(const void *p, size_t len)
{
    char *text = malloc(BASE64_ROOM(len) + 2);

    if (!text)
        return NULL;
    text[0] = '"';
    base64url_encode(p, len, text + 1);
    memcpy(text + strlen(text), "\"", 2);
    return text;
}

int rdzv_chunk_decode(struct str *blob, const char *text, struct err *e)
{
    _cleanup_(freep) uint8_t *bytes = malloc(RDZV_CHUNK);
    size_t len = strlen(text);
    size_t n = 0;

    if (!bytes)
        return err_set(e, -ENOMEM, "no memory for a rendezvous");
    if (len < 2 || text[0] != '"' || text[len - 1] != '"' ||
        !base64url_decode(text + 1, len - 2, bytes, RDZV_CHUNK, &n) ||
        blob->len + n > RDZV_BLOB_MAX)
        return err_set(e, -EINVAL, "not a piece of a rendezvous, in base64");
    str_add_bytes(blob, (const char *)bytes, n);
    return blob->failed ? err_set(e, -ENOMEM, "no memory for a rendezvous") : 0;
}

char *rdzv_job_encode(const struct rdzv_job_record *job)
{
    char *text = NULL;

    if (asprintf(&text, "{\"port\":%u,\"run\":%u,\"ended\":%s}", job->port, job->run,
            job->ended ? "true" : "false") < 0)
        return NULL;
    return text;
}

int rdzv_job_decode(struct rdzv_job_record *ret, const char *text, struct err *e)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_int_t port = json_integer_value(json_object_get(json, "port"));
    json_int_t run = json_integer_value(json_object_get(json, "run"));
    bool ended = json_is_true(json_object_get(json, "ended"));

    json_decref(json);
    if (port < 1 || port > UINT16_MAX || run < 1 || run > UINT32_MAX)
        return err_set(e, -EINVAL, "a rendezvous without \"port\" and \"run\"");
    *ret = (struct rdzv_job_record){.port = (uint16_t)port, .run = (uint32_t)run, .ended = ended};
    return 0;
}
