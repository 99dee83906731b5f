/*
 * etcd_codec.h - requests to etcd's gateway and its answers: JSON of the v3 API.
 *
 * The gateway is the JSON form of the gRPC API (etcd, api/etcdserverpb/rpc.proto): bytes are
 * base64, 64-bit numbers are texts, and what is zero or empty is left out. Everything here is pure;
 * what comes from outside is checked here and nowhere else.
 *
 * What the store writes below its prefix:
 *
 *     about             which layout this is; the revision at which it was made is the store's 0
 *     d/SESSION.SEQ/NNNN  operations of a large commit, in parts (etcd_commit.c)
 *     i                 the large commit that is being made; absent: none is
 *     k/KEY             a key of the store, and its value
 *     mark/SESSION      written, and deleted at once, to find the end of what was deleted before
 *     s/SESSION         how far a hub's session has come: the number of its last commit
 *
 * A value is stored as it is. Only where a value has a lease, is not for watches, or was written by
 * a large commit, or begins with the byte 1 itself, a line stands in front of it: the byte 1, then
 * "tSECONDS", "u", "rREVISION" as they apply, then a newline.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/remote/remote_http.h"
#include "base/text.h"
#include "store/store.h"

/** Longest prefix, bytes, with the '/' at its end. */
#define ETCD_PREFIX_MAX 128

/** Longest name below the prefix: "k/", a key of the store, and a byte where a range ends. */
#define ETCD_NAME_MAX (3 + STORE_KEY_MAX)

/** A key and its value. */
struct etcd_kv {
    char *name;      /* owns: the key below the prefix; zero-terminated */
    char *value;     /* owns: as stored; zero-terminated; NULL in a deletion */
    size_t len;      /* of @value, bytes */
    uint64_t mod;    /* etcd's revision that wrote (or deleted) it */
    uint64_t create; /* etcd's revision that made it */
};

/** What a range holds. */
struct etcd_kvs {
    struct etcd_kv *items; /* owns */
    size_t n;
    bool has_more; /* there are keys behind the last one */
};

#define ETCD_KVS_NULL {0}

/** etcd_kvs_deinit() - idempotent. */
void etcd_kvs_deinit(struct etcd_kvs *kvs);

/** etcd_kvs_bytes() - of all values. */
size_t etcd_kvs_bytes(const struct etcd_kvs *kvs);

/** etcd_kvs_find() - by name; NULL: it is not among them. */
const struct etcd_kv *etcd_kvs_find(const struct etcd_kvs *kvs, const char *name);

/* ---- requests ------------------------------------------------------------------------------- */

/** Each adds one JSON object to @s, behind a comma if it follows another; @name lies below @prefix.
 */

/** etcd_add_compare() - @name is at etcd's revision @mod; 0: it is absent. */
void etcd_add_compare(struct str *s, const char *prefix, const char *name, uint64_t mod);

/** etcd_add_empty() - nothing is below @prefix. */
void etcd_add_empty(struct str *s, const char *prefix);

/** etcd_add_exists() - @name is there, at whatever revision. */
void etcd_add_exists(struct str *s, const char *prefix, const char *name);

/** etcd_add_put() - operation: write @len bytes; @lease: of etcd's, 0: none. */
void etcd_add_put(struct str *s, const char *prefix, const char *name, const char *value,
    size_t len, uint64_t lease);

/** etcd_add_delete() - operation: remove @name. */
void etcd_add_delete(struct str *s, const char *prefix, const char *name);

/** etcd_add_range() - operation: read @name. */
void etcd_add_range(struct str *s, const char *prefix, const char *name);

/** A range of names. */
struct etcd_span {
    const char *from; /* the first name, included */
    const char *end;  /* the first behind it */
    size_t limit;     /* most keys; 0: all */
    bool is_down;     /* in descending order */
    bool is_bare;     /* names only, without the values */
    uint64_t at;      /* as of this revision of etcd's; 0: now */
};

/** etcd_add_span() - the fields of a range request, without the braces. */
void etcd_add_span(struct str *s, const char *prefix, const struct etcd_span *span);

