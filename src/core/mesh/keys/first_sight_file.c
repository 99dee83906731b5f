/* first_sight_file.c - what is remembered, as JSON: first_sight_encode() and _decode() of
 * first_sight.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/keys/first_sight.h"
#include "mesh/object/fields.h"

#define PIN_TEXT_MAX BASE64_SIZE(sizeof(((struct tls_pin *)NULL)->b))

/* Greatest time, s since 1970; one may be added to another. */
#define TIME_MAX (INT64_MAX / 4)

static const char *const how_names[] = {"none", "signed", "silent", "trusted"};
_Static_assert(sizeof(how_names) / sizeof(*how_names) == FIRST_SIGHT_HOW_N, "a name each");

/* ---- encode ---------------------------------------------------------------------------------- */

static json_t *encode_identity(const struct first_sight_identity *id)
{
    char key[X25519_BASE64_MAX];
    char a4[IP_ADDR_TEXT_MAX];
    char a6[IP_ADDR_TEXT_MAX];
    char pin[PIN_TEXT_MAX];

    base64_encode(id->pin.b, sizeof(id->pin.b), pin);
    return json_pack("{s:s, s:s, s:s, s:b, s:s*}", "publicKey", x25519_public_format(&id->key, key),
        "address4", ip_addr_format(&id->address4, a4), "address6",
        ip_addr_format(&id->address6, a6), "hub", (int)id->is_hub, "tlsPin",
        id->has_pin ? pin : NULL);
}

static void set_time(json_t **object, const char *name, int64_t at)
{
    if (at != 0)
        fields_set(object, name, json_integer(at));
}

static json_t *encode_peer(const struct first_sight_peer *peer)
{
    json_t *json = json_pack("{s:s}", "name", peer->name);
    char next[X25519_BASE64_MAX];

    if (peer->seen_at != 0) {
        fields_set(&json, "held", encode_identity(&peer->held));
        set_time(&json, "seenAt", peer->seen_at);
        set_time(&json, "answeredAt", peer->answered_at);
        set_time(&json, "removedAt", peer->removed_at);
        set_time(&json, "hubAt", peer->hub_at);
    }
    if (!x25519_public_is_none(&peer->next)) {
        fields_set(&json, "nextKey", json_string(x25519_public_format(&peer->next, next)));
        fields_set(&json, "callsNext", json_boolean(peer->calls_next));
    }
    if (peer->offered_at != 0) {
        fields_set(&json, "offered", encode_identity(&peer->offered));
        set_time(&json, "offeredAt", peer->offered_at);
    }
    if (peer->how != FIRST_SIGHT_UNCHANGED) {
        fields_set(&json, "before", encode_identity(&peer->before));
        fields_set(&json, "changedHow", json_string(how_names[peer->how]));
        set_time(&json, "changedAt", peer->changed_at);
    }
    return json;
}

json_t *first_sight_encode(const struct first_sight *fs)
{
    json_t *peers = json_array();

    for (size_t i = 0; i < fs->n; i++)
        fields_append(&peers, encode_peer(&fs->peers[i]));
    return json_pack("{s:s, s:b, s:b, s:o}", "node", fs->self, "hasMembers", (int)fs->has_members,
        "asks", (int)fs->asks, "peers", peers);
}

/* ---- decode ---------------------------------------------------------------------------------- */

static bool decode_identity(
    struct fields *from, const char *name, bool is_required, struct first_sight_identity *ret)
{
    const json_t *json = fields_object(from, name, is_required ? FIELDS_REQUIRED : FIELDS_OPTIONAL);
    struct err why = ERR_NULL;
    struct fields f;
    const char *pin;

    if (!json)
        return false;
    f = fields_make(json, name, &why);
    fields_public_key(&f, "publicKey", FIELDS_REQUIRED, &ret->key);
    fields_address(&f, "address4", FIELDS_REQUIRED, true, &ret->address4);
    fields_address(&f, "address6", FIELDS_REQUIRED, false, &ret->address6);
    fields_bool(&f, "hub", FIELDS_OPTIONAL, &ret->is_hub);
    pin = fields_string(&f, "tlsPin", FIELDS_OPTIONAL, 1, TLS_PIN_TEXT_MAX);
    ret->has_pin = pin && base64_decode(pin, ret->pin.b, sizeof(ret->pin.b));
    if (pin && !ret->has_pin)
        fields_fail(&f, "\"tlsPin\" is not the base64 of 32 bytes");
    if (fields_end(&f) != 0)
        fields_fail(from, "%s", err_text(&why));
    return fields_end(&f) == 0;
}

