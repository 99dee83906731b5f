/* etcd_url.c - see etcd_url.h. */
#include "etcd_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"

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
    for (char *server = servers; r == 0 && server;) {
        char *next = strchr(server, ',');

        if (next)
            *next++ = '\0';
        r = add_server(ret, server, is_tls, e);
        server = next;
    }
    while (r == 0 && options) {
        char *next = strchr(options, '&');

        if (next)
            *next++ = '\0';
        r = set_option(ret, options, e);
        options = next;
    }
    if (r == 0 && ret->prefix[0] == '\0')
        r = set_prefix(ret, "/weft/", e);
    return r == 0 ? check_together(ret, is_tls, e) : r;
}

static int read_password(const char *path, char *ret, size_t room, struct err *e)
{
    FILE *file = fopen(path, "re");
    bool has_line;

    if (!file)
        return err_set(e, -EINVAL, "the password file \"%.150s\" of the store cannot be read: %s",
            path, strerror(errno));
    has_line = fgets(ret, (int)room, file) != NULL;
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
