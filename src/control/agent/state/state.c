/* state.c - see state.h. */
#include "agent/state/state.h"

#include <errno.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/content/body.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/watch_event.h"
#include "os/clock.h"
#include "os/file.h"

#define NODE_FILE          "node.json"
#define PUBLIC_FILE        "public.json"
#define SNAPSHOT_FILE      "snapshot.json"
#define KEEPALIVE_FILE     "keepalive.json"
#define TRAFFIC_FILE       "traffic.json"
#define PEERS_FILE         "peers.json"
#define TIMESTAMP_FILE     "timestamp"
#define KEY_FILE           "join.key"
#define KEYS_FILE          "keys.json"
#define LOCK_FILE          "lock"
#define KEEPALIVE_FILE_MAX 4096
#define TRAFFIC_FILE_MAX   (16u << 20)  /* eight days, and the counters of 65,536 peers */
#define PEERS_FILE_MAX     (128u << 20) /* 131,072 peers, of which all have changed */
#define KEYS_FILE_MAX      (8u << 20)   /* the names of 65,536 stock peers */
#define NODE_MAX           (256u << 10) /* a node, its network, some hubs, all their labels */

_Static_assert(STATE_INTERFACE_MAX == IFNAMSIZ, "as the kernel has it");

static const char *path_of(const char *dir, const char *file, char buf[static PATH_MAX])
{
    (void)snprintf(buf, PATH_MAX, "%.*s/%s", STATE_DIR_MAX, dir, file);
    return buf;
}

void state_deinit(struct state *st)
{
    snapshot_deinit(&st->snapshot);
    secret_wipe(st, sizeof(*st)); /* its key, and a proxy's password */
}

int state_check_interface(const char *name, struct err *e)
{
    size_t len = strlen(name);
    bool good =
        len > 0 && len < STATE_INTERFACE_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;

    /* As the kernel allows, without '%', which the kernel would replace by a number. */
    for (size_t i = 0; good && i < len; i++)
        good = name[i] > ' ' && name[i] < 0x7f && !strchr("/:%", name[i]);
    if (good)
        return 0;
    return err_set(e, -EINVAL,
        "interface \"%.40s\" is not a name: 1 to %d printable characters other than '/', ':', '%%'",
        name, STATE_INTERFACE_MAX - 1);
}

int state_check_dir(const char *dir, struct err *e)
{
    if (dir[0] != '\0' && strlen(dir) <= STATE_DIR_MAX)
        return 0;
    return err_set(
        e, -EINVAL, "the state directory \"%.40s\" is not 1 to %d bytes long", dir, STATE_DIR_MAX);
}

bool state_is_there(const char *dir)
{
    char path[PATH_MAX];

    return access(path_of(dir, NODE_FILE, path), F_OK) == 0 || errno != ENOENT;
}

/* ---- files of JSON --------------------------------------------------------------------------- */

