/* aead.c - the table of back ends, the choice among them, lanes, and XChaCha20; see aead.h. */
#include "crypto/aead.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/secret.h"
#include "crypto/aead_internal.h"

/* The inner packet that is measured with: that of an MTU of 1420. */
#define AEAD_SPEED_PACKET 1420

/* Fastest first, per cipher. */
static const struct aead_algorithm *const algorithms[] = {
#if defined(__x86_64__)
    &aead__avx512_chacha20poly1305,
#endif
    &aead__boringssl_chacha20poly1305,
#if defined(__x86_64__)
    &aead__avx2_chacha20poly1305,
#endif
    &aead__openssl_chacha20poly1305,
    &aead__ipsecmb_aes256gcm,
    &aead__boringssl_aes256gcm,
    &aead__openssl_aes256gcm,
};

#define N_ALGORITHMS (sizeof(algorithms) / sizeof(*algorithms))

/* The judge that every other back end must agree with. */
static const struct aead_algorithm *const references[] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = &aead__openssl_chacha20poly1305,
    [AEAD_CIPHER_AES256GCM] = &aead__openssl_aes256gcm,
};

const char *const aead_cipher_names[] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = "chacha20poly1305",
    [AEAD_CIPHER_AES256GCM] = "aes256gcm",
};
_Static_assert(
    sizeof(aead_cipher_names) / sizeof(*aead_cipher_names) == AEAD_CIPHER_N, "a name each");

static_assert(sizeof(references) / sizeof(*references) == AEAD_CIPHER_N, "a reference per cipher");

const struct aead_algorithm *aead_each(size_t i)
{
    return i < N_ALGORITHMS ? algorithms[i] : NULL;
}

enum aead_cipher aead_cipher_parse(const char *text, size_t len)
{
    unsigned c = 0;

    while (c < AEAD_CIPHER_N &&
           (strlen(aead_cipher_names[c]) != len || memcmp(aead_cipher_names[c], text, len) != 0))
        c++;
    return (enum aead_cipher)c;
}

const struct aead_algorithm *aead_reference(enum aead_cipher cipher)
{
    return references[cipher];
}

/*
 * Known answer: 16 zero bytes under an all-zero key and nonce, no additional
 * data. AES-256: GCM specification, test case 14. ChaCha20-Poly1305: the key
 * stream is RFC 8439 appendix A.1, test vector 2; on the tag OpenSSL and
 * BoringSSL agree. The RFC's own AEAD vector is in the tests.
 */
static const uint8_t known_answers[][32] = {
    [AEAD_CIPHER_CHACHA20POLY1305] = {0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a, 0x98, 0xba,
        0x97, 0x7c, 0x73, 0x2d, 0x08, 0x0d, 0xc3, 0x4a, 0x88, 0x04, 0x73, 0x20, 0xf5, 0x2a, 0xa2,
        0xc6, 0x68, 0x3e, 0xf8, 0x08, 0x4d, 0x2f},
    [AEAD_CIPHER_AES256GCM] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5,
        0xd3, 0xba, 0xf3, 0x9d, 0x18, 0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0, 0x26, 0x5b,
        0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19},
};

#define KNOWN_ANSWER_TEXT 16

/* Seals @len bytes with both and opens the result with the candidate. */
static bool agrees_at(const struct aead_algorithm *alg, size_t len)
{
    struct aead_key key;
    struct aead_nonce nonce = aead_nonce_make(len);
    uint8_t ad[8] = "weft kat";
    uint8_t a[2048 + AEAD_TAG_SIZE];
    uint8_t b[2048 + AEAD_TAG_SIZE];

    for (size_t i = 0; i < sizeof(key.b); i++)
        key.b[i] = (uint8_t)(i * 7 + len);
    for (size_t i = 0; i < len; i++)
        a[i] = b[i] = (uint8_t)(i * 31 + 1);
    if (!aead_seal_once(alg, &key, &nonce, ad, sizeof(ad), a, len) ||
        !aead_seal_once(references[alg->cipher], &key, &nonce, ad, sizeof(ad), b, len) ||
        memcmp(a, b, len + AEAD_TAG_SIZE) != 0)
        return false;
    if (!aead_open_once(alg, &key, &nonce, ad, sizeof(ad), a, len + AEAD_TAG_SIZE))
        return false;
    b[len / 2] ^= 1;
    return !aead_open_once(alg, &key, &nonce, ad, sizeof(ad), b, len + AEAD_TAG_SIZE);
}

bool aead__is_correct(const struct aead_algorithm *alg)
{
    /* Around the strides of the vector code: 64, 128, 256, 320, 512 bytes and a full packet. */
    static const size_t lens[] = {0, 1, 15, 63, 64, 65, 127, 129, 255, 257, 320, 513, 1420, 2048};
    static const struct aead_key key;
    struct aead_nonce nonce = aead_nonce_make(0);
    uint8_t buf[KNOWN_ANSWER_TEXT + AEAD_TAG_SIZE] = {0};

    if (!aead_seal_once(alg, &key, &nonce, NULL, 0, buf, KNOWN_ANSWER_TEXT) ||
        memcmp(buf, known_answers[alg->cipher], sizeof(buf)) != 0)
        return false;
    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
        if (!agrees_at(alg, lens[i]))
            return false;
    return true;
}

