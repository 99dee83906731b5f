/* etcd_codec.c - see etcd_codec.h. */
#include "etcd_codec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "store/store_backend.h"

/* Longest line in front of a value, with the byte 1 and the newline. */
#define ETCD_HEAD_MAX 48

/* Longest value that is read: more than etcd takes by default (1.5 MiB for a whole request). */
#define ETCD_RAW_MAX (2u << 20)

/* The port of a server that names none. */
#define ETCD_PORT_DEFAULT "2379"

/* ---- the URL --------------------------------------------------------------------------------- */

static int add_server(struct etcd_url *u, const char *text, bool is_tls, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%";
    const char *colon = strrchr(text, ':');
    const char *bracket = strrchr(text, ']');
    /* The colons inside of brackets are an IPv6 address's. */
    bool has_port = colon && (!bracket || colon > bracket);
    uint64_t port;

    if (u->n_servers == REMOTE_HTTP_SERVERS_MAX)
        return err_set(
            e, -EINVAL, "the store's URL names more than %d etcd servers", REMOTE_HTTP_SERVERS_MAX);
    if (strchr(text, '@'))
        return err_set(e, -EINVAL,
            "the store's URL must not hold a password: say user=NAME and password-file=FILE, or "
            "set " ETCD_PASSWORD_VARIABLE);
    if (text[0] == '\0' || text[0] == ':' || strlen(text) > 255 ||
        text[strspn(text, allowed)] != '\0' || (text[0] == '[') != (bracket != NULL))
        return err_set(
            e, -EINVAL, "etcd server \"%.80s\" in the store's URL is not HOST[:PORT]", text);
    if (has_port && parse_u64(&port, colon + 1, 1, 65535, "an etcd server's port", e) != 0)
        return -EINVAL;
    (void)snprintf(u->servers[u->n_servers++], sizeof(u->servers[0]), "%s://%s%s",
        is_tls ? "https" : "http", text, has_port ? "" : ":" ETCD_PORT_DEFAULT);
    return 0;
}

static int set_prefix(struct etcd_url *u, const char *text, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-";
    size_t len = strlen(text);
    bool has_slash = len > 0 && text[len - 1] == '/';

    if (len == 0 || len + !has_slash > ETCD_PREFIX_MAX || text[strspn(text, allowed)] != '\0')
        return err_set(e, -EINVAL,
            "the prefix \"%.80s\" in the store's URL is not 1 to %d of letters, digits, '/', '.', "
            "'_' and '-'",
            text, ETCD_PREFIX_MAX - 1);
    (void)snprintf(
        u->prefix, sizeof(u->prefix), "%.*s%s", ETCD_PREFIX_MAX - 1, text, has_slash ? "" : "/");
    return 0;
}

/* "NAME=VALUE", which is taken apart. */
static int set_option(struct etcd_url *u, char *text, struct err *e)
{
    const struct {
        const char *name;
        const char **field;
    } texts[] = {{"cacert", &u->ca_file}, {"cert", &u->cert_file}, {"key", &u->key_file},
        {"user", &u->user}, {"password-file", &u->password_file}};
    char *value = strchr(text, '=');

    if (!value || value[1] == '\0')
        return err_set(e, -EINVAL, "option \"%.80s\" of the store's URL is not NAME=VALUE", text);
    *value++ = '\0';
    if (strcmp(text, "prefix") == 0 && u->prefix[0] == '\0')
        return set_prefix(u, value, e);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (strcmp(text, texts[i].name) != 0 || *texts[i].field)
            continue;
        *texts[i].field = value;
        return 0;
    }
    return err_set(e, -EINVAL,
        "option \"%.40s\" of the store's URL is none of prefix, cacert, cert, key, user and "
        "password-file, or is there twice",
        text);
}

static int check_together(const struct etcd_url *u, bool is_tls, struct err *e)
{
    if (!is_tls && (u->ca_file || u->cert_file || u->key_file))
        return err_set(e, -EINVAL,
            "the store's URL has cacert, cert or key, which are for TLS: say etcds:// for it");
    if (!u->cert_file != !u->key_file)
        return err_set(e, -EINVAL,
            "the store's URL has one of cert and key without the other: both are needed");
    if (u->password_file && !u->user)
        return err_set(e, -EINVAL, "the store's URL has password-file without user");
    if (u->user && strlen(u->user) > ETCD_USER_MAX)
        return err_set(e, -EINVAL, "user \"%.40s...\" in the store's URL is longer than %d bytes",
            u->user, ETCD_USER_MAX);
    return 0;
}