/* Wipes the text afterwards, because node.json holds a key. @ret gives a reference. */
static int read_json(const char *dir, const char *file, size_t max, json_t **ret, struct err *e)
{
    json_error_t error;
    char path[PATH_MAX];
    char *text = NULL;
    size_t len = 0;
    int r = statefile_read(path_of(dir, file, path), max, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return STATE_E_ABSENT;
    if (r < 0)
        return r;
    *ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    secret_wipe(text, len);
    free(text);
    if (*ret)
        return 0;
    return err_set(e, -EINVAL, "%s is damaged: %s in line %d", path, error.text, error.line);
}

/* Takes @json, which is NULL when there was no memory to make it. */
static int write_json(const char *dir, const char *file, json_t *json, struct err *e)
{
    char path[PATH_MAX];
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    int r;

    body_wipe_text(json, "privateKey");
    json_decref(json);
    if (!text)
        return err_set(e, -ENOMEM, "no memory to write %s", path_of(dir, file, path));
    r = statefile_replace(path_of(dir, file, path), text, strlen(text), 0600, e);
    secret_wipe(text, strlen(text));
    free(text);
    return r;
}

/* ---- node.json ------------------------------------------------------------------------------- */

static void decode_interface(struct fields *f, struct state *st)
{
    const char *name = fields_string(f, "interface", FIELDS_REQUIRED, 1, STATE_INTERFACE_MAX - 1);
    const char *engine = fields_string(f, "engine", FIELDS_REQUIRED, 1, 20);
    struct err e = ERR_NULL;

    if (name && state_check_interface(name, &e) < 0)
        fields_fail(f, "%s", err_text(&e));
    else if (name)
        (void)snprintf(st->interface, sizeof(st->interface), "%s", name);
    if (engine && engine_kind_parse(&st->engine, engine, &e) < 0)
        fields_fail(f, "%s", err_text(&e));
}

static void decode_hub_api(struct fields *f, struct state_hub_api *hub_api)
{
    const char *pin = fields_string(f, "hubPin", FIELDS_OPTIONAL, 1, 64);
    const char *proxy = fields_string(f, "proxy", FIELDS_OPTIONAL, 1, PROXY_TEXT_MAX - 1);
    const json_t *api = fields_array(f, "hubApi", FIELDS_OPTIONAL, 0, TOKEN_ENDPOINTS_MAX);
    struct err e = ERR_NULL;

    for (size_t i = 0; i < json_array_size(api); i++) {
        const char *text = json_string_value(json_array_get(api, i));

        if (!text || host_port_check(text, &e) != 0)
            fields_fail(f, "\"hubApi\" is not a list of HOST:PORT");
        else
            (void)snprintf(hub_api->api[hub_api->n_api++], sizeof(hub_api->api[0]), "%s", text);
    }
    if (hub_api->n_api > 0 && (!pin || !base64_decode(pin, hub_api->pin.b, sizeof(hub_api->pin.b))))
        fields_fail(f, "\"hubPin\" is not a SHA-256: 44 characters of base64");
    if (proxy && proxy_check(proxy, &e) != 0)
        fields_fail(f, "%s", err_text(&e));
    else if (proxy)
        (void)snprintf(hub_api->proxy, sizeof(hub_api->proxy), "%s", proxy);
}

/* Adds the fields to @json. Return: false without memory. */
static bool encode_hub_api(json_t *json, const struct state_hub_api *hub_api)
{
    char pin[BASE64_SIZE(sizeof(hub_api->pin.b))];
    json_t *api = json_array();
    bool ok = api != NULL;

    base64_encode(hub_api->pin.b, sizeof(hub_api->pin.b), pin);
    for (unsigned i = 0; ok && i < hub_api->n_api; i++)
        ok = json_array_append_new(api, json_string(hub_api->api[i])) == 0;
    if (ok && hub_api->n_api > 0)
        ok = json_object_set_new(json, "hubPin", json_string(pin)) == 0;
    if (ok && hub_api->proxy[0])
        ok = json_object_set_new(json, "proxy", json_string(hub_api->proxy)) == 0;
    return json_object_set_new(json, "hubApi", api) == 0 && ok;
}

int state_parse_given(struct endpoint *ret, const char *text, struct err *e)
{
    struct endpoint ep = {.port = 0};

    if (ip_addr_parse(&ep.addr, text, NULL) < 0 && endpoint_parse(&ep, text, NULL) < 0)
        return err_set(e, -EINVAL,
            "\"%.60s\" is no endpoint: an address, or ADDRESS:PORT, or [ADDRESS]:PORT", text);
    *ret = ep;
    return 0;
}

static void decode_given(struct fields *f, struct state *st)
{
    const json_t *given = fields_array(f, "endpoints", FIELDS_OPTIONAL, 0, STATE_GIVEN_MAX);
    struct err e = ERR_NULL;

    fields_int(f, "listenPort", FIELDS_OPTIONAL, 0, UINT16_MAX, &st->listen_port);
    for (size_t i = 0; i < json_array_size(given); i++) {
        const char *text = json_string_value(json_array_get(given, i));

        if (!text)
            fields_fail(f, "an endpoint is not a string");
        else if (state_parse_given(&st->given[i], text, &e) < 0)
            fields_fail(f, "%s", err_text(&e));
        st->n_given++;
    }
}

/* The key in the file and the one that the hub knows must be a pair. */
static int check_key(const struct state *st, const char *path, struct err *e)
{
    struct x25519_public public;

    if (!x25519_derive_public(&st->secret, &public))
        return -ENOMEM;
    if (x25519_public_equal(&public, &snapshot_self(&st->snapshot)->key))
        return 0;
    return err_set(e, -EINVAL, "%s is damaged: its private key is not that of its node", path);
}

static int decode_state(struct state *st, const json_t *json, const char *path, struct err *e)
{
    struct fields f = fields_make(json, path, e);
    struct err why = ERR_NULL;
    const json_t *machine;
    const json_t *birth;
    const char *text;
    int r;

    text = fields_string(&f, "privateKey", FIELDS_REQUIRED, 1, X25519_BASE64_MAX);
    if (text && x25519_secret_parse(&st->secret, text, NULL) < 0)
        fields_fail(&f, "\"privateKey\" is not a key: 44 characters of base64");
    fields_public_key(&f, "formerKey", FIELDS_OPTIONAL, &st->former);
    decode_interface(&f, st);
    decode_hub_api(&f, &st->hub_api);
    st->keeps_hosts = true;
    fields_bool(&f, "hosts", FIELDS_OPTIONAL, &st->keeps_hosts);
    st->answers_dns = true;
    fields_bool(&f, "dns", FIELDS_OPTIONAL, &st->answers_dns);
    fields_bool(&f, "relay", FIELDS_OPTIONAL, &st->wants_relay);
    subnets_decode(&f, "routes", &st->routes);
    fields_bool(&f, "keepSources", FIELDS_OPTIONAL, &st->keeps_sources);
    text = fields_string(&f, "acceptRoutes", FIELDS_OPTIONAL, 1, 20);
    if (text && subnets_accept_parse(&st->accepts, text, &why) < 0)
        fields_fail(&f, "\"acceptRoutes\": %s", err_text(&why));
    decode_given(&f, st);
    machine = fields_object(&f, "machine", FIELDS_OPTIONAL);
    st->has_machine = machine && machine_traits_decode(&st->machine, machine);
    birth = fields_object(&f, "joined", FIELDS_REQUIRED);
    r = fields_end(&f);
    if (r == 0) {
        r = snapshot_decode(&st->snapshot, birth, NULL, e);
        if (r < 0)
            (void)err_prefix(e, "%s", path);
    }
    return r < 0 ? r : check_key(st, path, e);
}

int state_read(struct state *ret, const char *dir, struct err *e)
{
    struct state st = STATE_NULL;
    char path[PATH_MAX];
    struct stat of_file;
    json_t *json = NULL;
    int r = read_json(dir, NODE_FILE, NODE_MAX, &json, e);

    if (r != 0)
        return r;
    if (stat(path_of(dir, NODE_FILE, path), &of_file) == 0)
        st.keyed_at = of_file.st_mtime;
    r = decode_state(&st, json, path_of(dir, NODE_FILE, path), e);
    body_wipe_text(json, "privateKey");
    json_decref(json);
    if (r < 0) {
        state_deinit(&st);
        return r;
    }
    *ret = st;
    return 0;
}

/* The nodes that are needed to reach the hub: this one and the hubs. */
static json_t *encode_birth(const struct snapshot *s)
{
    json_t *nodes = json_array();

    for (size_t i = 0; nodes && i < s->nodes.n; i++) {
        const struct node *n = &s->nodes.items[i]->node;

        if (n->hub || n == snapshot_self(s))
            fields_append(&nodes, node_encode(n));
    }
    return json_pack("{s:I, s:s, s:o, s:o, s:[]}", "revision", (json_int_t)s->revision, "self",
        s->self, "network", network_encode(&s->network), "nodes", nodes, "edges");
}

static json_t *encode_given(const struct state *st)
{
    json_t *given = json_array();
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; given && i < st->n_given; i++) {
        const struct endpoint *ep = &st->given[i];

        fields_append(&given,
            json_string(ep->port ? endpoint_format(ep, text) : ip_addr_format(&ep->addr, text)));
    }
    return given;
}