/** etcd_add_watch() - the body of a watch of [@from, @end) from etcd's revision @start on.
 * @deletions_only: what is written is left out. */
void etcd_add_watch(struct str *s, const char *prefix, const char *from, const char *end,
    uint64_t start, bool deletions_only);

/* ---- answers -------------------------------------------------------------------------------- */

/** etcd_answer_revision() - etcd's revision in the header. 0, or -EBADMSG with words. */
int etcd_answer_revision(const json_t *answer, uint64_t *ret, struct err *e);

/** etcd_answer_succeeded() - did the comparisons of a transaction hold? */
bool etcd_answer_succeeded(const json_t *answer);

/**
 * etcd_answer_kvs() - the keys of a range's answer
 * @ret:	set after a success; deinit after use
 *
 * Return: 0; -EBADMSG with words for what is no such answer, or lies outside @prefix; -ENOMEM.
 */
int etcd_answer_kvs(const json_t *answer, const char *prefix, struct etcd_kvs *ret, struct err *e);

/**
 * etcd_answer_nth() - the keys that the range which is operation @i of a transaction has read
 *
 * Return: as etcd_answer_kvs().
 */
int etcd_answer_nth(
    const json_t *answer, size_t i, const char *prefix, struct etcd_kvs *ret, struct err *e);

/** etcd_answer_number() - the number @field, a text in JSON; 0 when it is left out or is none. */
uint64_t etcd_answer_number(const json_t *answer, const char *field);

/** A line of a watch. */
struct etcd_watch_line {
    struct etcd_kvs events; /* changes, in order; a deletion has no value */
    bool is_fragment;       /* more of the same revisions follow in the next line */
    bool is_over;           /* etcd ended it */
    uint64_t compacted; /* is_over: the revision up to which nothing is kept; 0: another reason */
};

/**
 * etcd_watch_line_decode() - one line
 * @ret:	set after a success; deinit its events after use
 * @e:		the words too when the line is over
 *
 * Return: 0; -EBADMSG with words; -ENOMEM.
 */
int etcd_watch_line_decode(
    const char *line, size_t len, const char *prefix, struct etcd_watch_line *ret, struct err *e);

/** What a refusal says. */
struct etcd_refusal {
    unsigned code;  /* of gRPC; 0: the answer names none */
    char text[200]; /* etcd's words, cut short */
};

/** etcd_refusal_decode() - of any body; another text gives code 0 and the beginning of the text. */
void etcd_refusal_decode(const char *body, size_t len, struct etcd_refusal *ret);

/* ---- values --------------------------------------------------------------------------------- */

/** What is stored with a key. */
struct etcd_value {
    const char *text;     /* borrowed; the value itself */
    size_t len;           /* of it */
    uint32_t ttl_seconds; /* of its lease; 0: none */
    bool is_unwatched;    /* watches are not told of it */
    uint64_t revision;    /* the store's, of the large commit that wrote it; 0: none did */
};

/** etcd_value_encode() - gives the bytes as stored, of which there are @ret_len; NULL: no memory.
 */
char *etcd_value_encode(const struct etcd_value *v, size_t *ret_len);

/**
 * etcd_value_decode() - the parts of @len stored bytes
 *
 * What does not begin with a line that etcd_value_encode() writes is the value itself.
 */
void etcd_value_decode(const char *raw, size_t len, struct etcd_value *ret);

/* ---- parts of large commits ----------------------------------------------------------------- */

/**
 * etcd_part_next() - take the next operation
 * @p:		where it begins; its words end with a zero afterwards; moves behind it
 * @end:	of the part, where a zero stands
 * @ret:	set after a success; its texts lie in the part; the value has no zero behind it
 *
 * Return: false: there is no operation there.
 */
bool etcd_part_next(char **p, const char *end, struct store_op *ret);

/* ---- what "--store etcd://..." says: servers, prefix, TLS files and the user ----------------- */

/*
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

/** Most bytes of the URL behind its scheme. */
#define ETCD_URL_MAX 2048

/** Most bytes of a user's name or password. */
#define ETCD_USER_MAX 128

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
