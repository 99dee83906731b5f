/* kube_client.c - see kube_client.h. */
#include "kube_client.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "os/clock.h"
#include "os/file.h"

/* ---- what "--store kubernetes:" says --------------------------------------------------------- */

/* Where a pod finds its ServiceAccount. */
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

/* Longest kubeconfig, and longest of the small files that it names, bytes. */
#define FILE_MAX (1u << 20)

void kube_config_deinit(struct kube_config *c)
{
    free(c->file);
    free(c->server);
    free(c->ca_file);
    free(c->cert_file);
    free(c->key_file);
    if (c->token)
        secret_wipe(c->token, strlen(c->token));
    free(c->token);
    free(c->token_file);
    for (size_t i = 0; i < 3; i++)
        closep(&c->fds[i]);
    *c = (struct kube_config)KUBE_CONFIG_NULL;
}

/* ---- the URL --------------------------------------------------------------------------------- */

/* What a URL says; texts are cut out of a copy of it. */
struct store_words {
    char *text; /* owns */
    const char *namespace;
    const char *kubeconfig;
};

static int store_words_parse(struct store_words *ret, const char *where, struct err *e)
{
    char *rest;
    char *part;

    if (where[0] != '\0' && where[0] != '?')
        return err_set(e, -EINVAL,
            "store \"kubernetes:%.200s\": only \"?namespace=NAME\" and \"&kubeconfig=FILE\" may "
            "follow the colon",
            where);
    ret->text = strdup(where[0] ? where + 1 : "");
    if (!ret->text)
        return err_set(e, -ENOMEM, "no memory for a store");
    rest = ret->text;
    while ((part = strsep(&rest, "&"))) {
        if (strncmp(part, "namespace=", 10) == 0)
            ret->namespace = part + 10;
        else if (strncmp(part, "kubeconfig=", 11) == 0)
            ret->kubeconfig = part + 11;
        else if (part[0] != '\0')
            return err_set(e, -EINVAL,
                "store \"kubernetes:%.200s\": \"%.80s\" is neither namespace=NAME nor "
                "kubeconfig=FILE",
                where, part);
    }
    return ret->namespace ? parse_name(ret->namespace, "namespace", e) : 0;
}

int kube_config_check(const char *where, struct err *e)
{
    struct store_words words = {.text = NULL};
    int r = store_words_parse(&words, where, e);

    free(words.text);
    return r;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int set_text(char **ret, const char *text, struct err *e)
{
    *ret = strdup(text);
    return *ret ? 0 : err_set(e, -ENOMEM, "no memory for a store");
}

/* What a kubeconfig holds inline, as a file that only this process has. */
static int set_inline(struct kube_config *c, unsigned i, char **ret, const char *base64,
    const char *path, struct err *e)
{
    size_t len = strlen(base64);
    unsigned char *data = malloc(len + 4);
    char name[40];
    int n = -1;

    if (data && len % 4 == 0)
        n = EVP_DecodeBlock(data, (const unsigned char *)base64, (int)len);
    for (size_t k = len; n > 0 && k > 0 && base64[k - 1] == '='; k--)
        n--;
    if (n > 0)
        c->fds[i] = memfd_create("weft-kubeconfig", MFD_CLOEXEC);
    if (n > 0 && (c->fds[i] < 0 || write(c->fds[i], data, (size_t)n) != n))
        n = 0;
    if (data)
        secret_wipe(data, len);
    free(data);
    if (n <= 0)
        return err_set(e, -EINVAL, "%s: what ends in \"-data\" is not base64", path);
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", c->fds[i]);
    return set_text(ret, name, e);
}

/* The value of @name in a mapping; NULL: it has none. */
static yaml_node_t *find(yaml_document_t *doc, const yaml_node_t *map, const char *name)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *key = yaml_document_get_node(doc, p->key);

        if (key && key->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, name) == 0)
            return yaml_document_get_node(doc, p->value);
    }
    return NULL;
}

