/*
 * plan_internal.h - what the files of a plan share: plan.c decides, plan_money.c counts what it
 * costs.
 */
#pragma once

#include "plan/plan.h"

/** plan__is_inside() - are both nodes in the same island? */
bool plan__is_inside(const struct matrix *m, size_t a, size_t b);

/** plan__island_of() - name of the node's island; borrowed. */
const char *plan__island_of(const struct plan *p, size_t node);

/** plan__gradient_bytes() - of the whole model. */
double plan__gradient_bytes(const struct plan *p);

/** plan__count_money() - the edges, and what a day costs; everything else is there by now. */
void plan__count_money(struct plan *p);
