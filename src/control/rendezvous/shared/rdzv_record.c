/* rdzv_record.c - see rdzv_record.h. */
#include "rendezvous/shared/rdzv_record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "crypto/hash.h"

static const char kind_letters[RDZV_KEY_N] = {[RDZV_KEY_ENTRY] = 't', [RDZV_KEY_NODE] = 'e'};

/* Reads "a017", or "17" as hubs wrote it before there were runs. */
static bool take_piece(struct rdzv_key *k, const char *at)
{
    uint64_t n;

    k->slot = at[0] == RDZV_SLOT_A || at[0] == RDZV_SLOT_B ? at[0] : RDZV_SLOT_OLD;
    if (strlen(at) != (k->slot == RDZV_SLOT_OLD ? 2 : 4) ||
        parse_u64(
            &n, k->slot == RDZV_SLOT_OLD ? at : at + 1, 1, RDZV_CHUNKS_MAX - 1, "piece", NULL) != 0)
        return false;
    k->piece = (unsigned)n;
    return true;
}

static bool parse_rest(struct rdzv_key *k, const char *at)
{
    char letter[2];
    char hash[2 * sizeof(k->hash) + 1];

    k->kind = RDZV_KEY_JOB;
    if (*at == '\0')
        return true;
    at = text_part(text_part(at, '/', letter, sizeof(letter)), '/', hash, sizeof(hash));
    if (!at || !hex_decode(hash, &k->hash, sizeof(k->hash)))
        return false;
    k->kind = RDZV_KEY_NONE;
    for (enum rdzv_key_kind kind = RDZV_KEY_ENTRY; kind < RDZV_KEY_N; kind++)
        if (letter[0] == kind_letters[kind])
            k->kind = kind;
    return *at == '\0' || take_piece(k, at);
}

struct rdzv_key rdzv_key_parse(const char *key)
{
    struct rdzv_key k = {.kind = RDZV_KEY_NONE};
    const char *at = key;

    if (strncmp(key, RDZV_KEY_PREFIX, sizeof(RDZV_KEY_PREFIX) - 1) != 0)
        return k;
    at = text_part(at + sizeof(RDZV_KEY_PREFIX) - 1, '/', k.network, sizeof(k.network));
    at = text_part(at, '/', k.job, sizeof(k.job));
    if (!at || !parse_rest(&k, at))
        k.kind = RDZV_KEY_NONE;
    return k;
}

const char *rdzv_key_of_job(char buf[static RDZV_KEY_MAX], const char *network, const char *job)
{
    (void)snprintf(buf, RDZV_KEY_MAX, RDZV_KEY_PREFIX "%s/%s", network, job);
    return buf;
}

struct rdzv_hash rdzv_hash_of(const void *name, size_t len)
{
    struct blake2s_digest digest;
    struct rdzv_hash hash;

    _Static_assert(sizeof(hash) == sizeof(digest), "a hash is a digest");
    blake2s_hash(name, len, NULL, 0, &digest);
    memcpy(hash.b, digest.b, sizeof(hash.b));
    return hash;
}

int rdzv_hash_check(const struct rdzv_hash *hash, const void *name, size_t len, struct err *e)
{
    struct rdzv_hash its = rdzv_hash_of(name, len);

    return memcmp(&its, hash, sizeof(its)) == 0
               ? 0
               : err_set(e, -EINVAL, "it is kept where another belongs");
}

const char *rdzv_key_of_blob(char buf[static RDZV_KEY_MAX], enum rdzv_key_kind kind,
    const char *network, const char *job, const struct rdzv_hash *hash)
{
    char text[2 * sizeof(*hash) + 1];

    hex_encode(hash->b, sizeof(hash->b), text);
    (void)snprintf(
        buf, RDZV_KEY_MAX, RDZV_KEY_PREFIX "%s/%s/%c/%s", network, job, kind_letters[kind], text);
    return buf;
}

const char *rdzv_key_of_piece(
    char buf[static RDZV_KEY_MAX], const char *first, char slot, unsigned piece)
{
    if (piece == 0)
        (void)snprintf(buf, RDZV_KEY_MAX, "%s", first);
    else if (slot == RDZV_SLOT_OLD)
        (void)snprintf(buf, RDZV_KEY_MAX, "%s/%02u", first, piece);
    else
        (void)snprintf(buf, RDZV_KEY_MAX, "%s/%c%03u", first, slot, piece);
    return buf;
}

/* ---- values --------------------------------------------------------------------------------- */

char *rdzv_piece_encode(const struct rdzv_head *head, const void *p, size_t len)
{
    char words[48] = "";
    size_t n;
    char *text;

    if (head)
        (void)snprintf(words, sizeof(words), "%u.%c.%u.", head->run, head->slot, head->n_pieces);
    n = strlen(words);
    text = malloc(n + BASE64_SIZE(len) + 2);
    if (!text)
        return NULL;
    text[0] = '"';
    memcpy(text + 1, words, n);
    base64url_encode(p, len, text + 1 + n);
    memcpy(text + strlen(text), "\"", 2);
    return text;
}

