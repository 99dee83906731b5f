/*
 * watches.h - reads the watches of all nodes in one thread, and says when all have been told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct fake_known;
struct watches;

/** watches_start() - room for @n; the thread runs until the program ends. */
struct watches *watches_start(uint32_t n);

/** watches_add() - @fd: taken; node @number's watch, before its first byte. Threads: any. */
void watches_add(struct watches *w, uint32_t number, int fd);

/** watches_cut() - close all of them, as when the network is cut. */
void watches_cut(struct watches *w);

/** watches_known() - what node @number's watch has come to know, also when it has ended. */
struct fake_known watches_known(struct watches *w, uint32_t number);

/** watches_take_ended() - one of those that the hub has closed, once. False: there is none. */
bool watches_take_ended(struct watches *w, uint32_t *ret_number);

/** watches_wait_snapshots() - until @n watches have had theirs, or @patience. How many have. */
uint32_t watches_wait_snapshots(struct watches *w, uint32_t n, nsec_t patience);

/** watches_expect() - from now on look for @mark, at most 31 characters. */
void watches_expect(struct watches *w, const char *mark);

/**
 * watches_wait_told() - until @n watches have had the mark, or @patience
 * @ret_at:	when the last of them had
 *
 * Return: how many have had it.
 */
uint32_t watches_wait_told(struct watches *w, uint32_t n, nsec_t patience, nsec_t *ret_at);

/** watches_lost() - how many the hub has closed. */
uint32_t watches_lost(const struct watches *w);

/** watches_bytes() - what came by all of them. */
uint64_t watches_bytes(const struct watches *w);
