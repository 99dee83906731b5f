/* replay.c - see replay.h. */
#include "replay.h"

#include <string.h>

#include "wire/wg.h"

#define BLOCK_BITS 64
#define N_BLOCKS   (REPLAY_BITS / BLOCK_BITS)

_Static_assert((N_BLOCKS & (N_BLOCKS - 1)) == 0, "the ring's index is a mask");

void replay_init(struct replay *w)
{
    memset(w, 0, sizeof(*w));
}

/* Makes @counter the greatest: clears the blocks between the old greatest's and its own. */
static void advance(struct replay *w, uint64_t counter)
{
    uint64_t from = w->next ? (w->next - 1) / BLOCK_BITS : 0;
    uint64_t n = counter / BLOCK_BITS - from;

    if (n > N_BLOCKS)
        n = N_BLOCKS;
    for (uint64_t i = 1; i <= n; i++)
        w->blocks[(from + i) % N_BLOCKS] = 0;
    w->next = counter + 1;
}

bool replay_check(struct replay *w, uint64_t counter)
{
    uint64_t bit = UINT64_C(1) << counter % BLOCK_BITS;
    uint64_t *block = &w->blocks[counter / BLOCK_BITS % N_BLOCKS];

    if (counter >= WG_REJECT_AFTER_MESSAGES)
        return false;
    if (counter >= w->next)
        advance(w, counter);
    else if (w->next - 1 - counter > REPLAY_WINDOW)
        return false;
    if (*block & bit)
        return false;
    *block |= bit;
    return true;
}
