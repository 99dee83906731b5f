/* kube_config.c - see kube_config.h. */
#include "kube_config.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "os/fd_cleanup.h"
#include "os/statefile.h"

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
struct wish {
    char *text; /* owns */
    const char *namespace;
    const char *kubeconfig;
};

static int wish_parse(struct wish *ret, const char *where, struct err *e)
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
    struct wish wish = {.text = NULL};
    int r = wish_parse(&wish, where, e);

    free(wish.text);
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
    struct wish wish = {.text = NULL};
    int r;

    *ret = (struct kube_config)KUBE_CONFIG_NULL;
    r = wish_parse(&wish, where, e);
    if (r == 0 && wish.namespace)
        (void)snprintf(ret->namespace, sizeof(ret->namespace), "%s", wish.namespace);
    if (!wish.kubeconfig && r == 0)
        wish.kubeconfig = getenv("KUBECONFIG");
    if (r == 0 && wish.kubeconfig)
        r = set_text(&ret->file, wish.kubeconfig, e);
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
    free(wish.text);
    return r;
}