/* The same where it is a text that is not empty. */
static const char *find_text(yaml_document_t *doc, const yaml_node_t *map, const char *name)
{
    const yaml_node_t *node = find(doc, map, name);
    const char *text =
        node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;

    return text && text[0] != '\0' ? text : NULL;
}

/* In the list @list of the document, the @what of the item that is called @name. */
static yaml_node_t *find_named(
    yaml_document_t *doc, const char *list, const char *name, const char *what)
{
    const yaml_node_t *items = find(doc, yaml_document_get_root_node(doc), list);

    if (!items || items->type != YAML_SEQUENCE_NODE || !name)
        return NULL;
    for (yaml_node_item_t *i = items->data.sequence.items.start; i < items->data.sequence.items.top;
         i++) {
        const yaml_node_t *item = yaml_document_get_node(doc, *i);
        const char *text = find_text(doc, item, "name");

        if (text && strcmp(text, name) == 0)
            return find(doc, item, what);
    }
    return NULL;
}

/* A file that @map names under @name, or holds under @name and "-data". */
static int take_file(struct kube_config *c, unsigned i, char **ret, yaml_document_t *doc,
    const yaml_node_t *map, const char *name, const char *path, struct err *e)
{
    char with_data[64];
    const char *text = find_text(doc, map, name);

    (void)snprintf(with_data, sizeof(with_data), "%s-data", name);
    if (find_text(doc, map, with_data))
        return set_inline(c, i, ret, find_text(doc, map, with_data), path, e);
    return text ? set_text(ret, text, e) : 0;
}

static int take_user(struct kube_config *c, yaml_document_t *doc, const yaml_node_t *user,
    const char *path, struct err *e)
{
    const char *token = find_text(doc, user, "token");
    const char *token_file = find_text(doc, user, "tokenFile");
    int r = 0;

    if (find(doc, user, "exec") || find(doc, user, "auth-provider"))
        return err_set(e, -EINVAL,
            "%s: its user gets tokens from a program, which a hub does not start: name a token, a "
            "token file or a client certificate",
            path);
    if (token_file)
        r = set_text(&c->token_file, token_file, e);
    else if (token)
        r = set_text(&c->token, token, e);
    if (r == 0)
        r = take_file(c, 1, &c->cert_file, doc, user, "client-certificate", path, e);
    return r == 0 ? take_file(c, 2, &c->key_file, doc, user, "client-key", path, e) : r;
}

static int take_document(
    struct kube_config *c, yaml_document_t *doc, const char *path, struct err *e)
{
    const char *current = find_text(doc, yaml_document_get_root_node(doc), "current-context");
    const yaml_node_t *context = find_named(doc, "contexts", current, "context");
    const yaml_node_t *cluster =
        find_named(doc, "clusters", find_text(doc, context, "cluster"), "cluster");
    const yaml_node_t *user = find_named(doc, "users", find_text(doc, context, "user"), "user");
    const char *server = find_text(doc, cluster, "server");
    const char *namespace = find_text(doc, context, "namespace");
    int r;

    if (!server)
        return err_set(e, -EINVAL, "%s: its current context has no cluster with a server", path);
    if (find(doc, cluster, "insecure-skip-tls-verify"))
        return err_set(e, -EINVAL,
            "%s: insecure-skip-tls-verify is not allowed: name the certificate-authority", path);
    r = set_text(&c->server, server, e);
    if (r == 0 && c->namespace[0] == '\0' && namespace) {
        r = parse_name(namespace, "namespace", e);
        if (r == 0)
            (void)snprintf(c->namespace, sizeof(c->namespace), "%s", namespace);
    }
    if (r == 0)
        r = take_file(c, 0, &c->ca_file, doc, cluster, "certificate-authority", path, e);
    return r == 0 && user ? take_user(c, doc, user, path, e) : r;
}

