/*
 * aead.c - what sealing and opening a packet costs, per cipher and back end.
 *
 *     build/test/bench/bench-aead [--seconds S] > result.json
 *
 * Every back end that is there takes its turn, round by round, so that noise
 * is shared; the median of the rounds counts. `ratio` is against OpenSSL's
 * ChaCha20-Poly1305 at the same length and direction in the same run. Packets
 * are sealed as the data plane does it: batches of 64 with a lane that is
 * cleared after each, so key set-up is in the figures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "crypto/aead.h"
#include "os/clock.h"

#define ROUNDS    9
#define BATCH     64
#define ROOM      2048
#define N_LENS    2
#define N_ALG_MAX 16

static const size_t lens[N_LENS] = {1420, 160};

/** One back end at one length, sealing or opening. */
struct cell {
    double mb_per_s[ROUNDS];
};

static uint8_t packets[BATCH][ROOM];

/* One batch; @counter is that of its first packet. */
static bool batch(struct aead_lane *lane, const struct aead_algorithm *alg, bool opens,
    uint64_t counter, size_t len)
{
    static const struct aead_key key = {{42}};
    bool ok = true;

    for (unsigned i = 0; i < BATCH; i++) {
        struct aead_nonce nonce = aead_nonce_make(counter + i);

        if (opens)
            ok &= aead_open(lane, alg, &key, &nonce, NULL, 0, packets[i], len + AEAD_TAG_SIZE);
        else
            ok &= aead_seal(lane, alg, &key, &nonce, NULL, 0, packets[i], len);
    }
    aead_lane_clear(lane);
    return ok;
}

/* Seals and opens for @budget and adds up the time of each direction. */
static bool measure(const struct aead_algorithm *alg, size_t len, nsec_t budget, unsigned round,
    struct cell ret[static 2])
{
    struct aead_lane *lane;
    nsec_t spent[2] = {0, 0};
    uint64_t n = 0;
    bool ok = true;

    if (aead_lane_new(&lane) < 0)
        return false;
    for (; ok && spent[0] + spent[1] < budget; n += BATCH) {
        for (unsigned opens = 0; ok && opens < 2; opens++) {
            nsec_t from = clock_now();

            ok = batch(lane, alg, opens == 1, n, len);
            spent[opens] += clock_now() - from;
        }
    }
    (void)aead_lane_free(lane);
    for (unsigned opens = 0; ok && opens < 2; opens++)
        ret[opens].mb_per_s[round] = (double)(n * len) * 1e3 / (double)spent[opens];
    return ok;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(struct cell *c)
{
    qsort(c->mb_per_s, ROUNDS, sizeof(*c->mb_per_s), compare);
    return c->mb_per_s[ROUNDS / 2];
}

static void print(const struct aead_algorithm *const *algs, size_t n_algs,
    struct cell cells[N_ALG_MAX][N_LENS][2])
{
    double reference[N_LENS][2] = {{0}};
    const char *comma = "";

    for (size_t a = 0; a < n_algs; a++)
        if (algs[a] == aead_reference(AEAD_CIPHER_CHACHA20POLY1305))
            for (unsigned i = 0; i < 2 * N_LENS; i++)
                reference[i / 2][i % 2] = median(&cells[a][i / 2][i % 2]);
    (void)printf("{\"bench\": \"aead\", \"reference\": \"chacha20poly1305/openssl\", "
                 "\"results\": [");
    for (size_t a = 0; a < n_algs; a++) {
        for (unsigned i = 0; i < 2 * N_LENS; i++) {
            double v = median(&cells[a][i / 2][i % 2]);

            (void)printf("%s\n  {\"cipher\": \"%s\", \"backend\": \"%s\", \"bytes\": %zu, "
                         "\"direction\": \"%s\", \"mbPerS\": %.0f, \"nsPerPacket\": %.0f, "
                         "\"ratio\": %.2f}",
                comma, algs[a]->name, algs[a]->backend, lens[i / 2], i % 2 ? "open" : "seal", v,
                (double)lens[i / 2] * 1e3 / v, v / reference[i / 2][i % 2]);
            comma = ",";
        }
    }
    (void)printf("\n]}\n");
}

int main(int argc, char **argv)
{
    static struct cell cells[N_ALG_MAX][N_LENS][2];
    const struct aead_algorithm *algs[N_ALG_MAX];
    const struct aead_algorithm *alg;
    struct err e = ERR_NULL;
    uint64_t seconds = 6;
    size_t n_algs = 0;
    nsec_t budget;

    if ((argc != 1 && argc != 3) || (argc == 3 && strcmp(argv[1], "--seconds") != 0) ||
        (argc == 3 && parse_u64(&seconds, argv[2], 1, 600, "seconds", &e) < 0)) {
        (void)fprintf(stderr, "usage: bench-aead [--seconds 1..600]\n");
        return 2;
    }
    for (size_t i = 0; (alg = aead_each(i)) && n_algs < N_ALG_MAX; i++)
        if (alg->is_available())
            algs[n_algs++] = alg;
    budget = (nsec_t)seconds * NSEC_PER_SEC / (nsec_t)(n_algs * N_LENS * ROUNDS);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t a = 0; a < n_algs; a++)
            for (unsigned l = 0; l < N_LENS; l++)
                if (!measure(algs[a], lens[l], budget, round, cells[a][l])) {
                    (void)fprintf(
                        stderr, "%s of %s does not work\n", algs[a]->name, algs[a]->backend);
                    return 1;
                }
    print(algs, n_algs, cells);
    return 0;
}
