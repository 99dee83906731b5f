/*
 * deaf_listener.h - a model's listener that does nothing, for models without the hub above them.
 *
 * What a test wants to hear it puts in the place of a function; it has to bring its own
 * network_key and broken.
 */
#pragma once

#include "hub/model/model.h"

/** deaf_listener() - one that frees the nodes that are removed, and does nothing else. */
struct model_listener deaf_listener(void);