int etcd_url_parse(struct etcd_url *ret, const char *where, bool is_tls, struct err *e)
{
    size_t len = strnlen(where, ETCD_URL_MAX + 1);
    char *servers = ret->text + 2;
    char *options;
    const char *server;
    char *option;
    int r = 0;

    *ret = (struct etcd_url){.n_servers = 0};
    if (len > ETCD_URL_MAX)
        return err_set(e, -EINVAL, "the store's URL is longer than %d bytes", ETCD_URL_MAX);
    if (strncmp(where, "//", 2) != 0)
        return err_set(e, -EINVAL, "store \"%s:%.80s\" is not \"%s://HOST[:PORT],...\"",
            is_tls ? "etcds" : "etcd", where, is_tls ? "etcds" : "etcd");
    memcpy(ret->text, where, len + 1);
    options = strchr(servers, '?');
    if (options)
        *options++ = '\0';
    while (r == 0 && (server = strsep(&servers, ",")))
        r = add_server(ret, server, is_tls, e);
    while (r == 0 && (option = strsep(&options, "&")))
        r = set_option(ret, option, e);
    if (r == 0 && ret->prefix[0] == '\0')
        r = set_prefix(ret, "/weft/", e);
    return r == 0 ? check_together(ret, is_tls, e) : r;
}

static int read_password(const char *path, char *ret, size_t size, struct err *e)
{
    FILE *file = fopen(path, "re");
    bool has_line;

    if (!file)
        return err_set(e, -EINVAL, "the password file \"%.150s\" of the store cannot be read: %s",
            path, strerror(errno));
    has_line = fgets(ret, (int)size, file) != NULL;
    (void)fclose(file);
    if (!has_line)
        return err_set(e, -EINVAL, "the password file \"%.150s\" of the store is empty", path);
    return 0;
}

int etcd_url_password(const struct etcd_url *url, char ret[static ETCD_USER_MAX + 1], struct err *e)
{
    const char *given = getenv(ETCD_PASSWORD_VARIABLE);
    char line[ETCD_USER_MAX + 3] = ""; /* with a newline, and one byte too many */
    int r = 0;

    if (url->password_file)
        r = read_password(url->password_file, line, sizeof(line), e);
    else if (given)
        (void)snprintf(line, sizeof(line), "%s", given);
    if (r != 0)
        return r;
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] != '\0' && strlen(line) <= ETCD_USER_MAX)
        memcpy(ret, line, strlen(line) + 1);
    else
        r = err_set(e, -EINVAL,
            "the password of the store's user \"%.60s\" is not 1 to %d bytes: put it into "
            "password-file=FILE of the URL, or into " ETCD_PASSWORD_VARIABLE,
            url->user, ETCD_USER_MAX);
    secret_wipe(line, sizeof(line));
    return r;
}

/* ---- keys and values as they were read ------------------------------------------------------- */

void etcd_kvs_deinit(struct etcd_kvs *kvs)
{
    for (size_t i = 0; i < kvs->n; i++) {
        free(kvs->items[i].name);
        free(kvs->items[i].value);
    }
    free(kvs->items);
    *kvs = (struct etcd_kvs)ETCD_KVS_NULL;
}

size_t etcd_kvs_bytes(const struct etcd_kvs *kvs)
{
    size_t bytes = 0;

    for (size_t i = 0; i < kvs->n; i++)
        bytes += kvs->items[i].len;
    return bytes;
}

