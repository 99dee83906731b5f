/*
 * libfabric.h - what libfabric's fi_info says of this machine, where it is installed.
 *
 * EFA's device alone carries nothing: NCCL's plugin uses it by libfabric's provider efa. Whether
 * libfabric has that provider, and how many devices it sees, only libfabric knows. fi_info is its
 * own tool (Debian's libfabric-bin, or in Amazon's EFA installer). The agent never runs it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct fabric_facts;
struct str;

#define LIBFABRIC_TEXT_MAX    128 /* bytes of the list of providers, with its zero */
#define LIBFABRIC_DOMAINS_MAX 64

struct libfabric {
    char providers[LIBFABRIC_TEXT_MAX]; /* between commas, each once; "": none */
    unsigned n_efa;                     /* devices that the provider efa has */
};

/**
 * libfabric_parse() - read the output of fi_info
 * @ret:	always set. What is no line of fi_info is passed over
 */
void libfabric_parse(struct libfabric *ret, const char *text);

/**
 * libfabric_ask() - run fi_info, for two seconds at most
 *
 * Only from the places where packages put it, never from PATH: the variables of a job are decided
 * before its environment is.
 *
 * Return: false: it is not installed, or did not end.
 */
bool libfabric_ask(struct libfabric *ret);

/**
 * libfabric_judge() - append a line for what does not fit together: a machine with EFA whose
 * libfabric has no provider for it, or sees fewer devices than the kernel
 */
void libfabric_judge(const struct libfabric *l, const struct fabric_facts *f, struct str *out);
