/*
 * preflight_loss.c - see preflight.h: how much is lost between two members, and what that does to a
 * job.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/preflight/preflight.h"
#include "train/preflight/preflight_internal.h"

#define MILLION 1000000u

/* From so many of a million on a loss has that level. */
#define WARN_PPM   1000u
#define NO_PPM     10000u
#define NO_RTT_US  5000u /* with a longer round trip time */
#define ALWAYS_PPM 200000u
/* Losing fewer packets than this counts as chance, whatever their share. */
#define LOST_MIN 3
/* A train of pings is short: below so much its loss is taken for chance. */
#define PINGS_PPM 50000u

#define MSS_USUAL 1380 /* bytes; where the connection's own is not known */

/* ---- how much ------------------------------------------------------------------------------ */

bool preflight_find_loss(const struct preflight_pair *p, bool from_b, struct preflight_loss *ret)
{
    const struct loss_test *l = &p->loss[from_b];
    const struct idle_test *idle = &p->idle[from_b];
    bool by_datagrams = p->has_loss[from_b] && l->sent > 0;
    uint32_t sent = by_datagrams ? l->sent : idle->sent;
    uint32_t heard = by_datagrams ? l->heard : idle->heard;
    uint32_t lost = heard < sent ? sent - heard : 0;

    /* Of pings each direction counts by itself, by those that its receiver heard. */
    if (!by_datagrams && (!p->has_idle[from_b] || idle->back == 0 || idle->sent == 0))
        return false;
    *ret = (struct preflight_loss){.by_datagrams = by_datagrams,
        .sent = sent,
        .lost = lost,
        .ppm = (uint32_t)((uint64_t)lost * MILLION / sent)};
    return true;
}

/* ---- what it does -------------------------------------------------------------------------- */

enum preflight_level preflight_loss_level(uint32_t ppm, uint32_t rtt_us)
{
    if (ppm >= ALWAYS_PPM || (ppm >= NO_PPM && rtt_us > NO_RTT_US))
        return PREFLIGHT_NO;
    return ppm >= WARN_PPM ? PREFLIGHT_WARN : PREFLIGHT_OK;
}

double preflight_tcp_rate(uint32_t mss, uint32_t rtt_us, uint32_t ppm)
{
    double segments = sqrt(1.5 * MILLION / (ppm > 0 ? ppm : 1));

    return 8.0 * mss * segments * MILLION / (rtt_us > 0 ? rtt_us : 1);
}

/* A direction of a pair, with all that counts for it. */
struct one_way {
    struct preflight_loss loss;
    uint32_t rtt_us;
    uint32_t mss;
    bool is_bbr; /* the sender's congestion control, which a loss does not slow down as others */
    enum preflight_level level;
};

/* Of a connection that was not tested in this direction the other one's figures are taken. */
static struct one_way look_at(const struct preflight_pair *p, bool from_b)
{
    const struct idle_test *l = &p->idle[p->has_idle[from_b] ? from_b : !from_b];
    struct one_way w = {.rtt_us = l->rtt_median_us,
        .mss = l->mss > 0 ? l->mss : MSS_USUAL,
        .is_bbr = p->has_idle[from_b] && result_is_bbr(l->congestion)};

    if (!preflight_find_loss(p, from_b, &w.loss) || w.loss.lost < LOST_MIN ||
        (!w.loss.by_datagrams && w.loss.ppm < PINGS_PPM))
        return w;
    w.level = preflight_loss_level(w.loss.ppm, w.rtt_us);
    return w;
}

bool preflight_loses(const struct preflight_pair *p)
{
    return look_at(p, false).level > PREFLIGHT_OK || look_at(p, true).level > PREFLIGHT_OK;
}

bool preflight__has_fatal_loss(const struct preflight_pair *p)
{
    return look_at(p, false).level == PREFLIGHT_NO || look_at(p, true).level == PREFLIGHT_NO;
}

/* ---- findings ------------------------------------------------------------------------------ */