static void decode_time(struct fields *f, const char *name, bool is_required, int64_t *ret)
{
    fields_int_of_size(
        f, name, is_required ? FIELDS_REQUIRED : FIELDS_OPTIONAL, 1, TIME_MAX, sizeof(*ret), ret);
}

static int decode_peer(
    struct first_sight_peer *ret, const json_t *json, const char *where, struct err *e)
{
    struct first_sight_peer peer = {.seen_at = 0};
    struct fields f = fields_make(json, where, e);
    unsigned how = FIRST_SIGHT_UNCHANGED;

    fields_name(&f, "name", FIELDS_REQUIRED, peer.name);
    if (decode_identity(&f, "held", false, &peer.held)) {
        decode_time(&f, "seenAt", true, &peer.seen_at);
        decode_time(&f, "answeredAt", false, &peer.answered_at);
        decode_time(&f, "removedAt", false, &peer.removed_at);
        decode_time(&f, "hubAt", false, &peer.hub_at);
        fields_public_key(&f, "nextKey", FIELDS_OPTIONAL, &peer.next);
        if (!x25519_public_is_none(&peer.next))
            fields_bool(&f, "callsNext", FIELDS_OPTIONAL, &peer.calls_next);
        if (x25519_public_equal(&peer.next, &peer.held.key))
            fields_fail(&f, "\"nextKey\" of \"%s\" is its key already", peer.name);
    }
    if (decode_identity(&f, "offered", peer.seen_at == 0, &peer.offered))
        decode_time(&f, "offeredAt", true, &peer.offered_at);
    fields_enum(&f, "changedHow", FIELDS_OPTIONAL, how_names, FIRST_SIGHT_HOW_N, &how);
    if (how != FIRST_SIGHT_UNCHANGED) {
        decode_time(&f, "changedAt", true, &peer.changed_at);
        (void)decode_identity(&f, "before", true, &peer.before);
    }
    if (fields_end(&f) != 0)
        return fields_end(&f);
    peer.how = (enum first_sight_how)how;
    if (how != FIRST_SIGHT_UNCHANGED)
        peer.changed = first_sight_changes(&peer.before, &peer.held) & ~(unsigned)FIRST_SIGHT_HUB;
    *ret = peer;
    return 0;
}

static int decode_peers(
    struct first_sight *fs, const json_t *list, const char *where, struct err *e)
{
    size_t n = json_array_size(list);
    int r = 0;

    fs->peers = calloc(n + 1, sizeof(*fs->peers));
    if (!fs->peers)
        return err_set(e, -ENOMEM, "no memory for %s", where);
    fs->cap = n + 1;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct first_sight_peer *peer = &fs->peers[i];

        r = decode_peer(peer, json_array_get(list, i), where, e);
        if (r == 0 && i > 0 && strcmp(peer[-1].name, peer->name) >= 0)
            r = err_set(
                e, -EINVAL, "%s: \"%s\" comes behind \"%s\"", where, peer->name, peer[-1].name);
        if (r == 0)
            fs->n++;
        if (r == 0 && peer->offered_at != 0)
            fs->n_offered++;
    }
    return r;
}

int first_sight_decode(
    struct first_sight *ret, const json_t *json, const char *where, struct err *e)
{
    struct first_sight fs = FIRST_SIGHT_NULL;
    struct fields f = fields_make(json, where, e);
    const json_t *peers;
    int r;

    fields_name(&f, "node", FIELDS_REQUIRED, fs.self);
    fields_bool(&f, "hasMembers", FIELDS_OPTIONAL, &fs.has_members);
    fields_bool(&f, "asks", FIELDS_OPTIONAL, &fs.asks);
    peers = fields_array(&f, "peers", FIELDS_REQUIRED, 0, FIRST_SIGHT_PEERS_MAX);
    r = fields_end(&f);
    if (r == 0)
        r = decode_peers(&fs, peers, where, e);
    if (r == 0)
        *ret = fs;
    else
        first_sight_deinit(&fs);
    return r;
}
