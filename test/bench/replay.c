/*
 * replay.c - what the replay window costs, and what it costs that it tells what is lost.
 *
 *     bench-replay     prints JSON: ns for each message, on this core
 *
 * "plain" is a window that only refuses what is repeated, "counting" that of noise/keypair.h. They
 * take turns, and the median of the rounds counts; `ratio` is of the second to the first. "ask" is
 * one question to a full window. The messages come in order, without 1 % of them, or with 10 %
 * behind later ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "noise/keypair.h"
#include "os/clock.h"
#include "wire/wg.h"

#define ROUNDS     31
#define N_MESSAGES 1000000
#define N_ASKED    20000
#define N_BLOCKS   (REPLAY_BITS / 64)

/* noinline, as replay_check() is in another file. */
__attribute__((noinline)) static bool plain_check(struct replay *w, uint64_t counter)
{
    uint64_t bit = UINT64_C(1) << counter % 64;
    uint64_t *block = &w->blocks[counter / 64 % N_BLOCKS];

    if (counter >= WG_REJECT_AFTER_MESSAGES)
        return false;
    if (counter >= w->next) {
        uint64_t from = w->next ? (w->next - 1) / 64 : 0;
        uint64_t n = counter / 64 - from;

        if (n > N_BLOCKS)
            n = N_BLOCKS;
        for (uint64_t i = 1; i <= n; i++)
            w->blocks[(from + i) % N_BLOCKS] = 0;
        w->next = counter + 1;
    } else if (w->next - 1 - counter > REPLAY_WINDOW) {
        return false;
    }
    if (*block & bit)
        return false;
    *block |= bit;
    return true;
}

typedef bool (*check_fn)(struct replay *w, uint64_t counter);

/* The counters of N_MESSAGES in the order in which they come. */
static uint64_t *make(unsigned lost_permille, unsigned reordered_permille)
{
    uint64_t *counters = calloc(N_MESSAGES, sizeof(*counters));
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    uint64_t next = 0;

    for (size_t i = 0; counters && i < N_MESSAGES; i++) {
        next += rng_u32(&rng) % 1000 < lost_permille;
        counters[i] = next++;
    }
    for (size_t i = 0; counters && i + 8 < N_MESSAGES; i++)
        if (rng_u32(&rng) % 1000 < reordered_permille) {
            uint64_t held = counters[i];

            memmove(&counters[i], &counters[i + 1], 7 * sizeof(*counters));
            counters[i + 7] = held;
            i += 7;
        }
    return counters;
}

static double turn(check_fn check, const uint64_t *counters, struct replay *w)
{
    nsec_t since = clock_now();
    unsigned n = 0;

    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < N_MESSAGES; i++)
        n += check(w, counters[i]);
    return n == N_MESSAGES ? (double)(clock_now() - since) / N_MESSAGES : -1;
}

static double ask(const struct replay *w)
{
    nsec_t since = clock_now();
    uint64_t lost = 0;

    for (unsigned i = 0; i < N_ASKED; i++)
        lost += replay_arrivals(w, w->next - i % 64).lost;
    return lost != UINT64_MAX ? (double)(clock_now() - since) / N_ASKED : -1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), compare);
    return values[ROUNDS / 2];
}

int main(void)
{
    static const struct {
        const char *name;
        unsigned lost_permille;
        unsigned reordered_permille;
    } lines[] = {{"inOrder", 0, 0}, {"lost1Percent", 10, 0}, {"reordered10Percent", 0, 15}};
    static struct replay w;

    (void)printf("{");
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        uint64_t *counters = make(lines[i].lost_permille, lines[i].reordered_permille);
        double plain[ROUNDS];
        double counting[ROUNDS];
        double asked[ROUNDS];

        if (!counters)
            return 1;
        for (unsigned r = 0; r < ROUNDS; r++) {
            plain[r] = turn(plain_check, counters, &w);
            counting[r] = turn(replay_check, counters, &w);
            asked[r] = ask(&w);
        }
        (void)printf(
            "%s\"%s\": {\"plain\": %.3f, \"counting\": %.3f, \"ratio\": %.3f, \"ask\": %.1f}",
            i > 0 ? ",\n " : "", lines[i].name, median(plain), median(counting),
            median(counting) / median(plain), median(asked));
        free(counters);
    }
    (void)printf("}\n");
    return 0;
}