static double percent(const struct preflight_loss *l)
{
    return (double)l->ppm * 100 / MILLION;
}

/* Writes what was seen. @back: the other direction, which is told as well where it loses, too. */
static void say_loss(struct preflight_finding *f, const char *from, const char *to,
    const struct one_way *w, const struct one_way *back)
{
    char also[64] = "";
    char effect[96];

    if (back->level > PREFLIGHT_OK)
        (void)snprintf(also, sizeof(also), ", and %.2f %% back", percent(&back->loss));
    (void)snprintf(effect, sizeof(effect), "one TCP connection gets about %.1f Mbit/s%s",
        preflight_tcp_rate(w->mss, w->rtt_us, w->loss.ppm) / MILLION,
        w->is_bbr ? ", and more with the BBR that it has" : "");
    preflight__say(f->text, "%.2f %% of %u %s from %s to %s were lost%s; with an RTT of %.1f ms %s",
        percent(&w->loss), w->loss.sent, w->loss.by_datagrams ? "datagrams" : "pings", from, to,
        also, w->rtt_us / 1000.0, effect);
}

/* One finding for a pair: its graver direction. */
void preflight__assess_loss(
    struct preflight_report *r, const struct preflight_input *in, const struct preflight_pair *p)
{
    const struct one_way ends[2] = {look_at(p, false), look_at(p, true)};
    bool from_b = ends[1].level > ends[0].level ||
                  (ends[1].level == ends[0].level && ends[1].loss.ppm > ends[0].loss.ppm);
    const struct one_way *w = &ends[from_b];
    const char *from = in->nodes[from_b ? p->b : p->a].name;
    const char *to = in->nodes[from_b ? p->a : p->b].name;
    struct preflight_finding *f;

    if (w->level == PREFLIGHT_OK)
        return;
    f = preflight__add(r, PREFLIGHT_LOSS, w->level, p->a, p->b);
    say_loss(f, from, to, w, &ends[!from_b]);
    if (w->is_bbr)
        preflight__say(
            f->fix, "look at the line from %s to %s (path: %s)", from, to, p->idle[0].path);
    else
        preflight__say(f->fix,
            "look at the line from %s to %s (path: %s); as long as it loses, BBR is slowed down "
            "less: on %s sysctl -w net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr",
            from, to, p->idle[0].path, from);
}

/* Why the loss in some direction is known by pings alone, as words; NULL: there is none. */
static const char *why_by_pings(
    const struct preflight_input *in, const struct preflight_pair *p, char text[static 128])
{
    for (unsigned from_b = 0; from_b < 2; from_b++) {
        const struct preflight_node *n = &in->nodes[from_b ? p->b : p->a];
        struct preflight_loss l;

        if (!n->present || !preflight_find_loss(p, from_b, &l) || l.by_datagrams)
            continue;
        if (in->is_quick)
            return "--quick";
        if (!n->facts.counts_loss)
            (void)snprintf(text, 128, "the agent of %s is of an earlier version", n->name);
        else
            (void)snprintf(text, 128, "%s could not count more", n->name);
        return text;
    }
    return NULL;
}

/* Once for all of them: the first one's reason. Where the network is in use, that is told instead.
 */
void preflight__assess_unknown_loss(struct preflight_report *r, const struct preflight_input *in)
{
    struct preflight_finding *f;
    const char *why = NULL;
    char text[128];
    char first[128];
    size_t n = 0;

    for (size_t i = 0; i < in->n_pairs && !in->skipped_bulk; i++) {
        const char *of_pair = why_by_pings(in, &in->pairs[i], text);

        n += of_pair != NULL;
        if (of_pair && !why) {
            (void)snprintf(first, sizeof(first), "%s", of_pair);
            why = first;
        }
    }
    if (!why)
        return;
    f = preflight__add(r, PREFLIGHT_LOSS, PREFLIGHT_NOTE, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    preflight__say(f->text,
        "of %zu of %zu pairs loss is known by pings alone, which do not show less than 5 %%: %s", n,
        in->n_pairs, why);
}
