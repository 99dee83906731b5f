/* one_way.c - see one_way.h. */
#include "agent/one_way.h"

/* What was on its way when the hub was last heard to answer has arrived, and was counted, by then.
 */
#define IN_FLIGHT (2 * NSEC_PER_SEC)

/* Between two questions to the hub: while nothing is known, and for as long as it stays so. */
#define ASK_FIRST (2 * NSEC_PER_SEC)
#define ASK_LATER (60 * NSEC_PER_SEC)

/* A request that got lost by chance does not turn the verdict. */
#define UNHEARD_ENOUGH 3

void one_way_clear(struct one_way *ow)
{
    *ow = (struct one_way){.rx_bytes = ow->rx_bytes, .grew = ow->grew};
}

void one_way_look(struct one_way *ow, nsec_t silent, uint64_t rx_bytes, bool is_udp, nsec_t now)
{
    /* A count that fell is that of a new engine. */
    bool grew = rx_bytes > ow->rx_bytes;

    ow->rx_bytes = rx_bytes;
    if (grew && is_udp)
        ow->grew = now;
    if (silent == 0)
        one_way_clear(ow);
    else if (ow->silent == 0)
        ow->silent = silent;
}

static bool is_settled(const struct one_way *ow)
{
    return !endpoint_is_none(&ow->from) ? ow->n_unheard == 0 : ow->n_unheard >= UNHEARD_ENOUGH;
}

bool one_way_wants_to_ask(const struct one_way *ow, nsec_t now)
{
    return ow->asked == 0 || now - ow->asked >= (is_settled(ow) ? ASK_LATER : ASK_FIRST);
}

void one_way_on_asked(struct one_way *ow, nsec_t now)
{
    ow->asked = now;
}

void one_way_on_heard(struct one_way *ow, const struct endpoint *from)
{
    if (from) {
        ow->from = *from;
        ow->n_unheard = 0;
        return;
    }
    ow->n_unheard++;
    if (ow->n_unheard >= UNHEARD_ENOUGH)
        ow->from = (struct endpoint){.port = 0};
}

enum one_way_kind one_way_of(const struct one_way *ow)
{
    if (ow->silent == 0)
        return ONE_WAY_UNKNOWN;
    if (!endpoint_is_none(&ow->from))
        return ONE_WAY_IN;
    return ow->grew - ow->silent >= IN_FLIGHT ? ONE_WAY_OUT : ONE_WAY_UNKNOWN;
}

const char *one_way_name(enum one_way_kind kind)
{
    static const char *const names[] = {"", "in", "out"};

    _Static_assert(sizeof(names) / sizeof(*names) == ONE_WAY_N, "one for each");
    return names[kind];
}