/* The next number, which ends with a dot; 0: there is none. */
static unsigned take_number(const char **at)
{
    char digits[12] = "";
    size_t len = strspn(*at, "0123456789");
    uint64_t n;

    if (len >= sizeof(digits) || (*at)[len] != '.')
        return 0;
    memcpy(digits, *at, len);
    *at += len + 1;
    return parse_u64(&n, digits, 1, UINT32_MAX, "number", NULL) == 0 ? (unsigned)n : 0;
}

/* Reads "RUN.SLOT.N."; false: it is not that. */
static bool take_head(struct rdzv_head *head, const char **at)
{
    bool has_slot;

    head->run = take_number(at);
    head->slot = **at;
    has_slot = head->slot == RDZV_SLOT_A || head->slot == RDZV_SLOT_B;
    if (head->run == 0 || (!has_slot && head->slot != RDZV_SLOT_NONE) || (*at)[1] != '.')
        return false;
    *at += 2;
    head->n_pieces = take_number(at);
    return has_slot ? head->n_pieces > 1 && head->n_pieces <= RDZV_CHUNKS_MAX : head->n_pieces == 1;
}

int rdzv_head_parse(struct rdzv_head *ret, size_t *ret_at, const char *text, struct err *e)
{
    struct rdzv_head head = {.run = 0, .slot = RDZV_SLOT_OLD};
    const char *at = text + 1;

    if (text[0] != '"' || (strchr(text, '.') && !take_head(&head, &at)))
        return err_set(e, -EINVAL, "not the first piece of a rendezvous");
    *ret = head;
    *ret_at = (size_t)(at - text);
    return 0;
}

int rdzv_piece_decode(struct rdzv_head *ret, uint8_t buf[static RDZV_CHUNK], size_t *ret_len,
    const char *text, struct err *e)
{
    size_t len = strlen(text);
    size_t at = 1;
    int r = ret ? rdzv_head_parse(ret, &at, text, e) : 0;

    if (r != 0)
        return r;
    if (len < at + 1 || text[0] != '"' || text[len - 1] != '"' ||
        !base64url_decode(text + at, len - at - 1, buf, RDZV_CHUNK, ret_len))
        return err_set(e, -EINVAL, "not a piece of a rendezvous, in base64");
    return 0;
}

const char *rdzv_members_next(const char *at, char ret[static NAME_MAX_LEN + 1])
{
    size_t len = strcspn(at, " ");

    if (*at == '\0')
        return NULL;
    (void)snprintf(ret, NAME_MAX_LEN + 1, "%.*s", len <= NAME_MAX_LEN ? (int)len : 0, at);
    return at[len] == ' ' ? at + len + 1 : at + len;
}

char *rdzv_job_encode(const struct rdzv_job_record *job)
{
    char *text = NULL;

    if (asprintf(&text,
            "{\"port\":%u,\"run\":%u,\"ended\":%s,\"heads\":%s,\"members\":\"%s\",\"endedOn\":\"%"
            "s\"}",
            job->port, job->run, job->ended ? "true" : "false", job->has_heads ? "true" : "false",
            job->members, job->ended_on) < 0)
        return NULL;
    return text;
}

/* The names of members, with a space between them; hubs of before wrote none. */
static bool take_members(char ret[static RDZV_JOB_MEMBERS_MAX], const json_t *json)
{
    const char *text = json_string_value(json_object_get(json, "members"));
    char name[NAME_MAX_LEN + 1];

    if (snprintf(ret, RDZV_JOB_MEMBERS_MAX, "%s", text ? text : "") >= RDZV_JOB_MEMBERS_MAX)
        return false;
    for (const char *at = ret; (at = rdzv_members_next(at, name));)
        if (parse_name(name, "node", NULL) != 0)
            return false;
    return true;
}

/* A member whose command has ended; "" and none at all are the same. */
static bool take_ended_on(char ret[static NAME_MAX_LEN + 1], const json_t *json)
{
    const char *text = json_string_value(json_object_get(json, "endedOn"));

    ret[0] = '\0';
    if (!text || text[0] == '\0')
        return true;
    return parse_name(text, "node", NULL) == 0 &&
           snprintf(ret, NAME_MAX_LEN + 1, "%s", text) <= NAME_MAX_LEN;
}

int rdzv_job_decode(struct rdzv_job_record *ret, const char *text, struct err *e)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_int_t port = json_integer_value(json_object_get(json, "port"));
    json_int_t run = json_integer_value(json_object_get(json, "run"));
    bool ended = json_is_true(json_object_get(json, "ended"));
    bool has_heads = json_is_true(json_object_get(json, "heads"));
    struct rdzv_job_record record = {
        .port = (uint16_t)port, .run = (uint32_t)run, .ended = ended, .has_heads = has_heads};
    bool has_names = take_members(record.members, json) && take_ended_on(record.ended_on, json);

    json_decref(json);
    if (port < 1 || port > UINT16_MAX || run < 1 || run > UINT32_MAX)
        return err_set(e, -EINVAL, "a rendezvous without \"port\" and \"run\"");
    if (!has_names)
        return err_set(
            e, -EINVAL, "a rendezvous whose \"members\" or \"endedOn\" are no names of nodes");
    *ret = record;
    return 0;
}
