/* blocks_file.c - see blocks_file.h. */
#include "agent/state/blocks_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "api/content/body.h"
#include "base/err.h"
#include "mesh/object/fields.h"
#include "os/file.h"
#include "path/candidate.h"

#define SUFFIX   ".blocks"
#define FILE_MAX 1024

/* A slash at the end of the directory's name does not make the file one in it. */
static const char *path_of(const char *state_dir, char buf[static PATH_MAX])
{
    size_t len = strnlen(state_dir, STATE_DIR_MAX);

    while (len > 1 && state_dir[len - 1] == '/')
        len--;
    (void)snprintf(buf, PATH_MAX, "%.*s" SUFFIX, (int)len, state_dir);
    return buf;
}

struct hosts_rules blocks_file_rules(const struct snapshot *born)
{
    struct hosts_rules rules = {.cidr4 = born->network.cidr4, .cidr6 = born->network.cidr6};

    (void)snprintf(
        rules.network, sizeof(rules.network), "%.*s", NAME_MAX_LEN, born->network.meta.name);
    (void)snprintf(rules.node, sizeof(rules.node), "%.*s", NAME_MAX_LEN, born->self);
    return rules;
}

int blocks_file_write(const struct hosts_rules *rules, const char *state_dir, struct err *e)
{
    char cidr4[IP_PREFIX_TEXT_MAX];
    char cidr6[IP_PREFIX_TEXT_MAX];
    char path[PATH_MAX];
    json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "network", rules->network, "node", rules->node,
        "cidr4", ip_prefix_format(&rules->cidr4, cidr4), "cidr6",
        ip_prefix_format(&rules->cidr6, cidr6));
    _cleanup_(freep) char *text = body_format(json);

    json_decref(json);
    if (!text)
        return err_set(e, -ENOMEM, "no memory to write %s", path_of(state_dir, path));
    return statefile_replace(path_of(state_dir, path), text, strlen(text), 0644, e);
}

static int decode(
    struct hosts_rules *ret, const char *text, size_t len, const char *path, struct err *e)
{
    struct hosts_rules rules = {.network = ""};
    json_auto_t *json = NULL;
    struct fields f;
    const char *cidr4;
    const char *cidr6;
    int r;

    if (body_parse(&json, text, len, NULL) != 0)
        return err_set(e, -EINVAL, "%s is damaged", path);
    f = fields_make(json, path, e);
    fields_name(&f, "network", FIELDS_REQUIRED, rules.network);
    fields_name(&f, "node", FIELDS_REQUIRED, rules.node);
    cidr4 = fields_string(&f, "cidr4", FIELDS_REQUIRED, 1, IP_PREFIX_TEXT_MAX);
    cidr6 = fields_string(&f, "cidr6", FIELDS_REQUIRED, 1, IP_PREFIX_TEXT_MAX);
    r = fields_end(&f);
    if (r == 0)
        r = block_parse(&rules.cidr4, cidr4, true, path, e);
    if (r == 0)
        r = block_parse(&rules.cidr6, cidr6, false, path, e);
    if (r == 0)
        *ret = rules;
    return r;
}

/* Could anybody but root, or who reads it, have written it? */
static int check_owner(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set(e, -errno, "%s cannot be looked at: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
        (st.st_mode & 0022) == 0)
        return 0;
    return err_set(e, -EPERM,
        "%s is not believed: it has to be a file of root's that nobody else may write", path);
}

int blocks_file_read(struct hosts_rules *ret, const char *state_dir, struct err *e)
{
    char path[PATH_MAX];
    char text[FILE_MAX + 1];
    _cleanup_(closep) int fd =
        open(path_of(state_dir, path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len;
    int r;

    if (fd < 0 && errno == ENOENT)
        return err_set(e, BLOCKS_FILE_E_ABSENT,
            "there is no %s, in which root says which addresses are the network's: restart the "
            "agent, which writes it",
            path);
    if (fd < 0)
        return err_set(e, -errno, "%s cannot be opened: %s", path, strerror(errno));
    r = check_owner(fd, path, e);
    if (r < 0)
        return r;
    len = read(fd, text, sizeof(text));
    if (len < 0 || len > FILE_MAX)
        return err_set(e, -EINVAL, "%s cannot be read, or has more than %d bytes", path, FILE_MAX);
    return decode(ret, text, (size_t)len, path, e);
}

/* A block that reaches out of a private one begins or ends outside of it. */
static bool is_private(const struct ip_prefix *p)
{
    unsigned first = p->len + (ip_addr_is_v4(&p->addr) ? 96 : 0);
    struct ip_addr end = p->addr;

    for (unsigned i = first; i < 128; i++)
        end.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
    return candidate_is_private(&p->addr) && candidate_is_private(&end);
}

static bool is_given_away(const char *state_dir)
{
    char path[PATH_MAX];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%.*s/node.json", STATE_DIR_MAX, state_dir);
    return lstat(path, &st) < 0 || st.st_uid != 0;
}

int blocks_file_keep(struct hosts_rules *rules, const char *state_dir, struct err *e)
{
    struct hosts_rules have;
    char path[PATH_MAX];
    int r = blocks_file_read(&have, state_dir, e);

    if (r == 0)
        *rules = have;
    if (r != BLOCKS_FILE_E_ABSENT)
        return r;
    if (is_given_away(state_dir) && (!is_private(&rules->cidr4) || !is_private(&rules->cidr6)))
        return err_set(e, -EPERM,
            "there is no %s, and the blocks that the agent says are not private ones, so they are "
            "not believed: weft leave and weft join write it",
            path_of(state_dir, path));
    return blocks_file_write(rules, state_dir, e) == 0 ? 0 : BLOCKS_FILE_E_UNKEPT;
}

void blocks_file_remove(const char *state_dir)
{
    char path[PATH_MAX];

    (void)unlink(path_of(state_dir, path));
}
