/*
 * canned_kube.h - a client of an API server that answers what a test has written down.
 */
#pragma once

#include <stddef.h>

#include "test/support/canned_server.h"

struct kube_client;

/**
 * canned_kube_start() - start @s, and have @c ask it for what the namespace "weft" has
 * @c:		to be released with kube_client_deinit()
 * @answers:	as of canned_server_start()
 */
void canned_kube_start(
    struct canned_server *s, struct kube_client *c, const char *const *answers, size_t n_answers);
