/* hosts_check.c - see hosts_check.h. */
#include "mesh/names/hosts_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/names/hosts.h"
#include "mesh/names/reserved.h"

#define LINE_LEN_MAX 1024

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

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

/* Is @domain, which follows a node's name, the network's own? Nobody else uses it. */
static bool is_domain(const struct hosts_rules *rules, const char *domain)
{
    size_t len = strlen(rules->network);

    return domain[0] == '.' && strncmp(domain + 1, rules->network, len) == 0 &&
           strcmp(domain + 1 + len, "." HOSTS_DOMAIN) == 0;
}

/*
 * A node's name, qualified or bare. Neither it nor the name of a machine has a dot of its own, so
 * no name of the Internet is one. The hub alone may have the reserved name "hub": see
 * mesh/names/hosts.c.
 */
static bool is_name(const struct hosts_rules *rules, const char *name)
{
    size_t len = strspn(name, name_letters);

    if (len == 0 || len > NAME_MAX_LEN || name[0] == '-')
        return false;
    if (name[len] != '\0')
        return is_domain(rules, name + len);
    return strcmp(name, "hub") == 0 || !reserved_is(name);
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
        if (!is_name(rules, word))
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
