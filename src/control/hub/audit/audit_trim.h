/*
 * audit_trim.h - the oldest entries of the audit log go when they are too old, or too many.
 */
#pragma once

#include "hub/audit/audit.h"

/**
 * audit_trim() - look for some, and have them removed; n_trims counts those on their way
 *
 * Return: 0 or negative errno with words; what fails later is left in @a's failure.
 */
int audit_trim(struct audit *a, enum audit_kind kind, nsec_t now, struct err *e);