const struct aead_algorithm *aead_best(enum aead_cipher cipher, const char *backend)
{
    for (size_t i = 0; i < N_ALGORITHMS; i++) {
        const struct aead_algorithm *alg = algorithms[i];

        if (alg->cipher != cipher || (backend && strcmp(alg->backend, backend) != 0))
            continue;
        if (alg->is_available() && aead__is_correct(alg))
            return alg;
    }
    return NULL;
}

/* ---- lanes ---- */

/* Direct-mapped by the key's address; a batch seldom holds more keys than this. */
#define LANE_SLOTS 16

struct lane_slot {
    const struct aead_algorithm *alg; /* whose context; NULL: none yet */
    const struct aead_key *key;       /* borrows; compared by address; NULL: no key set */
    void *ctx;                        /* owns; of @alg */
};

struct aead_lane {
    struct lane_slot slots[LANE_SLOTS];
    uint32_t used; /* bit i: slot i holds a key */
};

static_assert(LANE_SLOTS <= 32, "a bit of `used` per slot");

int aead_lane_new(struct aead_lane **ret)
{
    struct aead_lane *lane = calloc(1, sizeof(*lane));

    if (!lane)
        return -ENOMEM;
    *ret = lane;
    return 0;
}

struct aead_lane *aead_lane_free(struct aead_lane *lane)
{
    if (!lane)
        return NULL;
    for (size_t i = 0; i < LANE_SLOTS; i++)
        if (lane->slots[i].alg)
            lane->slots[i].alg->ctx_free(lane->slots[i].ctx);
    free(lane);
    return NULL;
}

void aead_lane_clear(struct aead_lane *lane)
{
    while (lane->used) {
        struct lane_slot *slot = &lane->slots[__builtin_ctz(lane->used)];

        slot->alg->ctx_clear_key(slot->ctx);
        slot->key = NULL;
        lane->used &= lane->used - 1;
    }
}

/* Puts the expanded @key into @slot; the context is kept when the algorithm is the same. */
static bool slot_fill(
    struct lane_slot *slot, const struct aead_algorithm *alg, const struct aead_key *key)
{
    slot->key = NULL;
    if (slot->alg != alg) {
        if (slot->alg)
            slot->alg->ctx_free(slot->ctx);
        slot->alg = NULL;
        slot->ctx = alg->ctx_new();
        if (!slot->ctx)
            return false;
        slot->alg = alg;
    }
    if (!alg->ctx_set_key(slot->ctx, key))
        return false;
    slot->key = key;
    return true;
}

/* The context that holds @key, NULL when there is no memory. */
static void *lane_ctx(
    struct aead_lane *lane, const struct aead_algorithm *alg, const struct aead_key *key)
{
    /* Keys lie within larger structs, so the low bits say little: fold the higher ones in. */
    uintptr_t a = (uintptr_t)key / AEAD_KEY_SIZE;
    unsigned idx = (unsigned)((a ^ a >> 4 ^ a >> 9) % LANE_SLOTS);
    struct lane_slot *slot = &lane->slots[idx];

    if (slot->key == key && slot->alg == alg)
        return slot->ctx;
    lane->used &= ~((uint32_t)1 << idx);
    if (!slot_fill(slot, alg, key))
        return NULL;
    lane->used |= (uint32_t)1 << idx;
    return slot->ctx;
}

bool aead_seal(struct aead_lane *lane, const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len)
{
    void *ctx = lane_ctx(lane, alg, key);

    return ctx && alg->seal(ctx, nonce, ad, ad_len, buf, len);
}

bool aead_open(struct aead_lane *lane, const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len)
{
    void *ctx = len < AEAD_TAG_SIZE ? NULL : lane_ctx(lane, alg, key);

    return ctx && alg->open(ctx, nonce, ad, ad_len, buf, len);
}

bool aead_seal_once(const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len)
{
    void *ctx = alg->ctx_new();
    bool ok = ctx && alg->ctx_set_key(ctx, key) && alg->seal(ctx, nonce, ad, ad_len, buf, len);

    alg->ctx_free(ctx);
    return ok;
}

bool aead_open_once(const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len)
{
    void *ctx = len < AEAD_TAG_SIZE ? NULL : alg->ctx_new();
    bool ok = ctx && alg->ctx_set_key(ctx, key) && alg->open(ctx, nonce, ad, ad_len, buf, len);

    alg->ctx_free(ctx);
    return ok;
}

/* ---- how fast it is ---- */

/* Packets in a short run: some twenty microseconds, far above what reading a clock costs. */
#define RUN_PACKETS 16

