/*
 * netns.h - a network namespace for each test of a program that asks the kernel.
 *
 * Without the right to make one the test is skipped, and says so.
 */
#pragma once

#include "base/addr.h"

struct netlink;

/** netns_enter() - a test's set-up: a fresh, empty namespace; @state is for netns_need(). */
int netns_enter(void **state);

/** netns_leave() - the test's teardown. */
int netns_leave(void **state);

/** netns_need() - the namespace's NETLINK_ROUTE socket, lent; skips the test where there is none.
 */
struct netlink *netns_need(void **state);

/** netns_raise_loopback() - have "lo" up, as no fresh namespace has it. Return: its number. */
unsigned netns_raise_loopback(struct netlink *nl);

/**
 * netns_be_alone() - for a whole program, before its tests: nobody else has ports of its loopback
 *
 * Without the right to make a namespace it stays in the machine's.
 */
void netns_be_alone(void);

/** netns_prefix() - the text as a prefix; fails the test if it is none. */
struct ip_prefix netns_prefix(const char *text);
