/* kube_access.h - a Kubernetes API on the command line, and what a daemon reads to reach it. */
#pragma once

#include <limits.h>

struct err;
struct kube_config;
struct privileges;

/**
 * kube_access_parse() - the URL "kubernetes:", perhaps with what kube_config.h allows behind it
 * @ret:	what follows the colon; borrows from @text
 *
 * Return: 0, or -EINVAL with words.
 */
int kube_access_parse(const char **ret, const char *text, struct err *e);

/**
 * kube_access_add() - the files by which the API is reached, to those that a daemon reads
 * @c:		for kube_config_deinit() when @p is used no more
 * @where:	what follows "kubernetes:"
 * @token_folder:	room: a token is replaced in its folder
 *
 * Return: 0; or negative errno with words.
 */
int kube_access_add(struct privileges *p, struct kube_config *c, const char *where,
    char token_folder[static PATH_MAX], struct err *e);