int state_read_public(struct state *ret, const char *dir, struct err *e)
{
    struct state st = STATE_NULL;
    char path[PATH_MAX];
    json_t *json = NULL;
    struct fields f;
    const json_t *birth;
    int r = read_json(dir, PUBLIC_FILE, NODE_MAX, &json, e);

    if (r != 0)
        return r;
    f = fields_make(json, path_of(dir, PUBLIC_FILE, path), e);
    decode_interface(&f, &st);
    birth = fields_object(&f, "joined", FIELDS_REQUIRED);
    r = fields_end(&f);
    if (r == 0)
        r = snapshot_decode(&st.snapshot, birth, NULL, e);
    json_decref(json);
    if (r < 0)
        return r;
    *ret = st;
    return 0;
}

int state_write_public(const struct state *st, const char *dir, struct err *e)
{
    return write_json(dir, PUBLIC_FILE,
        json_pack("{s:s, s:s, s:o}", "interface", st->interface, "engine",
            engine_kind_names[st->engine], "joined", encode_birth(&st->snapshot)),
        e);
}

int state_write(const struct state *st, const char *dir, struct err *e)
{
    bool has_former = !x25519_public_is_none(&st->former);
    char text[X25519_BASE64_MAX];
    char former[X25519_BASE64_MAX];
    json_t *json;
    int r = state_write_public(st, dir, e);

    /* With node.json the machine counts as joined, so that file is written last. */
    if (r < 0)
        return r;
    x25519_secret_write(&st->secret, text);
    json = json_pack("{s:s, s:s, s:b, s:b, s:b, s:o, s:b, s:s, s:i, s:o, s:o*, s:s, s:s*, s:o}",
        "interface", st->interface, "engine", engine_kind_names[st->engine], "hosts",
        (int)st->keeps_hosts, "dns", (int)st->answers_dns, "relay", (int)st->wants_relay, "routes",
        subnets_encode(&st->routes), "keepSources", (int)st->keeps_sources, "acceptRoutes",
        subnets_accept_names[st->accepts], "listenPort", (int)st->listen_port, "endpoints",
        encode_given(st), "machine", st->has_machine ? machine_traits_encode(&st->machine) : NULL,
        "privateKey", text, "formerKey",
        has_former ? x25519_public_format(&st->former, former) : NULL, "joined",
        encode_birth(&st->snapshot));
    secret_wipe(text, sizeof(text));
    if (json && !encode_hub_api(json, &st->hub_api))
        json = (json_decref(json), NULL);
    return write_json(dir, NODE_FILE, json, e);
}

