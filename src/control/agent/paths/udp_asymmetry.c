/* udp_asymmetry.c - see udp_asymmetry.h. */
#include "agent/paths/udp_asymmetry.h"

/* What was on its way when the hub was last heard to answer has arrived, and was counted, by then.
 */
#define IN_FLIGHT (2 * NSEC_PER_SEC)

/* Between two questions to the hub: while nothing is known, and for as long as it stays so. */
#define ASK_FIRST (2 * NSEC_PER_SEC)
#define ASK_LATER (60 * NSEC_PER_SEC)

/* A request that got lost by chance does not turn the verdict. */
#define UNHEARD_ENOUGH 3

void udp_asymmetry_clear(struct udp_asymmetry *ow)
{
    *ow = (struct udp_asymmetry){.rx_bytes = ow->rx_bytes, .grew = ow->grew};
}

void udp_asymmetry_look(
    struct udp_asymmetry *ow, nsec_t silent, uint64_t rx_bytes, bool is_udp, nsec_t now)
{
    /* A count that fell is that of a new engine. */
    bool grew = rx_bytes > ow->rx_bytes;

    ow->rx_bytes = rx_bytes;
    if (grew && is_udp)
        ow->grew = now;
    if (silent == 0)
        udp_asymmetry_clear(ow);
    else if (ow->silent == 0)
        ow->silent = silent;
}

static bool is_settled(const struct udp_asymmetry *ow)
{
    return !endpoint_is_none(&ow->from) ? ow->n_unheard == 0 : ow->n_unheard >= UNHEARD_ENOUGH;
}

bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ow, nsec_t now)
{
    return ow->asked == 0 || now - ow->asked >= (is_settled(ow) ? ASK_LATER : ASK_FIRST);
}

void udp_asymmetry_on_asked(struct udp_asymmetry *ow, nsec_t now)
{
    ow->asked = now;
}

void udp_asymmetry_on_heard(struct udp_asymmetry *ow, const struct endpoint *from)
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

enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ow)
{
    if (ow->silent == 0)
        return UDP_ASYMMETRY_UNKNOWN;
    if (!endpoint_is_none(&ow->from))
        return UDP_ASYMMETRY_IN;
    return ow->grew - ow->silent >= IN_FLIGHT ? UDP_ASYMMETRY_OUT : UDP_ASYMMETRY_UNKNOWN;
}

const char *udp_asymmetry_name(enum udp_asymmetry_kind kind)
{
    static const char *const names[] = {"", "in", "out"};

    _Static_assert(sizeof(names) / sizeof(*names) == UDP_ASYMMETRY_N, "one for each");
    return names[kind];
}
