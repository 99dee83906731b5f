/* drop.c - names of the drop reasons; see drop.h. */
#include "drop.h"

const char *const drop_reason_names[] = {
#define X(id, name, help) [DROP_##id] = name,
    DROP_REASONS(X)
#undef X
};
_Static_assert(
    sizeof(drop_reason_names) / sizeof(*drop_reason_names) == DROP_REASON_N, "a name each");

void drops_add(const struct drops *from, uint64_t sum[static DROP_REASON_N])
{
    for (int i = 0; i < DROP_REASON_N; i++)
        sum[i] += atomic_load_explicit(&from->n[i], memory_order_relaxed);
}
