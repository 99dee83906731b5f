/* privileges.c - see privileges.h. */
#include "cmd/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "net/tun/tun.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"

/* Files of the system that a daemon may need. /home, /root, /var, /srv and /tmp are not among them,
 * even where every user may read them. */
static const struct sandbox_path system_paths[] = {
    {"/usr", SANDBOX_READ}, {"/bin", SANDBOX_READ},
    {"/lib", SANDBOX_READ | SANDBOX_EXEC}, /* loaders count as programs */
    {"/lib32", SANDBOX_READ}, {"/lib64", SANDBOX_READ | SANDBOX_EXEC},
    {"/usr/lib", SANDBOX_READ | SANDBOX_EXEC}, {"/usr/lib64", SANDBOX_READ | SANDBOX_EXEC},
    {"/opt", SANDBOX_READ}, {"/etc", SANDBOX_READ},
    {"/run", SANDBOX_READ}, /* the resolver's configuration, among others */
    {"/proc", SANDBOX_READ}, {"/sys", SANDBOX_READ},
    /* Devices, by their modes: the folder of the TUN device may be made, or mounted, later. */
    {"/dev", SANDBOX_READ | SANDBOX_WRITE},
    {"/proc/sys/net", SANDBOX_READ | SANDBOX_WRITE}, /* of its own interfaces */
    {"/var/lib/sss", SANDBOX_READ},                  /* names, by sssd */
};
#define N_SYSTEM_PATHS (sizeof(system_paths) / sizeof(*system_paths))

/* How many paths add_programs() adds. */
#define N_PROGRAMS 4

/** Who the daemon will be. */
struct user {
    uid_t uid;
    gid_t gid;
    bool is_changed; /* it is not the user that started the process */
    char why[160];   /* why it stays root; "" when it does not */
};

void privileges_add(struct privileges *p, const char *path, enum privileges_use use)
{
    if (path && p->n_paths < PRIVILEGES_PATHS_MAX)
        p->paths[p->n_paths++] = (struct privileges_path){.path = path, .use = use};
}

void privileges_add_folder_of(
    struct privileges *p, const char *path, char *buf, enum privileges_use use)
{
    if (!path)
        return;
    (void)snprintf(buf, PATH_MAX, "%s", path);
    privileges_add(p, dirname(buf), use);
}

/* ---- giving --------------------------------------------------------------------------------- */

/* Below /run a folder is there for the sockets of daemons, and may be given. */
static bool is_below_run(const char *path)
{
    return strncmp(path, "/run/", 5) == 0 || strncmp(path, "/var/run/", 9) == 0;
}

/*
 * Gives the user a file or a socket. Only a hard link could make its name in our folder lead to a
 * file of somebody else's, since symbolic links are not followed: what has a second link is left
 * alone.
 */
static void give_entry(int dir_fd, const char *name, const struct user *to)
{
    _cleanup_(closep) int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid == to->uid || st.st_nlink != 1)
        return;
    if (!S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode))
        return;
    if (fchownat(fd, "", to->uid, to->gid, AT_EMPTY_PATH) < 0)
        log_warning(
            "\"%s\" cannot be given to the user %u: %s", name, (unsigned)to->uid, strerror(errno));
}

/* Gives what is in a folder. @with_folders: also the folders in it, with their files. They are
 * root's when root has restored a backup. */
static void give_entries(int dir_fd, const struct user *to, bool with_folders)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        return;
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        _cleanup_(closep) int sub = -1;

        give_entry(dir_fd, d->d_name, to);
        if (!with_folders || d->d_name[0] == '.')
            continue;
        sub = openat(dir_fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub < 0)
            continue;
        give_entries(sub, to, false);
        (void)!fchown(sub, to->uid, to->gid);
    }
    (void)closedir(dir);
}

static int give_folder(const char *path, bool with_files, const struct user *to, struct err *e)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, -errno, "\"%s\" cannot be opened: %s", path, strerror(errno));
    if (with_files)
        give_entries(fd, to, true);
    if ((st.st_uid != to->uid || st.st_gid != to->gid) && fchown(fd, to->uid, to->gid) < 0)
        return err_set(e, -errno, "\"%s\" cannot be given to the user %u: %s", path,
            (unsigned)to->uid, strerror(errno));
    return 0;
}

