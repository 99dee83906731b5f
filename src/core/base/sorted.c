/* sorted.c - see sorted.h. */
#include "base/sorted.h"

#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 8

size_t sorted_place(const void *items, size_t n, size_t size, sorted_compare_fn compare,
    const void *wanted, bool *ret_found)
{
    size_t low = 0;
    size_t high = n;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare((const char *)items + middle * size, wanted);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *sorted_open(void *items, size_t n, size_t size, size_t at, size_t *cap)
{
    char *bytes = items;

    if (n == *cap) {
        size_t more = *cap ? 2 * *cap : CAP_FIRST;

        bytes = reallocarray(items, more, size);
        if (!bytes)
            return NULL;
        *cap = more;
    }
    memmove(bytes + (at + 1) * size, bytes + at * size, (n - at) * size);
    return bytes;
}
