/*
 * seal.h - a sum in each record of the store, so that a damaged one is seen as such.
 *
 *     {"next":7}   of key "ipam/default"   is kept as   {"next":7,"sum":"0f1e2d3c4b5a6978"}
 *
 * The sum is the beginning of the SHA-256 of the key, a newline and the text
 * without the sum, so a bit that flipped is seen, and so is a record that lies
 * under another one's key. It is no signature: who can write to the store can
 * make it. A record without one, of a hub that wrote none, passes.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>

struct err;

/** seal_add() - the JSON object @text with the sum; free(). NULL: no memory, or no object. */
char *seal_add(const char *key, const char *text);

/** seal_is_there() - does @text end with a sum? */
bool seal_is_there(const char *text);

/**
 * seal_check() - is the text as it was when it got its sum?
 * @key:	under which it lies
 *
 * Return: 0, also when it has none; -EINVAL with words: the sum is another one, or the text does
 * not end behind it as it should; -ENOMEM with words.
 */
int seal_check(const char *key, const char *text, struct err *e);
