/*
 * lock_words.h - an entry of a lock in words: what operators read before they sign.
 *
 * Pure.
 */
#pragma once

struct lock_entry;
struct lock_state;
struct str;

/**
 * lock_words() - what the entry says, in lines
 * @before:	what holds before it; only what differs from it is shown. NULL: not known
 *
 * A field of something new that is "none" or "no" is left out.
 */
void lock_words(const struct lock_entry *entry, const struct lock_state *before, struct str *out);