static int read_kubeconfig(struct kube_config *c, const char *path, struct err *e)
{
    char *text = NULL;
    yaml_document_t doc;
    yaml_parser_t parser;
    size_t len = 0;
    int r = statefile_read(path, FILE_MAX, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "kubeconfig \"%.200s\" does not exist", path);
    if (r != 0)
        return r;
    if (!yaml_parser_initialize(&parser)) {
        free(text);
        return err_set(e, -ENOMEM, "no memory for a store");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (yaml_parser_load(&parser, &doc)) {
        r = take_document(c, &doc, path, e);
        yaml_document_delete(&doc);
    } else {
        r = err_set(e, -EINVAL, "kubeconfig \"%.200s\" is not YAML: line %zu: %s", path,
            parser.problem_mark.line + 1, parser.problem ? parser.problem : "no memory");
    }
    yaml_parser_delete(&parser);
    secret_wipe(text, len);
    free(text);
    return r;
}

static int read_account(struct kube_config *c, const char *host, struct err *e)
{
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    bool is_v6 = strchr(host, ':') != NULL;
    char *text = NULL;
    size_t len;
    int r;

    if (asprintf(&c->server, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
            port ? port : "443") < 0)
        c->server = NULL;
    if (!c->server)
        return err_set(e, -ENOMEM, "no memory for a store");
    r = set_text(&c->ca_file, ACCOUNT "ca.crt", e);
    if (r == 0)
        r = set_text(&c->token_file, ACCOUNT "token", e);
    if (r != 0 || c->namespace[0] != '\0')
        return r;
    r = statefile_read(ACCOUNT "namespace", KUBE_NAMESPACE_MAX, &text, &len, e);
    if (r == 0)
        r = parse_name(text, "namespace", e);
    if (r == 0)
        (void)snprintf(c->namespace, sizeof(c->namespace), "%s", text);
    free(text);
    return r < 0 ? r : 0;
}

int kube_config_read(struct kube_config *ret, const char *where, struct err *e)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    struct store_words words = {.text = NULL};
    int r;

    *ret = (struct kube_config)KUBE_CONFIG_NULL;
    r = store_words_parse(&words, where, e);
    if (r == 0 && words.namespace)
        (void)snprintf(ret->namespace, sizeof(ret->namespace), "%s", words.namespace);
    if (!words.kubeconfig && r == 0)
        words.kubeconfig = getenv("KUBECONFIG");
    if (r == 0 && words.kubeconfig)
        r = set_text(&ret->file, words.kubeconfig, e);
    if (r == 0 && ret->file)
        r = read_kubeconfig(ret, ret->file, e);
    else if (r == 0 && host)
        r = read_account(ret, host, e);
    else if (r == 0)
        r = err_set(e, -EINVAL,
            "store \"kubernetes:\": this is no pod, and neither the URL nor $KUBECONFIG names a "
            "kubeconfig: \"kubernetes:?kubeconfig=FILE\"");
    if (r == 0 && ret->namespace[0] == '\0')
        (void)snprintf(ret->namespace, sizeof(ret->namespace), "default");
    free(words.text);
    return r;
}

/* ---- an object's spec, and its hash ---------------------------------------------------------- */

void kube_spec_hash_json(char ret[static KUBE_SPEC_HASH_MAX], const json_t *json)
{
    char *text = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    struct blake2s_digest digest;

    blake2s_hash(text ? text : "", text ? strlen(text) : 0, NULL, 0, &digest);
    hex_encode(digest.b, (KUBE_SPEC_HASH_MAX - 1) / 2, ret);
    free(text);
}

/* A new reference: the spec as the kind itself writes it. NULL: it is no spec of that kind. */
static json_t *normal_spec(
    const struct object_kind *kind, const char *network, const char *name, const json_t *spec)
{
    json_auto_t *json = json_pack("{s:s, s:{s:s, s:s*}, s:O}", "kind", kind->name, "metadata",
        "name", name, "network", kind->is_network ? NULL : network, "spec", spec);
    json_auto_t *normal = NULL;
    struct object o = OBJECT_NULL;
    json_t *ret = NULL;

    if (json && object_decode(&o, json, OBJECT_STRICT, NULL) == 0) {
        normal = object_encode(&o);
        ret = json_incref(json_object_get(normal, "spec"));
        object_deinit(&o);
    }
    return ret;
}

