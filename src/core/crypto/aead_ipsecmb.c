/*
 * aead_ipsecmb.c - intel-ipsec-mb's AES-GCM, loaded at run time where it is installed.
 *
 * A fifth faster than BoringSSL's on full packets and 1.6 times on small ones:
 * one call a packet, and nothing looked up or allocated in it. Its
 * ChaCha20-Poly1305 is not used: packet by packet it gains nothing on full
 * packets and is slower on small ones, and its queue of jobs, which gains with
 * AVX-512, is another interface than one packet at a time.
 *
 * The library exports one set of functions for each generation of CPUs; the
 * choice is made here, once, and each set is what its name says: no manager, no
 * state of its own. Sizes and names are those of the interface version in the
 * library's file name.
 *
 * The loaded functions are process-wide, written once under pthread_once().
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"
#include "crypto/aead_internal.h"

#define LIBRARY "libIPSec_MB.so.1"

/* struct gcm_key_data and struct gcm_context_data of the library: 1008 and 88 bytes. */
#define KEY_DATA_SIZE     1024
#define CONTEXT_DATA_SIZE 128

/** A context: the expanded key, and room for one message at a time. */
struct gcm {
    _Alignas(64) uint8_t key_data[KEY_DATA_SIZE];
    _Alignas(64) uint8_t context_data[CONTEXT_DATA_SIZE];
};

typedef void (*ipsecmb_pre_fn)(const void *key, void *key_data);
typedef void (*ipsecmb_crypt_fn)(const void *key_data, void *context_data, uint8_t *out,
    const uint8_t *in, uint64_t len, const uint8_t *iv, const uint8_t *ad, uint64_t ad_len,
    uint8_t *tag, uint64_t tag_len);

static struct {
    pthread_once_t once;
    bool is_loaded;           /* all of these were found */
    ipsecmb_pre_fn pre;       /* aes_gcm_pre_256_...: expands a key */
    ipsecmb_crypt_fn encrypt; /* aes_gcm_enc_256_... */
    ipsecmb_crypt_fn decrypt; /* aes_gcm_dec_256_...: the tag is computed, not compared */
} ipsecmb = {.once = PTHREAD_ONCE_INIT};

#if defined(__x86_64__)
static bool find(void *library, const char *what, const char *generation, void *ret_fn)
{
    char name[64];
    void *p;

    (void)snprintf(name, sizeof(name), "aes_gcm_%s_256_%s", what, generation);
    p = dlsym(library, name);
    memcpy(ret_fn, &p, sizeof(p));
    return p != NULL;
}

static bool find_all(void *library, const char *generation)
{
    return find(library, "pre", generation, &ipsecmb.pre) &&
           find(library, "enc", generation, &ipsecmb.encrypt) &&
           find(library, "dec", generation, &ipsecmb.decrypt);
}

/* clang 14 has no word for these two in __builtin_cpu_supports(). */
static bool has_vaes(void)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;

    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & bit_VAES) &&
           (ecx & bit_VPCLMULQDQ);
}

/* Takes the newest generation that this CPU has everything of. */
static bool find_best(void *library)
{
    bool aes = __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") &&
               __builtin_cpu_supports("avx2");
    bool avx512 = aes && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool vaes = avx512 && has_vaes();

    return (vaes && find_all(library, "vaes_avx512")) || (avx512 && find_all(library, "avx512")) ||
           (aes && find_all(library, "avx_gen4"));
}
#else
/* The library is for x86 only. */
static bool find_best(void *library)
{
    return false;
}
#endif

/* The library stays loaded for the life of the process: contexts may outlive any owner. */
static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return;
    ipsecmb.is_loaded = find_best(library);
    if (!ipsecmb.is_loaded)
        (void)dlclose(library);
}

static bool is_available(void)
{
    (void)pthread_once(&ipsecmb.once, load);
    return ipsecmb.is_loaded;
}

static void *ctx_new(void)
{
    struct gcm *gcm = aligned_alloc(_Alignof(struct gcm), sizeof(*gcm));

    if (gcm)
        *gcm = (struct gcm){0};
    return gcm;
}

static bool ctx_set_key(void *ctx, const struct aead_key *key)
{
    struct gcm *gcm = ctx;

    ipsecmb.pre(key->b, gcm->key_data);
    return true;
}

static void ctx_clear_key(void *ctx)
{
    secret_wipe(ctx, sizeof(struct gcm));
}

static void ctx_free(void *ctx)
{
    if (!ctx)
        return;
    ctx_clear_key(ctx);
    free(ctx);
}

static bool seal(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    struct gcm *gcm = ctx;

    ipsecmb.encrypt(gcm->key_data, gcm->context_data, buf, buf, len, nonce->b, ad, ad_len,
        buf + len, AEAD_TAG_SIZE);
    return true;
}

static bool open(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
    uint8_t *buf, size_t len)
{
    struct gcm *gcm = ctx;
    size_t text = len - AEAD_TAG_SIZE;
    uint8_t tag[AEAD_TAG_SIZE];

    ipsecmb.decrypt(
        gcm->key_data, gcm->context_data, buf, buf, text, nonce->b, ad, ad_len, tag, sizeof(tag));
    return secret_equal(tag, buf + text, sizeof(tag));
}

const struct aead_algorithm aead__ipsecmb_aes256gcm = {
    .name = "aes256gcm",
    .backend = "ipsec-mb",
    .cipher = AEAD_CIPHER_AES256GCM,
    .is_available = is_available,
    .ctx_new = ctx_new,
    .ctx_set_key = ctx_set_key,
    .ctx_clear_key = ctx_clear_key,
    .seal = seal,
    .open = open,
    .ctx_free = ctx_free,
};
