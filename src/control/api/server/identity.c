/* identity.c - see identity.h. */
#include "identity.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "os/statefile.h"

#define PEM_MAX (64u << 10)

static void pkey_freep(EVP_PKEY **p)
{
    EVP_PKEY_free(*p);
}

static void x509_freep(X509 **p)
{
    X509_free(*p);
}

static void bio_freep(BIO **p)
{
    BIO_free(*p);
}

static void wipe_freep(char **p)
{
    if (*p)
        secret_wipe(*p, strlen(*p));
    free(*p);
}

/* What was written into a memory BIO, as text; the BIO's own copy is wiped. */
static char *take_text(BIO *bio)
{
    char *p;
    long len = BIO_get_mem_data(bio, &p);
    char *text = len > 0 ? strndup(p, (size_t)len) : NULL;

    if (len > 0)
        secret_wipe(p, (size_t)len);
    return text;
}

static char *key_to_pem(EVP_PKEY *key)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        return NULL;
    return take_text(bio);
}

static EVP_PKEY *key_from_pem(const char *pem)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new_mem_buf(pem, -1);

    return bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
}

static X509 *certificate_from_pem(const char *pem)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new_mem_buf(pem, -1);

    return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

static bool add_san(X509 *cert)
{
    X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:hub");
    bool ok = san && X509_add_ext(cert, san, -1);

    X509_EXTENSION_free(san);
    return ok;
}

/*
 * Its dates are fixed, so that it is valid whatever the hub's clock says: a machine may start
 * without a clock, and clocks jump.
 */
static bool fill_certificate(X509 *cert, EVP_PKEY *key)
{
    X509_NAME *name = X509_get_subject_name(cert);

    return X509_set_version(cert, X509_VERSION_3) &&
           ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
           ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), "20200101000000Z") &&
           ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), "20991231235959Z") &&
           X509_NAME_add_entry_by_txt(
               name, "CN", MBSTRING_ASC, (const unsigned char *)"weft hub", -1, -1, 0) &&
           X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key) && add_san(cert) &&
           X509_sign(cert, key, EVP_sha256());
}

static char *make_certificate(EVP_PKEY *key)
{
    _cleanup_(x509_freep) X509 *cert = X509_new();
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!cert || !bio || !fill_certificate(cert, key) || !PEM_write_bio_X509(bio, cert))
        return NULL;
    return take_text(bio);
}

static int open_key(char **ret_pem, EVP_PKEY **ret, const char *path, struct err *e)
{
    _cleanup_(pkey_freep) EVP_PKEY *key = NULL;
    _cleanup_(wipe_freep) char *pem = NULL;
    int r = statefile_read(path, PEM_MAX, &pem, NULL, e);

    if (r < 0)
        return r;
    if (r == STATEFILE_E_ABSENT) {
        key = EVP_EC_gen("P-256");
        pem = key ? key_to_pem(key) : NULL;
        if (!pem)
            return err_set(e, -ENOMEM, "a TLS key could not be made");
        r = statefile_replace(path, pem, strlen(pem), 0600, e);
        if (r < 0)
            return r;
    } else {
        key = key_from_pem(pem);
        if (!key)
            return err_set(e, -EUCLEAN,
                "\"%s\" is not a private key in PEM; it is left as it is: put a copy in its place",
                path);
    }
    *ret_pem = TAKE_PTR(pem);
    *ret = TAKE_PTR(key);
    return 0;
}

static int open_certificate(char **ret_pem, EVP_PKEY *key, const char *path, struct err *e)
{
    _cleanup_(x509_freep) X509 *cert = NULL;
    _cleanup_(freep) char *pem = NULL;
    int r = statefile_read(path, PEM_MAX, &pem, NULL, e);

    if (r < 0)
        return r;
    if (r == STATEFILE_E_ABSENT) {
        pem = make_certificate(key);
        if (!pem)
            return err_set(e, -ENOMEM, "a TLS certificate could not be made");
        r = statefile_replace(path, pem, strlen(pem), 0644, e);
        if (r < 0)
            return r;
    } else {
        cert = certificate_from_pem(pem);
        if (!cert || X509_check_private_key(cert, key) != 1)
            return err_set(e, -EUCLEAN,
                "\"%s\" is not a certificate of the hub's key; it is left as it is: remove it to "
                "have it made again",
                path);
    }
    *ret_pem = TAKE_PTR(pem);
    return 0;
}

static int make_pin(struct tls_pin *ret, EVP_PKEY *key, struct err *e)
{
    unsigned char *spki = NULL;
    int len = i2d_PUBKEY(key, &spki);

    if (len <= 0)
        return err_set(e, -ENOMEM, "the TLS key could not be encoded");
    SHA256(spki, (size_t)len, ret->b);
    OPENSSL_free(spki);
    return 0;
}

int identity_open(
    struct identity *ret, const char *key_path, const char *certificate_path, struct err *e)
{
    _cleanup_(identity_close) struct identity id = IDENTITY_NULL;
    _cleanup_(pkey_freep) EVP_PKEY *key = NULL;
    int r = open_key(&id.key_pem, &key, key_path, e);

    if (r == 0)
        r = open_certificate(&id.certificate_pem, key, certificate_path, e);
    if (r == 0)
        r = make_pin(&id.pin, key, e);
    if (r != 0)
        return r;
    *ret = id;
    id = (struct identity)IDENTITY_NULL;
    return 0;
}

void identity_close(struct identity *id)
{
    wipe_freep(&id->key_pem);
    free(id->certificate_pem);
    *id = (struct identity)IDENTITY_NULL;
}
