/* news_pace.c - see news_pace.h. */
#include "hub/watch/news_pace.h"

void news_pace_on_newcomer(struct news_pace *p, nsec_t now)
{
    p->is_rush = p->newcomer_at != 0 && now - p->newcomer_at <= NEWS_PACE_RUSH_GAP;
    p->newcomer_at = now;
}

void news_pace_on_told(struct news_pace *p, unsigned n_nodes, nsec_t now)
{
    p->told_at = now;
    p->n_told = n_nodes;
}

static nsec_t rush_wait(const struct news_pace *p, unsigned n_watches)
{
    nsec_t least = NEWS_PACE_PATIENCE * n_watches * NEWS_PACE_WATCH;
    nsec_t cost = n_watches * (NEWS_PACE_WATCH + p->n_told * NEWS_PACE_NODE);

    return nsec_min(nsec_max(least, NEWS_PACE_RUSH_SHARE * cost), NEWS_PACE_RUSH_MAX);
}

nsec_t news_pace_due(const struct news_pace *p, unsigned n_watches, nsec_t now)
{
    unsigned times = p->n_told < NEWS_PACE_PATIENCE ? p->n_told : NEWS_PACE_PATIENCE;

    if (n_watches <= NEWS_PACE_FEW || p->told_at == 0)
        return 0;
    if (p->is_rush && now - p->newcomer_at <= NEWS_PACE_RUSH_GAP)
        return p->told_at + rush_wait(p, n_watches);
    return p->told_at + times * n_watches * NEWS_PACE_WATCH;
}