/* Seals and opens one packet over and over; false when there is no memory. */
static bool run(struct aead_lane *lane, const struct aead_algorithm *alg, uint64_t *counter,
    uint8_t buf[static AEAD_SPEED_PACKET + AEAD_TAG_SIZE])
{
    static const struct aead_key key;

    for (unsigned i = 0; i < RUN_PACKETS; i++) {
        struct aead_nonce nonce = aead_nonce_make((*counter)++);

        if (!aead_seal(lane, alg, &key, &nonce, NULL, 0, buf, AEAD_SPEED_PACKET) ||
            !aead_open(lane, alg, &key, &nonce, NULL, 0, buf, AEAD_SPEED_PACKET + AEAD_TAG_SIZE))
            return false;
    }
    return true;
}

uint32_t aead_speed(const struct aead_algorithm *alg, nsec_t budget, aead_clock_fn clock)
{
    uint8_t buf[AEAD_SPEED_PACKET + AEAD_TAG_SIZE] = {0};
    struct aead_lane *lane;
    uint64_t counter = 0;
    nsec_t best = NSEC_NEVER;
    nsec_t begin = clock();
    nsec_t from = begin;

    if (aead_lane_new(&lane) < 0)
        return 0;
    while (from - begin < budget && run(lane, alg, &counter, buf)) {
        nsec_t to = clock();

        if (to <= from)
            break;
        best = nsec_min(best, to - from);
        from = to;
    }
    (void)aead_lane_free(lane);
    if (best == NSEC_NEVER)
        return 0;
    return (uint32_t)(2 * RUN_PACKETS * AEAD_SPEED_PACKET * NSEC_PER_SEC / best / 1000000);
}

/* ---- XChaCha20-Poly1305 ---- */

static EVP_CIPHER *chacha20;

/* Once, and never released: the look-up by EVP_chacha20() costs more than the block. */
static void fetch_chacha20(void)
{
    chacha20 = EVP_CIPHER_fetch(NULL, "ChaCha20", NULL);
}

/* The first key stream block of ChaCha20 with a 16-byte counter-and-nonce. */
static bool chacha20_block(
    const struct aead_key *key, const uint8_t counter_nonce[static 16], struct le32 ret[static 16])
{
    static const uint8_t zero[64];
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n;
    bool ok;

    (void)pthread_once(&once, fetch_chacha20);
    ok = ctx && chacha20 && EVP_EncryptInit_ex(ctx, chacha20, NULL, key->b, counter_nonce) == 1 &&
         EVP_EncryptUpdate(ctx, ret[0].b, &n, zero, sizeof(zero)) == 1;

    EVP_CIPHER_CTX_free(ctx);
    return ok;
}

bool hchacha20(const struct aead_key *key, const uint8_t nonce[static 16], struct aead_key *ret)
{
    /* Rows 0 and 3 of the input matrix, the ones that HChaCha20 puts out. */
    static const uint8_t sigma[16] = {"expand 32-byte k"};
    struct le32 block[16];
    bool ok = chacha20_block(key, nonce, block);

    /*
     * ChaCha20 adds its input to the permuted matrix, HChaCha20 does not.
     * Only rows 0 and 3 leave HChaCha20, and their inputs are public.
     */
    for (size_t i = 0; ok && i < 4; i++) {
        struct le32 in;

        memcpy(&in, sigma + 4 * i, sizeof(in));
        in = le32_make(le32_get(block[i]) - le32_get(in));
        memcpy(ret->b + 4 * i, &in, sizeof(in));
        memcpy(&in, nonce + 4 * i, sizeof(in));
        in = le32_make(le32_get(block[12 + i]) - le32_get(in));
        memcpy(ret->b + 16 + 4 * i, &in, sizeof(in));
    }
    secret_wipe(block, sizeof(block));
    return ok;
}

static struct aead_nonce inner_nonce(const struct xchacha_nonce *nonce)
{
    struct le64 tail;

    memcpy(&tail, nonce->b + 16, sizeof(tail));
    return aead_nonce_make(le64_get(tail));
}

bool xchacha_seal(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len)
{
    struct aead_nonce inner = inner_nonce(nonce);
    struct aead_key subkey;
    bool ok = hchacha20(key, nonce->b, &subkey) && aead_seal_once(&aead__openssl_chacha20poly1305,
                                                       &subkey, &inner, ad, ad_len, buf, len);

    secret_wipe(&subkey, sizeof(subkey));
    return ok;
}

bool xchacha_open(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len)
{
    struct aead_nonce inner = inner_nonce(nonce);
    struct aead_key subkey;
    bool ok = hchacha20(key, nonce->b, &subkey) && aead_open_once(&aead__openssl_chacha20poly1305,
                                                       &subkey, &inner, ad, ad_len, buf, len);

    secret_wipe(&subkey, sizeof(subkey));
    return ok;
}
