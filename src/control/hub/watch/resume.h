/*
 * resume.h - what a watch that goes on where another one broke off has to be told first.
 *
 * That is each object that was told of at the revision where it broke off, or since, as it is now
 * (hub/model/history.h); and at the end a heartbeat, which says that this was all. What is the same
 * for thousands that go on from the same revision is made once (hub/model/catch_up.h).
 */
#pragma once

#include <stdint.h>

struct model_node;
struct view_parts;

/** Most objects: so many, and not much more than half of the network. With more a snapshot costs
 * less, because most of it is shared by all nodes. */
#define RESUME_MAX 512
#define RESUME_FEW 16

/* Outcomes. */
#define RESUME_E_GONE 1 /* a part of it is forgotten, or it is too much: send a snapshot */

/**
 * resume_make() - all that @self has not been told since @revision
 * @ret:	gives; to be released with view_parts_deinit()
 *
 * Return: 0, RESUME_E_GONE, or -ENOMEM.
 */
int resume_make(struct model_node *self, uint64_t revision, struct view_parts *ret);