const struct etcd_kv *etcd_kvs_find(const struct etcd_kvs *kvs, const char *name)
{
    for (size_t i = 0; i < kvs->n; i++)
        if (strcmp(kvs->items[i].name, name) == 0)
            return &kvs->items[i];
    return NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void add_base64(struct str *s, const char *bytes, size_t len)
{
    char *text = malloc(BASE64_SIZE(len));

    if (!text) {
        s->failed = true;
        return;
    }
    base64_encode(bytes, len, text);
    str_add(s, text);
    free(text);
}

static void add_name(struct str *s, const char *field, const char *prefix, const char *name)
{
    char key[ETCD_PREFIX_MAX + ETCD_NAME_MAX + 1];
    int len = snprintf(key, sizeof(key), "%s%s", prefix, name);

    assert(len > 0 && (size_t)len < sizeof(key));
    str_addf(s, "\"%s\":\"", field);
    add_base64(s, key, (size_t)len);
    str_add(s, "\"");
}

/* An object, perhaps behind another one. */
static void begin(struct str *s, const char *text)
{
    if (s->len > 0 && s->text[s->len - 1] == '}')
        str_add(s, ",");
    str_add(s, text);
}

void etcd_add_compare(struct str *s, const char *prefix, const char *name, uint64_t mod)
{
    begin(s, "{\"target\":\"MOD\",\"result\":\"EQUAL\",");
    add_name(s, "key", prefix, name);
    str_addf(s, ",\"mod_revision\":\"%" PRIu64 "\"}", mod);
}

void etcd_add_empty(struct str *s, const char *prefix)
{
    begin(s, "{\"target\":\"MOD\",\"result\":\"EQUAL\",");
    add_name(s, "key", prefix, "");
    str_add(s, ",");
    add_name(s, "range_end", prefix, "~");
    str_add(s, ",\"mod_revision\":\"0\"}");
}

void etcd_add_exists(struct str *s, const char *prefix, const char *name)
{
    begin(s, "{\"target\":\"MOD\",\"result\":\"GREATER\",");
    add_name(s, "key", prefix, name);
    str_add(s, ",\"mod_revision\":\"0\"}");
}

void etcd_add_put(struct str *s, const char *prefix, const char *name, const char *value,
    size_t len, uint64_t lease)
{
    begin(s, "{\"request_put\":{");
    add_name(s, "key", prefix, name);
    str_add(s, ",\"value\":\"");
    add_base64(s, value, len);
    if (lease)
        str_addf(s, "\",\"lease\":\"%" PRIu64, lease);
    str_add(s, "\"}}");
}

void etcd_add_delete(struct str *s, const char *prefix, const char *name)
{
    begin(s, "{\"request_delete_range\":{");
    add_name(s, "key", prefix, name);
    str_add(s, "}}");
}

void etcd_add_range(struct str *s, const char *prefix, const char *name)
{
    begin(s, "{\"request_range\":{");
    add_name(s, "key", prefix, name);
    str_add(s, "}}");
}

void etcd_add_span(struct str *s, const char *prefix, const struct etcd_span *span)
{
    add_name(s, "key", prefix, span->from);
    str_add(s, ",");
    add_name(s, "range_end", prefix, span->end);
    if (span->limit)
        str_addf(s, ",\"limit\":\"%zu\"", span->limit);
    if (span->is_down)
        str_add(s, ",\"sort_order\":\"DESCEND\",\"sort_target\":\"KEY\"");
    if (span->is_bare)
        str_add(s, ",\"keys_only\":true");
    if (span->at)
        str_addf(s, ",\"revision\":\"%" PRIu64 "\"", span->at);
}

void etcd_add_watch(struct str *s, const char *prefix, const char *from, const char *end,
    uint64_t start, bool deletions_only)
{
    str_add(s, "{\"create_request\":{");
    add_name(s, "key", prefix, from);
    str_add(s, ",");
    add_name(s, "range_end", prefix, end);
    str_addf(s, ",\"start_revision\":\"%" PRIu64 "\",\"fragment\":true%s}}", start,
        deletions_only ? ",\"filters\":[\"NOPUT\"]" : "");
}

/* ---- answers -------------------------------------------------------------------------------- */

uint64_t etcd_answer_number(const json_t *answer, const char *field)
{
    const char *text = json_string_value(json_object_get(answer, field));
    uint64_t n = 0;

    /* Revisions and leases are positive numbers of 63 bits. */
    if (!text || parse_u64(&n, text, 0, INT64_MAX, field, NULL) != 0)
        return 0;
    return n;
}

int etcd_answer_revision(const json_t *answer, uint64_t *ret, struct err *e)
{
    uint64_t revision = etcd_answer_number(json_object_get(answer, "header"), "revision");

    if (revision == 0)
        return err_set(e, -EBADMSG, "etcd's answer has no header with a revision");
    *ret = revision;
    return 0;
}

bool etcd_answer_succeeded(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "succeeded"));
}

/* Gives the bytes with a zero behind them; NULL: it is not base64, or longer than @max. */
static char *take_base64(const json_t *json, size_t max, size_t *ret_len)
{
    const char *text = json_string_value(json);
    size_t text_len = text ? strlen(text) : 0;
    size_t len = text_len / 4 * 3;
    char *bytes;

    if (!text || text_len % 4 != 0)
        return NULL;
    for (size_t i = text_len; i > 0 && text_len - i < 2 && text[i - 1] == '='; i--)
        len--;
    if (len > max)
        return NULL;
    bytes = calloc(1, len + 1);
    if (bytes && !base64_decode(text, bytes, len)) {
        free(bytes);
        return NULL;
    }
    *ret_len = len;
    return bytes;
}

