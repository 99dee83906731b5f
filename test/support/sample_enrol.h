/*
 * sample_enrol.h - enrolments and tokens that are waited for; for tests.
 */
#pragma once

#include "hub/enrol/enrol.h"

/** sample_enrol_node() - enrol_node(), with what becomes of it; @ret: the node, NULL for none. */
int sample_enrol_node(struct enrol *en, const struct enrol_request *rq,
    const struct enrol_proof *proof, const struct ip_addr *from, nsec_t now, int64_t wall_s,
    struct model_node **ret, struct err *e);

/** sample_enrol_token() - enrol_new_secret(), stored. 0, or what the store says. */
int sample_enrol_token(struct enrol *en, struct model_network *net, const struct token_request *rq,
    int64_t wall_s, struct token_secret *ret, struct err *e);
