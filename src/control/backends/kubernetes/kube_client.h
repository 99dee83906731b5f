/*
 * kube_client.h - asks a Kubernetes API server for the Records of a namespace, and for anything
 * else, upon remote_http.h.
 *
 * A Record (records.weft.dev) holds one text, and is made, read and removed by its name. It is
 * replaced only where its resourceVersion is given, which is passed on as it came and never looked
 * into.
 *
 * While the server does not answer, a request is tried again until its time is over. So all
 * requests here may be done twice: one that makes a Record may find that it has made it already. If
 * the answer to one of them was lost, a refusal of a later one is KUBE_E_LOST, too.
 *
 * Threads: one at a time.
 */
#pragma once

#include <jansson.h>

#include "backends/remote/remote_http.h"
#include "base/clock.h"
#include "mesh/object/object.h"

struct err;

/* ---- where the Kubernetes API is, and who we are there --------------------------------------- */

/*
 * From the URL of the store, "kubernetes:" and perhaps "?namespace=NAME&kubeconfig=FILE". Without a
 * file it is that of $KUBECONFIG; in a pod, without either, the pod's ServiceAccount.
 *
 * Of a kubeconfig the current context is taken: its cluster's server and authority; its user's
 * token, token file or client certificate. Programs that make tokens ("exec") are not started.
 */

/** Longest name of a namespace. */
#define KUBE_NAMESPACE_MAX 63

struct kube_config {
    char *file;       /* owns: the kubeconfig; NULL: it is the pod's account */
    char *server;     /* owns: "https://HOST:PORT" */
    char *ca_file;    /* owns; NULL: the system's authorities */
    char *cert_file;  /* owns; NULL: no certificate of ours */
    char *key_file;   /* owns; likewise */
    char *token;      /* owns; NULL: none, or in @token_file */
    char *token_file; /* owns; read anew from time to time; NULL: none */
    char namespace[KUBE_NAMESPACE_MAX + 1];
    int fds[3]; /* owns; the files that a kubeconfig held inline; -1: none */
};

#define KUBE_CONFIG_NULL                                                                           \
    {                                                                                              \
        .fds = { -1, -1, -1 }                                                                      \
    }

/**
 * kube_config_check() - is @where, which follows "kubernetes:", well-formed?
 *
 * No file is read. Return: 0, or -EINVAL with words.
 */
int kube_config_check(const char *where, struct err *e);

/**
 * kube_config_read() - read the files that @where names
 * @ret:	for kube_config_deinit(), also after a failure
 *
 * Return: 0; -EINVAL with words that name the file and what is wrong in it; negative errno with
 * words.
 */
int kube_config_read(struct kube_config *ret, const char *where, struct err *e);

/** kube_config_deinit() - wipes the token. */
void kube_config_deinit(struct kube_config *c);

/* ---- Records --------------------------------------------------------------------------------- */

/** Group and version of our resources. */
#define KUBE_API "weft.dev/v1alpha1"

/** Longest name of a Record, with the zero. */
#define KUBE_RECORD_NAME_MAX 128

/** Most bytes of a Record's text as JSON has it; etcd takes 1.5 MiB with all that is around it. */
#define KUBE_RECORD_MAX (1u << 20)

/* Outcomes. */
#define KUBE_E_AWAY   1 /* no server took the request: nothing was done */
#define KUBE_E_LOST   2 /* it was sent, and no answer came to it: perhaps it was done */
#define KUBE_E_ABSENT 3 /* there is no such Record */
#define KUBE_E_EXISTS 4 /* there is one of that name, or it has another resourceVersion */

struct kube_client {
    struct kube_config config;
    struct remote_http *http; /* owns */
    nsec_t token_at;          /* when the token was read last; 0: never */
};

#define KUBE_CLIENT_NULL {.config = KUBE_CONFIG_NULL}

/** A Record, as it was read. */
struct kube_record {
    char *data;    /* owns */
    char *version; /* owns: its resourceVersion, opaque */
};

#define KUBE_RECORD_NULL {0}

/** kube_record_deinit() - idempotent. */
void kube_record_deinit(struct kube_record *r);

/**
 * kube_client_init() - by what follows "kubernetes:"; nothing is connected yet
 * @ret:	for kube_client_deinit(), also after a failure
 *
 * Return: 0; negative errno with words.
 */
