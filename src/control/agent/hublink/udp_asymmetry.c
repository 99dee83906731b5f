/* udp_asymmetry.c - see udp_asymmetry.h. */
#include "agent/hublink/udp_asymmetry.h"

/* Packets that were on their way when the hub stopped answering have been counted after this time.
 * What is counted later was sent later. */
#define IN_FLIGHT (2 * NSEC_PER_SEC)

/* Between two questions to the hub: while nothing is known, and once something is. */
#define ASK_FIRST (2 * NSEC_PER_SEC)
#define ASK_LATER (60 * NSEC_PER_SEC)

/* So many requests in a row must be unheard, since one may be lost by chance. */
#define UNHEARD_ENOUGH 3

/* What was counted stays: that the hub is silent is noticed later than the silence begins. */
static void clear(struct udp_asymmetry *ua)
{
    *ua = (struct udp_asymmetry){
        .answered_at = ua->answered_at, .rx_bytes = ua->rx_bytes, .grew_at = ua->grew_at};
}

void udp_asymmetry_on_answer(struct udp_asymmetry *ua, nsec_t now)
{
    clear(ua);
    ua->answered_at = now;
}

void udp_asymmetry_look(
    struct udp_asymmetry *ua, nsec_t silent_since, uint64_t rx_bytes, bool is_udp, nsec_t now)
{
    /* A count that fell is that of a new engine. */
    bool grew = rx_bytes > ua->rx_bytes;

    ua->rx_bytes = rx_bytes;
    if (grew && is_udp)
        ua->grew_at = now;
    if (silent_since == 0)
        clear(ua);
    else if (ua->silent_since == 0)
        ua->silent_since = nsec_max(silent_since, ua->answered_at);
}

static bool is_settled(const struct udp_asymmetry *ua)
{
    return !endpoint_is_none(&ua->from) ? ua->n_unheard == 0 : ua->n_unheard >= UNHEARD_ENOUGH;
}

bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ua, nsec_t now)
{
    return ua->asked_at == 0 || now - ua->asked_at >= (is_settled(ua) ? ASK_LATER : ASK_FIRST);
}

void udp_asymmetry_on_asked(struct udp_asymmetry *ua, nsec_t now)
{
    ua->asked_at = now;
}

void udp_asymmetry_on_heard(struct udp_asymmetry *ua, const struct endpoint *from)
{
    if (from) {
        ua->from = *from;
        ua->n_unheard = 0;
        return;
    }
    ua->n_unheard++;
    if (ua->n_unheard >= UNHEARD_ENOUGH)
        ua->from = (struct endpoint){.port = 0};
}

enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ua)
{
    if (ua->silent_since == 0)
        return UDP_ASYMMETRY_UNKNOWN;
    if (!endpoint_is_none(&ua->from))
        return UDP_ASYMMETRY_IN;
    return ua->grew_at - ua->silent_since >= IN_FLIGHT ? UDP_ASYMMETRY_OUT : UDP_ASYMMETRY_UNKNOWN;
}

const char *udp_asymmetry_name(enum udp_asymmetry_kind kind)
{
    static const char *const names[] = {"", "in", "out"};

    _Static_assert(sizeof(names) / sizeof(*names) == UDP_ASYMMETRY_N, "one for each");
    return names[kind];
}