static int give(const struct privileges_path *p, const struct user *to, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    char folder[PATH_MAX];
    char name[PATH_MAX];

    switch (p->use) {
    case PRIVILEGES_STATE:
        return give_folder(p->path, true, to, e);
    case PRIVILEGES_RUN:
        return is_below_run(p->path) ? give_folder(p->path, false, to, e) : 0;
    case PRIVILEGES_SOCKET:
        (void)snprintf(folder, sizeof(folder), "%s", p->path);
        (void)snprintf(name, sizeof(name), "%s", p->path);
        fd = open(dirname(folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            give_entry(fd, basename(name), to);
        return 0;
    case PRIVILEGES_WRITE:
    case PRIVILEGES_READ:
    case PRIVILEGES_DEVICE:
        break;
    }
    return 0;
}

/* Makes the directories that are missing. The daemon could not make them later, below root's
 * folders. */
static int make_folders(const struct privileges *p, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        const struct privileges_path *one = &p->paths[i];

        if (one->use == PRIVILEGES_STATE)
            r = statefile_make_dir(one->path, 0700, e);
        if (one->use == PRIVILEGES_RUN)
            r = statefile_make_dir(one->path, 0755, e);
    }
    return r;
}

/* ---- who ------------------------------------------------------------------------------------ */

/* Notes why the daemon stays root. */
static __attribute__((format(printf, 2, 3))) int stay(struct user *u, const char *why, ...)
{
    va_list args;

    va_start(args, why);
    (void)vsnprintf(u->why, sizeof(u->why), why, args);
    va_end(args);
    return 0;
}

/* In a child that has become the user: can the path be used as the daemon needs it? What give()
 * will give counts as given. */
static bool can_use(const struct privileges_path *p)
{
    char folder[PATH_MAX];

    switch (p->use) {
    case PRIVILEGES_STATE:
        (void)snprintf(folder, sizeof(folder), "%s", p->path);
        return access(dirname(folder), X_OK) == 0;
    case PRIVILEGES_RUN:
        return is_below_run(p->path) || access(p->path, W_OK | X_OK) == 0;
    case PRIVILEGES_WRITE:
        return access(p->path, F_OK) < 0 || access(p->path, W_OK | X_OK) == 0;
    case PRIVILEGES_READ:
        return access(p->path, R_OK) == 0;
    case PRIVILEGES_DEVICE:
        return access(p->path, F_OK) < 0 ? errno == ENOENT : access(p->path, R_OK | W_OK) == 0;
    case PRIVILEGES_SOCKET:
        break;
    }
    return true;
}

/* In the child: which path, counted from 1, is the first that cannot be used; 0: none. */
static int find_unreachable(const struct privileges *p, const struct user *u)
{
    if (setgroups(0, NULL) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
        setresuid(u->uid, u->uid, u->uid) < 0)
        return PRIVILEGES_PATHS_MAX + 1;
    for (size_t i = 0; i < p->n_paths; i++)
        if (!can_use(&p->paths[i]))
            return (int)i + 1;
    return 0;
}

/* Stays root, with the reason in @u, if the user could not use all paths. */
static int check_reach(const struct privileges *p, struct user *u, struct err *e)
{
    pid_t pid = fork();
    int status = 0;
    int first;

    if (pid < 0)
        return err_set(e, -errno, "cannot start a process: %s", strerror(errno));
    if (pid == 0)
        _exit(find_unreachable(p, u));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    first = WIFEXITED(status) ? WEXITSTATUS(status) : PRIVILEGES_PATHS_MAX + 1;
    if (first == 0)
        return 0;
    if (first > (int)p->n_paths)
        return stay(u, "this process may not change its user");
    return stay(u, "the user \"%.32s\" cannot use \"%.90s\"", p->user, p->paths[first - 1].path);
}

/* 0 with @ret->why when it stays root; or non-zero with words. */
static int find_user(const struct privileges *p, struct user *ret, struct err *e)
{
    struct passwd entry;
    struct passwd *found = NULL;
    struct stat st;
    char buf[4096];

    *ret = (struct user){.uid = geteuid(), .gid = getegid()};
    if (ret->uid != 0)
        return 0;
    if (strcmp(p->user, "root") == 0)
        return stay(ret, "--user says so");
    (void)getpwnam_r(p->user, &entry, buf, sizeof(buf), &found);
    if (!found && strcmp(p->user, PRIVILEGES_USER) == 0)
        return stay(ret, "there is no user \"%s\" (make install makes it)", p->user);
    if (!found)
        return err_set(e, -ENOENT, "--user \"%.60s\": there is no such user", p->user);
    /* One that others may enter may be more than the daemon's own folder, as with --state /var/lib.
     */
    for (size_t i = 0; i < p->n_paths; i++)
        if (p->paths[i].use == PRIVILEGES_STATE && stat(p->paths[i].path, &st) == 0 &&
            (st.st_mode & 0077) != 0)
            return stay(ret, "others may enter \"%.100s\"", p->paths[i].path);
    ret->uid = entry.pw_uid;
    ret->gid = entry.pw_gid;
    ret->is_changed = true;
    return check_reach(p, ret, e);
}

int privileges_give(const char *path, const char *user, struct err *e)
{
    struct user to = {.is_changed = true};
    struct passwd entry;
    struct passwd *found = NULL;
    char buf[4096];

    if (geteuid() != 0)
        return err_set(e, -EPERM, "only root can give \"%.200s\" to another user", path);
    (void)getpwnam_r(user, &entry, buf, sizeof(buf), &found);
    if (!found)
        return err_set(e, -ENOENT, "--user \"%.60s\": there is no such user", user);
    to.uid = entry.pw_uid;
    to.gid = entry.pw_gid;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    return give_folder(path, true, &to, e);
}

/* ---- dropping ------------------------------------------------------------------------------- */

static unsigned access_of(enum privileges_use use)
{
    switch (use) {
    case PRIVILEGES_STATE:
    case PRIVILEGES_RUN:
    case PRIVILEGES_WRITE:
    case PRIVILEGES_DEVICE:
        return SANDBOX_READ | SANDBOX_WRITE;
    case PRIVILEGES_READ:
        return SANDBOX_READ;
    case PRIVILEGES_SOCKET:
        break;
    }
    return 0;
}

/* Our own program, its loader, the data plane beside it, and their folder, which may hold
 * libraries. */
static size_t add_programs(struct sandbox_path ret[static N_PROGRAMS], char self[static PATH_MAX],
    char data_plane[static PATH_MAX], char folder[static PATH_MAX])
{
    const char *loader = process_loader_path();
    size_t n = 0;
    char *slash;

    (void)process_self_path(self);
    (void)snprintf(data_plane, PATH_MAX, "%s", self);
    slash = strrchr(data_plane, '/');
    ret[n++] = (struct sandbox_path){self, SANDBOX_READ | SANDBOX_EXEC};
    if (loader)
        ret[n++] = (struct sandbox_path){loader, SANDBOX_READ | SANDBOX_EXEC};
    if (!slash || (size_t)(slash - data_plane) + sizeof("/weft-wg") > PATH_MAX)
        return n;
    memcpy(slash, "/weft-wg", sizeof("/weft-wg"));
    ret[n++] = (struct sandbox_path){data_plane, SANDBOX_READ | SANDBOX_EXEC};
    (void)snprintf(folder, PATH_MAX, "%s", self);
    ret[n++] = (struct sandbox_path){dirname(folder), SANDBOX_READ};
    return n;
}

static int enter(
    const struct privileges *p, const struct user *u, struct sandbox_result *ret, struct err *e)
{
    struct sandbox_path paths[N_SYSTEM_PATHS + PRIVILEGES_PATHS_MAX + N_PROGRAMS];
    struct sandbox s = {.kind = p->kind,
        .uid = u->uid,
        .gid = u->gid,
        .capabilities = p->capabilities,
        .may_start = p->may_start,
        .paths = paths};
    char self[PATH_MAX];
    char data_plane[PATH_MAX];
    char folder[PATH_MAX];
    struct stat st;

    memcpy(paths, system_paths, sizeof(system_paths));
    s.n_paths = N_SYSTEM_PATHS;
    for (size_t i = 0; i < p->n_paths; i++)
        if (access_of(p->paths[i].use) != 0)
            paths[s.n_paths++] =
                (struct sandbox_path){p->paths[i].path, access_of(p->paths[i].use)};
    if (p->may_start)
        s.n_paths += add_programs(paths + s.n_paths, self, data_plane, folder);
    if (geteuid() == 0 && u->uid == 0) {
        s.capabilities |= p->root_capabilities;
        /* The mode of another user's path binds root as well, without CAP_DAC_OVERRIDE. */
        for (size_t i = 0; i < p->n_paths; i++)
            if (stat(p->paths[i].path, &st) == 0 && st.st_uid != 0)
                s.capabilities |= SANDBOX_CAP(CAP_DAC_OVERRIDE);
    }
    return sandbox_enter(&s, ret, e);
}

static void say(const struct privileges *p, const struct user *u, const struct sandbox_result *now)
{
    char capabilities[160];
    char line[PRIVILEGES_SAID_MAX];
    const char *limits = now->has_landlock ? "" : "; this kernel has no Landlock for its files";
    const char *calls = now->has_calls ? "" : "; a sanitizer's build has no list of system calls";
    const char *memory = now->is_locked || !sandbox_kind_has_keys(p->kind)
                             ? ""
                             : "; its limit of locked memory lets keys be swapped out";

    (void)sandbox_format_capabilities(now->capabilities, capabilities, sizeof(capabilities));
    if (u->why[0])
        (void)snprintf(line, sizeof(line), "stays root, as %s; its capabilities: %s%s%s%s", u->why,
            capabilities, limits, calls, memory);
    else
        (void)snprintf(line, sizeof(line), "runs as %s (%u); its capabilities: %s%s%s%s",
            u->is_changed ? p->user : "user", (unsigned)u->uid, capabilities, limits, calls,
            memory);
    if (p->said)
        memcpy(p->said, line, sizeof(line));
    else
        log_info("%s", line);
}

int privileges_drop(const struct privileges *p, struct err *e)
{
    struct sandbox_result now = {0};
    struct user u = {.uid = geteuid()};
    int r = 0;

    if (u.uid == 0)
        r = make_folders(p, e);
    if (r == 0)
        r = find_user(p, &u, e);
    if (u.why[0])
        u.uid = u.gid = 0;
    for (size_t i = 0; r == 0 && geteuid() == 0 && i < p->n_paths; i++)
        r = give(&p->paths[i], &u, e);
    if (r == 0 && p->has_tunnel)
        tun_steer_prepare(p->may_start);
    if (r == 0)
        r = enter(p, &u, &now, e);
    if (r == 0)
        say(p, &u, &now);
    return r;
}
