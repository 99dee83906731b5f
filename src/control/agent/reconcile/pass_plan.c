/* pass_plan.c - see pass_plan.h. */
#include "agent/reconcile/pass_plan.h"

#define RETRY_FIRST (NSEC_PER_SEC / 4)

void pass_plan_request(struct pass_plan *p, nsec_t at)
{
    p->due_at = nsec_min(p->due_at, nsec_max(at, p->held_until));
}

void pass_plan_on_success(struct pass_plan *p, bool has_mended, nsec_t now)
{
    *p = (struct pass_plan){
        .due_at = now + PASS_PLAN_PERIOD, .held_until = has_mended ? now + PASS_PLAN_PAUSE : 0};
}

/* At random between three quarters of @wait and five quarters. */
static nsec_t scatter(nsec_t wait, uint32_t random)
{
    return wait * 3 / 4 + (nsec_t)((uint64_t)(wait / 2) * (random >> 16) >> 16);
}

void pass_plan_on_failure(
    struct pass_plan *p, const struct err *why, bool may_hurry, uint32_t random, nsec_t now)
{
    nsec_t wait = p->retry_for == 0 ? RETRY_FIRST : p->retry_for;

    p->fault = *why;
    p->n_failed++;
    p->due_at = now + scatter(wait, random);
    p->held_until = may_hurry ? nsec_min(p->due_at, now + PASS_PLAN_PAUSE) : p->due_at;
    p->retry_for = nsec_min(wait * 2, PASS_PLAN_PERIOD);
}