/* The key below @prefix; NULL: it is not there, or no key. */
static char *take_name(const json_t *kv, const char *prefix)
{
    size_t prefix_len = strlen(prefix);
    size_t len = 0;
    char *key = take_base64(json_object_get(kv, "key"), prefix_len + ETCD_NAME_MAX, &len);
    char *name = NULL;

    if (key && strlen(key) == len && strncmp(key, prefix, prefix_len) == 0)
        name = strdup(key + prefix_len);
    free(key);
    return name;
}

static int take_kv(
    const json_t *json, const char *prefix, bool is_deletion, struct etcd_kv *ret, struct err *e)
{
    const json_t *value = json_object_get(json, "value");
    struct etcd_kv kv = {.name = take_name(json, prefix),
        .mod = etcd_answer_number(json, "mod_revision"),
        .create = etcd_answer_number(json, "create_revision")};

    if (!is_deletion && value)
        kv.value = take_base64(value, ETCD_RAW_MAX, &kv.len);
    else if (!is_deletion)
        kv.value = calloc(1, 1);
    if (kv.name && kv.mod != 0 && (is_deletion || kv.value)) {
        *ret = kv;
        return 0;
    }
    (void)err_set(e, -EBADMSG, "etcd's answer has a key that is none below \"%s\": \"%.80s\"",
        prefix, kv.name ? kv.name : "?");
    free(kv.name);
    free(kv.value);
    return -EBADMSG;
}

static int take_kvs(
    const json_t *list, bool are_events, const char *prefix, struct etcd_kvs *ret, struct err *e)
{
    struct etcd_kvs kvs = ETCD_KVS_NULL;
    const json_t *json;
    size_t i;
    int r = 0;

    if (list && !json_is_array(list))
        return err_set(e, -EBADMSG, "etcd's answer has no list where its keys are");
    kvs.items = calloc(json_array_size(list) + 1, sizeof(*kvs.items));
    if (!kvs.items)
        return err_set(e, -ENOMEM, "no memory for etcd's answer");
    json_array_foreach((json_t *)list, i, json) {
        const char *type = json_string_value(json_object_get(json, "type"));
        bool is_deletion = are_events && type && strcmp(type, "DELETE") == 0;

        r = take_kv(are_events ? json_object_get(json, "kv") : json, prefix, is_deletion,
            &kvs.items[kvs.n], e);
        if (r != 0)
            break;
        kvs.n++;
    }
    if (r != 0)
        etcd_kvs_deinit(&kvs);
    else
        *ret = kvs;
    return r;
}

int etcd_answer_kvs(const json_t *answer, const char *prefix, struct etcd_kvs *ret, struct err *e)
{
    int r = json_is_object(answer)
                ? take_kvs(json_object_get(answer, "kvs"), false, prefix, ret, e)
                : err_set(e, -EBADMSG, "etcd's answer has no range where one was asked for");

    if (r == 0)
        ret->has_more = json_is_true(json_object_get(answer, "more"));
    return r;
}

int etcd_answer_nth(
    const json_t *answer, size_t i, const char *prefix, struct etcd_kvs *ret, struct err *e)
{
    const json_t *response = json_array_get(json_object_get(answer, "responses"), i);

    return etcd_answer_kvs(json_object_get(response, "response_range"), prefix, ret, e);
}

static int take_result(
    const json_t *result, const char *prefix, struct etcd_watch_line *ret, struct err *e)
{
    struct etcd_watch_line line = {.is_over = json_is_true(json_object_get(result, "canceled")),
        .is_fragment = json_is_true(json_object_get(result, "fragment")),
        .compacted = etcd_answer_number(result, "compact_revision")};
    const char *reason = json_string_value(json_object_get(result, "cancel_reason"));
    int r = take_kvs(json_object_get(result, "events"), true, prefix, &line.events, e);

    if (r != 0)
        return r;
    if (line.is_over)
        (void)err_set(e, -EBADMSG, "etcd ended the watch: %.150s",
            reason           ? reason
            : line.compacted ? "it was compacted"
                             : "it does not say why");
    *ret = line;
    return 0;
}

int etcd_watch_line_decode(
    const char *line, size_t len, const char *prefix, struct etcd_watch_line *ret, struct err *e)
{
    json_t *json = json_loadb(line, len, 0, NULL);
    const json_t *result = json_object_get(json, "result");
    struct etcd_refusal refusal;
    int r;

    if (json_is_object(result)) {
        r = take_result(result, prefix, ret, e);
    } else {
        etcd_refusal_decode(line, len, &refusal);
        r = err_set(e, -EBADMSG, "etcd's watch says: %s", refusal.text);
    }
    json_decref(json);
    return r;
}

