/*
 * etcd_url.h - what "--store etcd://..." says: servers, prefix, TLS files and the user.
 *
 *     etcd://HOST[:PORT][,HOST[:PORT]...][?OPTION=VALUE[&OPTION=VALUE...]]
 *     etcds://...          the same over TLS
 *
 *     prefix=/weft/        what all keys begin with; hubs with the same one share a store
 *     cacert=FILE          etcds: the authorities to trust, instead of the system's
 *     cert=FILE key=FILE   etcds: the certificate to show, and its key
 *     user=NAME            authenticate as this user
 *     password-file=FILE   with its password, the file's first line
 *
 * Without password-file the password is WEFT_ETCD_PASSWORD in the environment. It is never in the
 * URL, which ps(1) shows.
 */
#pragma once

#include <stddef.h>

#include "backends/etcd/etcd_codec.h"
#include "backends/remote/remote_http.h"

struct err;

/** Most bytes of the URL behind its scheme. */
#define ETCD_URL_MAX 2048

/** Most bytes of a user's name or password. */
#define ETCD_USER_MAX 128

/** The port of a server that names none. */
#define ETCD_PORT_DEFAULT "2379"

/** The environment's variable for the password. */
#define ETCD_PASSWORD_VARIABLE "WEFT_ETCD_PASSWORD"

/** What a URL says. */
struct etcd_url {
    char text[ETCD_URL_MAX + 1]; /* the URL in pieces; the pointers below lead into it */
    char servers[REMOTE_HTTP_SERVERS_MAX][REMOTE_HTTP_SERVER_MAX + 1]; /* "http://HOST:PORT" */
    size_t n_servers;
    char prefix[ETCD_PREFIX_MAX + 1]; /* with '/' at its end */
    const char *ca_file;              /* NULL: the system's authorities */
    const char *cert_file;            /* NULL: none */
    const char *key_file;             /* NULL: none */
    const char *user;                 /* NULL: none */
    const char *password_file;        /* NULL: from the environment */
};

/**
 * etcd_url_parse() - check and take apart
 * @where:	what follows "etcd:" or "etcds:"
 * @is_tls:	it was "etcds:"
 *
 * Return: 0; or -EINVAL with words that name what is wrong and what is allowed.
 */
int etcd_url_parse(struct etcd_url *ret, const char *where, bool is_tls, struct err *e);

/**
 * etcd_url_password() - the user's password, from its file or the environment
 * @ret:	room for ETCD_USER_MAX bytes and a zero; wipe after use
 *
 * Return: 0; or -EINVAL with words.
 */
int etcd_url_password(
    const struct etcd_url *url, char ret[static ETCD_USER_MAX + 1], struct err *e);
