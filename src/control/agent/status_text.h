/*
 * status_text.h - the node's status for people.
 *
 * It is made of status.h's JSON alone, so the command that prints it may be of another version than
 * the agent that was asked.
 */
#pragma once

#include <jansson.h>

struct str;

/** status_text_format() - a few lines of words, and a table of the peers; appends to @out. */
void status_text_format(const json_t *status, struct str *out);

/**
 * status_text_format_findings() - a block of them, with their fixes; appends to @out
 * @findings:	as finding_encode() makes each; anything else is fine
 * @most:	that many; the rest is counted
 */
void status_text_format_findings(const json_t *findings, size_t most, struct str *out);

/** status_text_format_routes() - of these, the subnets that are reached, and those behind the node.
 */
void status_text_format_routes(const json_t *status, struct str *out);

/** status_text_format_paths() - what status_paths_encode() made; appends to @out. */
void status_text_format_paths(const json_t *paths, struct str *out);
