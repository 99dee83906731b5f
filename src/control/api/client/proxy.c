/* proxy.c - see proxy.h. */
#include "proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/content/token.h"
#include "base/addr.h"
#include "base/err.h"

/* What follows the scheme; NULL when the scheme is neither http nor https. */
static const char *skip_scheme(const char *text)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (unsigned i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return text + strlen(schemes[i]);
    return strstr(text, "://") ? NULL : text;
}

/* Where HOST:PORT begins, behind scheme, user and password; a path may follow it. NULL: as
 * skip_scheme(). */
static const char *find_address(const char *text)
{
    const char *rest = skip_scheme(text);
    const char *at = rest ? strrchr(rest, '@') : NULL;

    return at ? at + 1 : rest;
}

const char *proxy_name(const char *text, char buf[static PROXY_TEXT_MAX])
{
    const char *address = find_address(text);

    (void)snprintf(buf, PROXY_TEXT_MAX, "%s", address ? address : "?");
    buf[strcspn(buf, "/")] = '\0';
    return buf;
}

int proxy_check(const char *text, struct err *e)
{
    char name[PROXY_TEXT_MAX];
    struct err why = ERR_NULL;
    bool printable = true;

    for (const char *p = text; *p; p++)
        printable &= *p > ' ' && *p < 0x7f;
    if (printable && !skip_scheme(text))
        return err_set(e, -EINVAL, "the proxy's scheme \"%.*s\" is neither http nor https",
            (int)strcspn(text, ":"), text);
    if (strlen(text) >= PROXY_TEXT_MAX || !printable || !find_address(text) ||
        host_port_check(proxy_name(text, name), &why) != 0)
        return err_set(e, -EINVAL,
            "the proxy \"%s\" is not http://[USER:PASSWORD@]HOST:PORT, of at most %d characters",
            proxy_name(text, name), PROXY_TEXT_MAX - 1);
    return 0;
}

/* ---- the environment ------------------------------------------------------------------------ */

/* Is @host excepted by one word of the list: an address, a block of them, or the end of a name? */
static bool is_meant(const char *word, const char *host)
{
    size_t n_word;
    size_t n_host = strlen(host);
    struct ip_prefix block;
    struct ip_addr addr;

    if (strcmp(word, "*") == 0)
        return true;
    if (ip_addr_parse(&addr, host, NULL) == 0)
        return ip_prefix_parse(&block, word, NULL) == 0 && ip_prefix_has(&block, &addr);
    while (*word == '.')
        word++;
    n_word = strlen(word);
    if (n_word == 0 || n_word > n_host || strcasecmp(host + n_host - n_word, word) != 0)
        return false;
    return n_word == n_host || host[n_host - n_word - 1] == '.';
}

/* The host of "HOST:PORT" or "[v6]:PORT". */
static void host_of(const char *address, char host[static TOKEN_API_MAX + 1])
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : strlen(address);

    if (address[0] == '[' && len >= 2 && address[len - 1] == ']') {
        address++;
        len -= 2;
    }
    (void)snprintf(host, TOKEN_API_MAX + 1, "%.*s", (int)len, address);
}

bool proxy_is_excepted(const char *list, const char *address)
{
    char host[TOKEN_API_MAX + 1];
    char word[TOKEN_API_MAX + 1];

    host_of(address, host);
    while (*list) {
        size_t len = strcspn(list, ", ");

        if (len > 0 && len < sizeof(word)) {
            memcpy(word, list, len);
            word[len] = '\0';
            if (is_meant(word, host))
                return true;
        }
        list += len;
        list += strspn(list, ", ");
    }
    return false;
}

static const char *variable(const char *lower, const char *upper)
{
    const char *value = getenv(lower);

    if (!value || !*value)
        value = getenv(upper);
    return value && *value ? value : NULL;
}

int proxy_from_environment(const char *address, char ret[static PROXY_TEXT_MAX], struct err *e)
{
    const char *proxy = variable("https_proxy", "HTTPS_PROXY");
    const char *except = variable("no_proxy", "NO_PROXY");
    int r;

    if (!proxy || (except && proxy_is_excepted(except, address)))
        return PROXY_E_NONE;
    r = proxy_check(proxy, e);
    if (r != 0) {
        (void)err_prefix(e, "https_proxy");
        return r;
    }
    (void)snprintf(ret, PROXY_TEXT_MAX, "%s", proxy);
    return 0;
}