int kube_client_init(struct kube_client *ret, const char *where, struct err *e);

/** kube_client_deinit() - streams must be closed before. */
void kube_client_deinit(struct kube_client *c);

/*
 * Return, of all that ask: 0; KUBE_E_...; or negative errno; always with words. -EACCES: the server
 * forbids it; -ENOENT: it does not have our resources.
 *
 * @until: monotonic time after which a request that was not answered is not tried again.
 */

/** kube_client_read() - the Record called @name; @ret: for kube_record_deinit(). */
int kube_client_read(
    struct kube_client *c, const char *name, nsec_t until, struct kube_record *ret, struct err *e);

/** kube_client_write() - @data in place of what was read as @version; NULL: a new Record, and
 * KUBE_E_EXISTS when there is one. */
int kube_client_write(struct kube_client *c, const char *name, const char *data,
    const char *version, nsec_t until, struct err *e);

/** kube_client_remove() - fine when it is absent. */
int kube_client_remove(struct kube_client *c, const char *name, nsec_t until, struct err *e);

/**
 * kube_client_version() - the resourceVersion of all Records, from which a watch may begin
 * @ret:	free() it
 */
int kube_client_version(struct kube_client *c, nsec_t until, char **ret, struct err *e);

/**
 * kube_client_names() - a page of the names of Records, without what they hold
 * @from:	NULL: the first page; else what the page before has said
 * @ret:	gives an array of texts
 * @ret_next:	gives @from of the next page, NULL: this is the last one; free() it
 */
int kube_client_names(struct kube_client *c, const char *from, nsec_t until, json_t **ret,
    char **ret_next, struct err *e);

/** kube_client_watch() - a stream of the changes of Records since @version; as remote_http_open().
 */
int kube_client_watch(struct kube_client *c, const char *version, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e);

/* ---- anything else --------------------------------------------------------------------------- */

/** A request. Everything is borrowed. */
struct kube_request {
    const char *method;       /* "GET", "PATCH", ... */
    const char *path;         /* with the query; parts that are not plain text are escaped */
    const char *content_type; /* of the body; NULL: JSON */
    const char *accept;       /* what the answer may be; NULL: anything */
    const json_t *body;       /* NULL: none */
};

/**
 * kube_client_ask() - ask, again while nobody answers
 * @ret:	gives the answer, set after a success; NULL: it is not wanted
 *
 * KUBE_E_EXISTS is any answer of status 409, with the server's words.
 */
int kube_client_ask(struct kube_client *c, const struct kube_request *rq, nsec_t until,
    json_t **ret, struct err *e);

/** kube_client_open() - a stream of lines, of a GET of @path; as remote_http_open(). */
int kube_client_open(struct kube_client *c, const char *path, remote_http_line_fn fn, void *ctx,
    struct remote_http_stream **ret, struct err *e);

/* ---- what the hub says of a resource's spec in annotations, for all who read them ------------ */

/*
 * The hub writes them in the same request as the spec that they are about. A person may edit the
 * spec at any time after that; the annotations then still say what they said, and so they tell a
 * spec that the hub has from one that it has not judged yet, or has refused.
 *
 * Pure.
 */

/** Hash of the spec that the hub's own object has; absent while it has no such object. */
#define KUBE_SPEC_ACCEPTED "weft.dev/accepted"

/** Revision of the hub's object; KUBE_SPEC_NO_REVISION: it has none. */
#define KUBE_SPEC_REVISION    "weft.dev/revision"
#define KUBE_SPEC_NO_REVISION "none"

/** Room for a hash. */
#define KUBE_SPEC_HASH_MAX 17

/**
 * kube_spec_hash() - of a spec in the normal form that its kind's decoder and encoder make
 * @network, @name:	of the object
 *
 * So a field that is absent equals one that has its default. A spec that is none of this kind, as
 * this version knows it, is hashed as it stands.
 */
void kube_spec_hash(char ret[static KUBE_SPEC_HASH_MAX], const struct object_kind *kind,
    const char *network, const char *name, const json_t *spec);

/** kube_spec_hash_json() - of any JSON, whatever the order of its fields. */
void kube_spec_hash_json(char ret[static KUBE_SPEC_HASH_MAX], const json_t *json);
