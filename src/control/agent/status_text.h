/*
 * status_text.h - the node's status for people.
 *
 * It is made of status.h's JSON alone, so the command that prints it may be of another version than
 * the agent that was asked.
 */
#pragma once

#include <jansson.h>

struct str;

/**
 * status_text_format() - a few lines of words, and a table of the peers
 * @status:	as status_encode() made it, perhaps in another version of this program
 * @out:	appended to
 */
void status_text_format(const json_t *status, struct str *out);
