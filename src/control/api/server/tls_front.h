/*
 * tls_front.h - the TLS of the public API, in a thread of its own.
 *
 * Theory of operation. The listener hands in an accepted connection and gets one
 * end of a socket pair, which carries the plain bytes of that connection. So the
 * HTTP server knows no TLS, a handshake takes none of the loop's time, and an
 * upgraded connection (server.h) costs the loop only its bytes. Between the two
 * sides there is room for one TLS record each way: when one side does not read,
 * the other has to wait.
 *
 * When either side ends, the other ends as well, once it has what was on its way.
 *
 * Threads: one of its own, which owns every link; tls_front_wrap() hands over
 * under a lock.
 */
#pragma once

#include "crypto/hash.h"

struct err;
struct tls_front;

/* ---- the hub's TLS key and certificate ------------------------------------------------------- */

/*
 * Clients pin the key, so the certificate is only there because TLS needs one:
 * self-signed, and valid for eighty years. It can be made again from the key at
 * any time. The key cannot be replaced, since every token pins it.
 */

struct identity {
    char *key_pem;         /* owns; secret */
    char *certificate_pem; /* owns */
    struct tls_pin pin;    /* SHA-256 of the key's SubjectPublicKeyInfo */
};

#define IDENTITY_NULL {0}

/**
 * identity_open() - read the key and certificate, or make what is missing
 * @key_path:	0600; made (EC P-256) when it does not exist
 * @certificate_path:	made when it does not exist
 *
 * A file that does not parse, or a certificate of another key, is named and left as it is.
 *
 * Return: 0 or negative errno with words.
 */
int identity_open(
    struct identity *ret, const char *key_path, const char *certificate_path, struct err *e);

/** identity_close() - wipe and release. Idempotent. */
void identity_close(struct identity *id);

/** tls_front_new() - @id: borrowed for the call. 0 or negative errno with words. */
int tls_front_new(struct tls_front **ret, const struct identity *id, struct err *e);

/**
 * tls_front_free() - close everything and end the thread
 *
 * Bytes that the plain ends have not sent on yet are lost: close those first.
 */
struct tls_front *tls_front_free(struct tls_front *f);

/**
 * tls_front_wrap() - speak TLS, as a server, with whoever is behind @net_fd
 * @net_fd:	a connected TCP socket that does not block; taken, also on failure
 * @ret_fd:	gives the plain end, which does not block either
 *
 * The caller bounds how long a handshake may take: closing the plain end ends it.
 *
 * Return: 0 or negative errno.
 */
int tls_front_wrap(struct tls_front *f, int net_fd, int *ret_fd);