/* ---- snapshot.json --------------------------------------------------------------------------- */

int state_read_snapshot(struct snapshot *ret, const char *dir, struct err *e)
{
    char path[PATH_MAX];
    json_t *json = NULL;
    int r = read_json(dir, SNAPSHOT_FILE, WATCH_EVENT_LINE_MAX, &json, e);

    if (r != 0)
        return r;
    r = snapshot_decode(ret, json, NULL, e);
    json_decref(json);
    if (r < 0)
        (void)err_prefix(e, "%s is damaged", path_of(dir, SNAPSHOT_FILE, path));
    return r;
}

int state_write_snapshot(const struct snapshot *s, const char *dir, struct err *e)
{
    return write_json(dir, SNAPSHOT_FILE, snapshot_encode(s), e);
}

/* ---- traffic.json ---------------------------------------------------------------------------- */

int state_read_traffic(json_t **ret, const char *dir, struct err *e)
{
    return read_json(dir, TRAFFIC_FILE, TRAFFIC_FILE_MAX, ret, e);
}

int state_write_traffic(json_t *json, const char *dir, struct err *e)
{
    return write_json(dir, TRAFFIC_FILE, json, e);
}

/* ---- peers.json ------------------------------------------------------------------------------ */

int state_read_peers(json_t **ret, const char *dir, struct err *e)
{
    return read_json(dir, PEERS_FILE, PEERS_FILE_MAX, ret, e);
}