void etcd_refusal_decode(const char *body, size_t len, struct etcd_refusal *ret)
{
    json_t *json = json_loadb(body, len, 0, NULL);
    const json_t *inner = json_object_get(json, "error");
    const json_t *from = json_is_object(inner) ? inner : json;
    const char *text = json_string_value(json_object_get(from, "message"));
    json_int_t code = json_integer_value(json_object_get(from, "code"));

    if (!code)
        code = json_integer_value(json_object_get(from, "grpc_code"));
    *ret = (struct etcd_refusal){.code = code > 0 && code < 100 ? (unsigned)code : 0};
    (void)snprintf(ret->text, sizeof(ret->text), "%.*s", text ? 199 : (int)(len < 199 ? len : 199),
        text ? text : body);
    json_decref(json);
}

/* ---- values --------------------------------------------------------------------------------- */

char *etcd_value_encode(const struct etcd_value *v, size_t *ret_len)
{
    char head[ETCD_HEAD_MAX + 1] = "";
    size_t len = 0;
    char *raw;

    if (v->ttl_seconds || v->is_unwatched || v->revision || (v->len > 0 && v->text[0] == '\x01')) {
        char ttl[16] = "";
        char revision[24] = "";

        if (v->ttl_seconds)
            (void)snprintf(ttl, sizeof(ttl), "t%" PRIu32, v->ttl_seconds);
        if (v->revision)
            (void)snprintf(revision, sizeof(revision), "r%" PRIu64, v->revision);
        len = (size_t)snprintf(
            head, sizeof(head), "\x01%s%s%s\n", ttl, v->is_unwatched ? "u" : "", revision);
    }
    raw = malloc(len + v->len + 1);
    if (!raw)
        return NULL;
    memcpy(raw, head, len);
    memcpy(raw + len, v->text, v->len);
    raw[len + v->len] = '\0';
    *ret_len = len + v->len;
    return raw;
}

/* "x123": the number behind the letter, if it is there; steps over it. False: it is out of bounds.
 */
static bool take_number(const char **p, char letter, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;
    const char *q = *p + 1;

    if (**p != letter)
        return true;
    if (*q < '1' || *q > '9')
        return false;
    for (; *q >= '0' && *q <= '9'; q++) {
        if (n > (max - (uint64_t)(*q - '0')) / 10)
            return false;
        n = 10 * n + (uint64_t)(*q - '0');
    }
    *p = q;
    *ret = n;
    return true;
}

void etcd_value_decode(const char *raw, size_t len, struct etcd_value *ret)
{
    struct etcd_value v = {.text = raw, .len = len};
    uint64_t ttl = 0;
    /* A zero stands behind the bytes, so a line that is cut short ends there. */
    const char *p = raw + 1;
    bool ok;

    *ret = v;
    if (len == 0 || raw[0] != '\x01')
        return;
    ok = take_number(&p, 't', UINT32_MAX, &ttl);
    v.is_unwatched = ok && *p == 'u';
    p += v.is_unwatched;
    if (!ok || !take_number(&p, 'r', INT64_MAX, &v.revision) || *p != '\n')
        return;
    v.ttl_seconds = (uint32_t)ttl;
    v.text = p + 1;
    v.len = len - (size_t)(p + 1 - raw);
    *ret = v;
}

/* ---- parts of large commits ------------------------------------------------------------------ */

/* The next word of a line: its end becomes a zero. NULL: there is none. */
static char *take_word(char **p, char end)
{
    char *word = *p;
    char *stop = strchr(word, end);

    if (!stop)
        return NULL;
    *stop = '\0';
    *p = stop + 1;
    return word;
}

bool etcd_part_next(char **p, const char *end, struct store_op *ret)
{
    const char *kind = take_word(p, ' ');
    const char *key = kind ? take_word(p, ' ') : NULL;
    const char *ttl = key ? take_word(p, ' ') : NULL;
    const char *unwatched = ttl ? take_word(p, ' ') : NULL;
    const char *length = unwatched ? take_word(p, '\n') : NULL;
    uint64_t seconds;
    uint64_t flag;
    uint64_t len;

    if (!length || (strcmp(kind, "p") != 0 && strcmp(kind, "d") != 0) ||
        store__check_key(key, 1, NULL) != 0 ||
        parse_u64(&seconds, ttl, 0, UINT32_MAX, "", NULL) != 0 ||
        parse_u64(&flag, unwatched, 0, 1, "", NULL) != 0 ||
        parse_u64(&len, length, 0, STORE_VALUE_MAX, "", NULL) != 0 || len > (size_t)(end - *p))
        return false;
    *ret = (struct store_op){.kind = kind[0] == 'p' ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = *p,
        .ttl_seconds = (uint32_t)seconds,
        .is_unwatched = flag != 0};
    *p += len;
    return true;
}
