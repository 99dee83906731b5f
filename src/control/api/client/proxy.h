/*
 * proxy.h - which HTTP proxy leads to the hub, where one has to be used.
 *
 * "http://[USER:PASSWORD@]HOST:PORT", or https: for a proxy that speaks TLS
 * itself. A hub is asked through it with CONNECT, so the proxy sees the hub's
 * address and bytes of TLS. The environment is read as curl reads it: https_proxy
 * or HTTPS_PROXY, and no_proxy or NO_PROXY for what is to be reached without.
 */
#pragma once

#include <stdbool.h>

struct err;

/** Longest proxy, with its zero. */
#define PROXY_TEXT_MAX 512

/** proxy_check() - is @text a proxy, as above? 0, or -EINVAL with words that hold no password. */
int proxy_check(const char *text, struct err *e);

/**
 * proxy_from_environment() - what the environment says for a hub
 * @address:	"HOST:PORT"
 * @ret:	filled in when there is one
 *
 * Return: 0; PROXY_E_NONE; or -EINVAL with words that name the variable.
 */
int proxy_from_environment(const char *address, char ret[static PROXY_TEXT_MAX], struct err *e);

/** The environment names none, or excepts this address. */
#define PROXY_E_NONE 1

/** proxy_is_excepted() - does a list such as no_proxy's name the host of @address? */
bool proxy_is_excepted(const char *list, const char *address);

/** proxy_name() - without user and password, for people; into @buf; returns @buf. */
const char *proxy_name(const char *text, char buf[static PROXY_TEXT_MAX]);