int state_write_peers(json_t *json, const char *dir, struct err *e)
{
    return write_json(dir, PEERS_FILE, json, e);
}

/* ---- keepalive.json -------------------------------------------------------------------------- */

static int decode_keepalive(
    struct keepalive_known *ret, const json_t *json, const char *path, struct err *e)
{
    const uint64_t longest = KEEPALIVE_LONGEST / NSEC_PER_MSEC;
    struct fields f = fields_make(json, path, e);
    uint64_t lives = 0;
    uint64_t dies = 0;
    uint64_t measured_at = 0;
    const char *address;

    fields_u64(&f, "livesMs", FIELDS_REQUIRED, 0, longest, &lives);
    fields_u64(&f, "diesMs", FIELDS_OPTIONAL, 1, longest, &dies);
    fields_u64(&f, "measuredAt", FIELDS_REQUIRED, 1, INT64_MAX / NSEC_PER_SEC, &measured_at);
    address = fields_string(&f, "address", FIELDS_REQUIRED, 1, IP_ADDR_TEXT_MAX);
    if (address && ip_addr_parse(&ret->outside, address, NULL) < 0)
        fields_fail(&f, "\"address\" is no address");
    if (lives == 0 && dies == 0)
        fields_fail(&f, "\"livesMs\" is 0, and there is no \"diesMs\"");
    ret->bounds.lives = (nsec_t)lives * NSEC_PER_MSEC;
    ret->bounds.dies = dies == 0 ? NSEC_NEVER : (nsec_t)dies * NSEC_PER_MSEC;
    ret->measured_at = (nsec_t)measured_at * NSEC_PER_SEC;
    return fields_end(&f);
}

int state_read_keepalive(struct keepalive_known *ret, const char *dir, struct err *e)
{
    struct keepalive_known known = KEEPALIVE_KNOWN_NULL;
    char path[PATH_MAX];
    json_t *json = NULL;
    int r = read_json(dir, KEEPALIVE_FILE, KEEPALIVE_FILE_MAX, &json, e);

    if (r != 0)
        return r;
    r = decode_keepalive(&known, json, path_of(dir, KEEPALIVE_FILE, path), e);
    json_decref(json);
    if (r == 0)
        *ret = known;
    return r;
}

int state_write_keepalive(const struct keepalive_known *k, const char *dir, struct err *e)
{
    json_t *dies =
        k->bounds.dies == NSEC_NEVER ? NULL : json_integer(k->bounds.dies / NSEC_PER_MSEC);
    char address[IP_ADDR_TEXT_MAX];

    return write_json(dir, KEEPALIVE_FILE,
        json_pack("{s:I, s:o*, s:I, s:s}", "livesMs", (json_int_t)(k->bounds.lives / NSEC_PER_MSEC),
            "diesMs", dies, "measuredAt", (json_int_t)(k->measured_at / NSEC_PER_SEC), "address",
            ip_addr_format(&k->outside, address)),
        e);
}

/* ---- join.key -------------------------------------------------------------------------------- */