void kube_spec_hash(char ret[static KUBE_SPEC_HASH_MAX], const struct object_kind *kind,
    const char *network, const char *name, const json_t *spec)
{
    json_auto_t *normal = normal_spec(kind, network, name, spec);

    kube_spec_hash_json(ret, normal ? normal : spec);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A ServiceAccount's token is replaced in its file while the old one still holds; it is read as
 * often as client-go does. */
#define TOKEN_NS (60 * NSEC_PER_SEC)

#define TOKEN_MAX  (64u << 10) /* bytes of a token's file */
#define ANSWER_MAX (4u << 20)  /* bytes of an answer, and of a line of a watch */
#define TIMEOUT_MS 5000        /* of one request */
#define CONNECT_MS 2000

/* An API server that has just begun does not have custom resources for so long. */
#define STARTING_NS (2 * NSEC_PER_SEC)

#define PATH_MAX_LEN 512

void kube_record_deinit(struct kube_record *r)
{
    free(r->data);
    free(r->version);
    *r = (struct kube_record)KUBE_RECORD_NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int kube_client_init(struct kube_client *ret, const char *where, struct err *e)
{
    struct remote_http_config config = {.n_servers = 1, .connect_ms = CONNECT_MS};
    int r;

    *ret = (struct kube_client)KUBE_CLIENT_NULL;
    r = kube_config_read(&ret->config, where, e);
    if (r != 0)
        return r;
    config.servers[0] = ret->config.server;
    config.ca_file = ret->config.ca_file;
    config.cert_file = ret->config.cert_file;
    config.key_file = ret->config.key_file;
    return remote_http_new(&ret->http, &config, e);
}

void kube_client_deinit(struct kube_client *c)
{
    c->http = remote_http_free(c->http);
    kube_config_deinit(&c->config);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int set_token(struct kube_client *c, const char *token, struct err *e)
{
    char *value = NULL;
    int r = -ENOMEM;

    if (asprintf(&value, "Bearer %.*s", (int)strcspn(token, "\r\n"), token) >= 0) {
        r = remote_http_set_authorization(c->http, value);
        secret_wipe(value, strlen(value));
        free(value);
    }
    return r == 0 ? 0 : err_set(e, r, "no memory for a token");
}

/* Read the token again when it was not read for TOKEN_NS. */
static int authorize(struct kube_client *c, struct err *e)
{
    const char *path = c->config.token_file;
    nsec_t now = clock_now();
    char *text = NULL;
    size_t len = 0;
    int r;

    if (c->token_at && (!path || now - c->token_at < TOKEN_NS))
        return 0;
    c->token_at = now;
    if (!path)
        return c->config.token ? set_token(c, c->config.token, e) : 0;
    r = statefile_read(path, TOKEN_MAX, &text, &len, e);
    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "the token's file \"%s\" does not exist", path);
    if (r != 0)
        return r;
    r = set_token(c, text, e);
    secret_wipe(text, len);
    free(text);
    return r;
}

/* The server's own words, of a Status or of anything else. */
static int refuse(int status, const struct remote_http_answer *answer, struct err *e)
{
    json_auto_t *json = json_loadb(answer->body, answer->len, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "message"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    int r = -EIO;

    if (status == 404 && reason && strcmp(reason, "NotFound") == 0 &&
        json_object_get(json_object_get(json, "details"), "name"))
        r = KUBE_E_ABSENT;
    else if (status == 404)
        r = -ENOENT;
    else if (status == 409)
        r = KUBE_E_EXISTS;
    else if (status == 401 || status == 403)
        r = -EACCES;
    else if (status >= 500)
        r = KUBE_E_LOST;
    else if (status == 429)
        r = KUBE_E_AWAY;
    if (r == -ENOENT)
        (void)err_set(e, r,
            "the API server does not have the resources of " KUBE_API ": apply "
            "deploy/kubernetes/crds.yaml");
    else
        (void)err_set(e, r, "the API server answers %d: %.300s", status, text ? text : "");
    return r;
}

static int ask_once(
    struct kube_client *c, const struct remote_http_request *rq, json_t **ret, struct err *e)
{
    struct remote_http_answer answer = REMOTE_HTTP_ANSWER_NULL;
    json_t *json = NULL;
    int r = authorize(c, e);

    if (r != 0)
        return r;
    r = remote_http_call(c->http, rq, &answer, e);
    if (r == REMOTE_HTTP_E_UNSENT || r == REMOTE_HTTP_E_LOST)
        return r == REMOTE_HTTP_E_UNSENT ? KUBE_E_AWAY : KUBE_E_LOST;
    if (r != 0)
        return r < 0 ? r : -EIO;
    if (answer.status == 401)
        c->token_at = 0;
    if (answer.status < 200 || answer.status > 299)
        r = refuse(answer.status, &answer, e);
    else if (!(json = json_loadb(answer.body, answer.len, 0, NULL)))
        r = err_set(e, KUBE_E_LOST, "the API server's answer is not JSON");
    remote_http_answer_deinit(&answer);
    if (r == 0)
        *ret = json;
    return r;
}

/* Repeat a request until it is answered. One that was answered with 5xx may have been done. What is
 * said to a repeated request says nothing of the one before: an API server that has just begun
 * forbids what it will allow, and does not have resources which it will have. */
static int ask(struct kube_client *c, const struct remote_http_request *rq, nsec_t until,
    json_t **ret, struct err *e)
{
    const struct rng rng = rng_kernel();
    struct remote_http_backoff backoff = {0};
    nsec_t began_at = clock_now();
    bool is_sent = false;

    for (;;) {
        int r = ask_once(c, rq, ret, e);
        nsec_t now = clock_now();
        bool may_change = r == KUBE_E_AWAY || r == KUBE_E_LOST ||
                          (r == -ENOENT && now - began_at < STARTING_NS && now < until);

        is_sent |= r == KUBE_E_LOST;
        if (!may_change)
            return is_sent && r < 0 ? KUBE_E_LOST : r;
        if (now >= until)
            return is_sent ? KUBE_E_LOST : r;
        remote_http_wait(c->http, -1, remote_http_backoff_next(&backoff, &rng));
    }
}

int kube_client_ask(
    struct kube_client *c, const struct kube_request *rq, nsec_t until, json_t **ret, struct err *e)
{
    struct remote_http_request http = {.method = rq->method,
        .path = rq->path,
        .content_type = rq->content_type,
        .accept = rq->accept,
        .timeout_ms = TIMEOUT_MS,
        .max = ANSWER_MAX};
    char *body = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;
    json_t *answer = NULL;
    int r;

    if (rq->body && !body)
        return err_set(e, -ENOMEM, "no memory for a request");
    http.body = body;
    http.body_len = body ? strlen(body) : 0;
    r = ask(c, &http, until, &answer, e);
    free(body);
    if (r == 0 && ret)
        *ret = answer;
    else
        json_decref(answer);
    return r;
}

int kube_client_open(struct kube_client *c, const char *path, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e)
{
    struct remote_http_request rq = {.method = "GET", .path = path, .max = ANSWER_MAX};
    int r = authorize(c, e);

    return r == 0 ? remote_http_open(c->http, &rq, fn, ctx, ret, e) : r;
}

/* ---- Records --------------------------------------------------------------------------------- */

static const char *version_of(const json_t *json)
{
    return json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));
}

static const char *path_of(
    const struct kube_client *c, char buf[static PATH_MAX_LEN], const char *name)
{
    (void)snprintf(buf, PATH_MAX_LEN, "/apis/" KUBE_API "/namespaces/%s/records%s%s",
        c->config.namespace, name[0] ? "/" : "", name);
    return buf;
}

int kube_client_read(
    struct kube_client *c, const char *name, nsec_t until, struct kube_record *ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    struct kube_request rq = {.method = "GET", .path = path_of(c, path, name)};
    json_auto_t *json = NULL;
    const char *data;
    int r = kube_client_ask(c, &rq, until, &json, e);

    if (r != 0)
        return r;
    data = json_string_value(json_object_get(json, "data"));
    if (!data || !version_of(json))
        return err_set(e, -EINVAL, "the record \"%s\" has no data", name);
    *ret = (struct kube_record){.data = strdup(data), .version = strdup(version_of(json))};
    if (ret->data && ret->version)
        return 0;
    kube_record_deinit(ret);
    return err_set(e, -ENOMEM, "no memory for a record");
}

int kube_client_write(struct kube_client *c, const char *name, const char *data,
    const char *version, nsec_t until, struct err *e)
{
    char path[PATH_MAX_LEN];
    json_auto_t *json = json_pack("{s:s, s:s, s:{s:s, s:s*}, s:s}", "apiVersion", KUBE_API, "kind",
        "Record", "metadata", "name", name, "resourceVersion", version, "data", data);
    struct kube_request rq = {.method = version ? "PUT" : "POST",
        .path = path_of(c, path, version ? name : ""),
        .body = json};

    if (!json)
        return err_set(e, -ENOMEM, "no memory for a record");
    return kube_client_ask(c, &rq, until, NULL, e);
}

int kube_client_remove(struct kube_client *c, const char *name, nsec_t until, struct err *e)
{
    char path[PATH_MAX_LEN];
    struct kube_request rq = {.method = "DELETE", .path = path_of(c, path, name)};
    int r = kube_client_ask(c, &rq, until, NULL, e);

    return r == KUBE_E_ABSENT ? 0 : r;
}

int kube_client_version(struct kube_client *c, nsec_t until, char **ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    char with_limit[PATH_MAX_LEN + 16];
    struct kube_request rq = {.method = "GET", .path = with_limit};
    json_auto_t *json = NULL;
    int r;

    (void)snprintf(with_limit, sizeof(with_limit), "%s?limit=1", path_of(c, path, ""));
    r = kube_client_ask(c, &rq, until, &json, e);
    if (r != 0)
        return r;
    *ret = version_of(json) ? strdup(version_of(json)) : NULL;
    return *ret ? 0 : err_set(e, -EIO, "the API server's list has no resourceVersion");
}

int kube_client_names(struct kube_client *c, const char *from, nsec_t until, json_t **ret,
    char **ret_next, struct err *e)
{
    char path[PATH_MAX_LEN];
    char query[4 * PATH_MAX_LEN];
    struct kube_request rq = {.method = "GET",
        .path = query,
        .accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"};
    json_t *names = json_array();
    json_auto_t *json = NULL;
    const char *next;
    json_t *one;
    size_t i;
    int r;

    (void)snprintf(query, sizeof(query), "%s?limit=500%s%.1000s", path_of(c, path, ""),
        from ? "&continue=" : "", from ? from : "");
    r = names ? kube_client_ask(c, &rq, until, &json, e)
              : err_set(e, -ENOMEM, "no memory for names");
    if (r != 0) {
        json_decref(names);
        return r;
    }
    json_array_foreach(json_object_get(json, "items"), i, one)
        (void)json_array_append(names, json_object_get(json_object_get(one, "metadata"), "name"));
    next = json_string_value(json_object_get(json_object_get(json, "metadata"), "continue"));
    *ret_next = next && next[0] ? strdup(next) : NULL;
    *ret = names;
    return 0;
}

int kube_client_watch(struct kube_client *c, const char *version, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e)
{
    char path[PATH_MAX_LEN];
    char query[PATH_MAX_LEN + 128];

    (void)snprintf(query, sizeof(query),
        "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%.40s", path_of(c, path, ""),
        version);
    return kube_client_open(c, query, fn, ctx, ret, e);
}
