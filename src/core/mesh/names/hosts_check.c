/* hosts_check.c - see hosts_check.h. */
#include "mesh/names/hosts_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/names/hosts.h"
#include "mesh/names/reserved.h"

#define LINE_LEN_MAX 1024
#define NAME_LEN_MAX 253 /* RFC 1035, 2.3.4 */

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

int hosts_check_owner(const struct hosts_rules *rules, const char *owner, struct err *e)
{
    char begin[sizeof(rules->network) + sizeof(rules->node) + 3];
    size_t len;

    (void)snprintf(begin, sizeof(begin), "%s/%s/", rules->network, rules->node);
    len = strlen(begin);
    if (strncmp(owner, begin, len) == 0 && strlen(owner) < HOSTS_OWNER_MAX &&
        owner[len + strspn(owner + len, "0123456789abcdef")] == '\0')
        return 0;
    return err_set(e, -EINVAL, "\"%.100s\" is not the owner of lines of this node", owner);
}

/* Such a name is a node's: the domain is used by nobody else. */
static bool is_qualified(const char *name)
{
    static const char end[] = "." HOSTS_DOMAIN;
    size_t len = strlen(name);

    return len > sizeof(end) && strcmp(name + len - (sizeof(end) - 1), end) == 0;
}

/* The hub alone may have the reserved name "hub": see mesh/names/hosts.c. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);

    if (len > NAME_LEN_MAX || name[0] == '-' || name[0] == '.' || strspn(name, name_letters) != len)
        return false;
    return is_qualified(name) || strcmp(name, "hub") == 0 || !reserved_is(name);
}

/* @line: one line without its end, to be cut into words. */
static int check_line(const struct hosts_rules *rules, char *line, struct err *e)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " \t", &rest);
    struct ip_addr address;
    unsigned n = 0;

    if (!word || ip_addr_parse(&address, word, NULL) < 0 ||
        (!ip_prefix_has(&rules->cidr4, &address) && !ip_prefix_has(&rules->cidr6, &address)))
        return err_set(e, -EINVAL, "\"%.60s\" is no address of the network", word ? word : "");
    for (word = strtok_r(NULL, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest), n++)
        if (!is_name(word))
            return err_set(e, -EINVAL, "\"%.60s\" is no name for a node", word);
    return n > 0 ? 0 : err_set(e, -EINVAL, "an address has no name");
}

int hosts_check_block(const struct hosts_rules *rules, const char *block, size_t len, struct err *e)
{
    char line[LINE_LEN_MAX];
    unsigned number = 0;

    for (size_t off = 0, n; off < len; off += n + 1) {
        const char *end = memchr(block + off, '\n', len - off);

        number++;
        n = end ? (size_t)(end - block) - off : len - off;
        if (!end || n >= sizeof(line) || memchr(block + off, '\0', n))
            return err_set(e, -EINVAL, "line %u is not a line of text", number);
        memcpy(line, block + off, n);
        line[n] = '\0';
        if (check_line(rules, line, e) < 0)
            return err_prefix(e, "line %u", number);
    }
    return 0;
}