static int read_join_key(struct x25519_secret *ret, const char *path, struct err *e)
{
    char *text = NULL;
    size_t len = 0;
    int r = statefile_read(path, X25519_BASE64_MAX, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return STATE_E_ABSENT;
    if (r < 0)
        return r;
    text[strcspn(text, "\n")] = '\0';
    if (x25519_secret_parse(ret, text, NULL) < 0)
        r = err_set(e, -EINVAL, "%s is damaged: it does not hold a key", path);
    secret_wipe(text, len);
    free(text);
    return r;
}

int state_join_key(struct x25519_secret *ret, bool *ret_is_old, const char *dir, struct err *e)
{
    struct rng rng = rng_kernel();
    struct x25519_secret secret;
    char text[X25519_BASE64_MAX];
    char path[PATH_MAX];
    int r = read_join_key(ret, path_of(dir, KEY_FILE, path), e);

    *ret_is_old = r == 0;
    if (r != STATE_E_ABSENT)
        return r;
    x25519_secret_make(&secret, &rng);
    x25519_secret_write(&secret, text);
    r = statefile_replace(path, text, strlen(text), 0600, e);
    if (r == 0)
        *ret = secret;
    secret_wipe(text, sizeof(text));
    secret_wipe(&secret, sizeof(secret));
    return r;
}

static int remove_file(const char *dir, const char *file, struct err *e)
{
    char path[PATH_MAX];

    if (unlink(path_of(dir, file, path)) < 0 && errno != ENOENT)
        return err_set(e, -errno, "%s cannot be removed: %s", path, strerror(errno));
    return 0;
}

int state_forget_join_key(const char *dir, struct err *e)
{
    return remove_file(dir, KEY_FILE, e);
}

/* ---- keys.json ------------------------------------------------------------------------------- */

void state_next_key_deinit(struct state_next_key *k)
{
    json_decref(k->seen);
    secret_wipe(k, sizeof(*k));
}

static int decode_next_key(
    struct state_next_key *k, const json_t *json, const char *path, struct err *e)
{
    static const char *const stages[] = {"prepared", "moved"};
    struct fields f = fields_make(json, path, e);
    const char *text = fields_string(&f, "privateKey", FIELDS_REQUIRED, 1, X25519_BASE64_MAX);
    const json_t *seen = fields_array(&f, "seenUnderNext", FIELDS_OPTIONAL, 0, 65536);
    unsigned stage = 0;

    if (text && x25519_secret_parse(&k->secret, text, NULL) < 0)
        fields_fail(&f, "\"privateKey\" is not a key: 44 characters of base64");
    fields_public_key(&f, "from", FIELDS_REQUIRED, &k->from);
    fields_enum(&f, "stage", FIELDS_REQUIRED, stages, 2, &stage);
    fields_text(&f, "statement", FIELDS_REQUIRED, 4, sizeof(k->statement), k->statement);
    for (size_t i = 0; i < json_array_size(seen); i++)
        if (!json_is_string(json_array_get(seen, i)))
            fields_fail(&f, "\"seenUnderNext\" is not a list of names");
    k->has_moved = stage == 1;
    k->seen = fields_end(&f) == 0 ? json_incref((json_t *)seen) : NULL;
    return fields_end(&f);
}

int state_read_next_key(struct state_next_key *ret, const char *dir, struct err *e)
{
    struct state_next_key k = {.has_moved = false};
    char path[PATH_MAX];
    json_t *json = NULL;
    int r = read_json(dir, KEYS_FILE, KEYS_FILE_MAX, &json, e);

    if (r != 0)
        return r;
    r = decode_next_key(&k, json, path_of(dir, KEYS_FILE, path), e);
    body_wipe_text(json, "privateKey");
    json_decref(json);
    if (r == 0)
        *ret = k;
    else
        state_next_key_deinit(&k);
    return r;
}

int state_write_next_key(const struct state_next_key *k, const char *dir, struct err *e)
{
    char from[X25519_BASE64_MAX];
    char text[X25519_BASE64_MAX];
    json_t *json;

    x25519_secret_write(&k->secret, text);
    json = json_pack("{s:s, s:s, s:s, s:s, s:O*}", "stage", k->has_moved ? "moved" : "prepared",
        "from", x25519_public_format(&k->from, from), "privateKey", text, "statement", k->statement,
        "seenUnderNext", k->seen);
    secret_wipe(text, sizeof(text));
    return write_json(dir, KEYS_FILE, json, e);
}

int state_forget_next_key(const char *dir, struct err *e)
{
    return remove_file(dir, KEYS_FILE, e);
}

bool state_is_own_key(const struct state *st, const struct x25519_public *key)
{
    return !x25519_public_is_none(key) &&
           (x25519_public_equal(key, &snapshot_self(&st->snapshot)->key) ||
               x25519_public_equal(key, &st->former) || x25519_public_equal(key, &st->next));
}

const char *state_timestamp_path(char buf[static PATH_MAX], const char *dir)
{
    return path_of(dir, TIMESTAMP_FILE, buf);
}

/* ---- the whole directory --------------------------------------------------------------------- */

int state_remove(const char *dir, struct err *e)
{
    /* node.json is removed last: as long as it is there this machine counts as joined. */
    static const char *const files[] = {SNAPSHOT_FILE, PEERS_FILE, KEEPALIVE_FILE, TRAFFIC_FILE,
        TIMESTAMP_FILE, KEY_FILE, KEYS_FILE, PUBLIC_FILE, NODE_FILE};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(*files); i++)
        r = remove_file(dir, files[i], e);
    return r;
}

