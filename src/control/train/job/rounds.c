/* rounds.c - see rounds.h. */
#include "train/job/rounds.h"

size_t rounds_count(size_t n)
{
    return n < 2 ? 0 : n - 1 + n % 2;
}

size_t rounds_pairs(size_t n)
{
    return n < 2 ? 0 : n * (n - 1) / 2;
}

size_t rounds_get(size_t n, size_t round, struct rounds_pair *ret)
{
    /* Number of members on the circle. With an even @n the last member is in its middle. */
    size_t circle = rounds_count(n);
    size_t n_pairs = 0;

    for (size_t i = 0; n >= 2 && i <= circle / 2; i++) {
        size_t x = (round + i) % circle;
        size_t y = i == 0 ? circle : (round + circle - i) % circle;

        /* With an odd @n the middle is empty, and the member paired with it rests in this round. */
        if (x == y || y >= n)
            continue;
        ret[n_pairs++] =
            x < y ? (struct rounds_pair){.a = x, .b = y} : (struct rounds_pair){.a = y, .b = x};
    }
    return n_pairs;
}

size_t rounds_index(size_t n, size_t a, size_t b)
{
    return a * (2 * n - a - 1) / 2 + (b - a - 1);
}
