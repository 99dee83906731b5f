/* aead_speed.c - see aead_speed.h. */
#include "aead_speed.h"

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