int state_lock(const char *dir, int *ret_fd, struct err *e)
{
    char path[PATH_MAX];

    return statefile_lock(path_of(dir, LOCK_FILE, path), ret_fd, e);
}

/* ---- removed.json ---------------------------------------------------------------------------- */

#define REMOVED_FILE     "removed.json"
#define REMOVED_FILE_MAX 8192

void removed_set_reason(struct removed *rm, const char *reason)
{
    /* Cut between characters: what is not UTF-8 cannot be written as JSON. */
    size_t len = text_cut(reason, strlen(reason), REMOVED_REASON_MAX);

    memcpy(rm->reason, reason, len);
    rm->reason[len] = '\0';
}

int removed_write(const struct removed *rm, const char *dir, struct err *e)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:I}", "node", rm->node, "network", rm->network,
        "reason", rm->reason, "socket", rm->socket_path, "at", (json_int_t)rm->at);
    _cleanup_(freep) char *text = body_format(json);
    char path[PATH_MAX];

    json_decref(json);
    if (!text)
        return err_set(e, -ENOMEM, "no memory to write %s", path_of(dir, REMOVED_FILE, path));
    return statefile_replace(path_of(dir, REMOVED_FILE, path), text, strlen(text), 0600, e);
}

static int removed_decode(struct removed *rm, const json_t *json, const char *path, struct err *e)
{
    struct fields f = fields_make(json, path, e);
    const char *reason = fields_string(&f, "reason", FIELDS_REQUIRED, 0, REMOVED_REASON_MAX);
    const char *socket = fields_string(&f, "socket", FIELDS_REQUIRED, 1, PATH_MAX - 1);

    fields_name(&f, "node", FIELDS_REQUIRED, rm->node);
    fields_name(&f, "network", FIELDS_REQUIRED, rm->network);
    fields_int(&f, "at", FIELDS_REQUIRED, 0, INT64_MAX, &rm->at);
    (void)snprintf(rm->reason, sizeof(rm->reason), "%s", reason ? reason : "");
    (void)snprintf(rm->socket_path, sizeof(rm->socket_path), "%s", socket ? socket : "");
    return fields_end(&f);
}

int removed_read(struct removed *ret, const char *dir, struct err *e)
{
    struct removed rm = {.at = 0};
    char path[PATH_MAX];
    json_t *json = NULL;
    int r = read_json(dir, REMOVED_FILE, REMOVED_FILE_MAX, &json, e);

    if (r == 0)
        r = removed_decode(&rm, json, path_of(dir, REMOVED_FILE, path), e);
    json_decref(json);
    if (r == 0)
        *ret = rm;
    return r;
}

int removed_forget(const char *dir, struct err *e)
{
    return remove_file(dir, REMOVED_FILE, e);
}

const char *removed_explain(const struct removed *rm, char buf[static REMOVED_TEXT_MAX])
{
    time_t when = (time_t)rm->at;
    char text[40] = "";
    struct tm utc;

    if (gmtime_r(&when, &utc))
        (void)strftime(text, sizeof(text), " on %Y-%m-%d %H:%M:%S UTC", &utc);
    (void)snprintf(buf, REMOVED_TEXT_MAX,
        "this node, \"%s\", was removed from the network %s by its hub%s%s%s", rm->node,
        rm->network, text, rm->reason[0] ? ": " : "", rm->reason);
    return buf;
}
