/*
 * identity.h - the hub's TLS key and certificate.
 *
 * Clients pin the key, so the certificate is only there because TLS needs one:
 * self-signed, and valid for eighty years. It can be made again from the key at
 * any time. The key cannot be replaced, since every token pins it.
 */
#pragma once

#include "crypto/tls_pin.h"

struct err;

struct identity {
    char *key_pem;         /* owns; secret */
    char *certificate_pem; /* owns */
    struct tls_pin pin;    /* SHA-256 of the key's SubjectPublicKeyInfo */
};

#define IDENTITY_NULL                                                                              \
    {                                                                                              \
        0                                                                                          \
    }

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
