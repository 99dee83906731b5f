/* backup.c - see backup.h. */
#include "hub/networks/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "hub/networks/disk_work.h"
#include "hub/networks/networks.h"
#include "mesh/object/object.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/store.h"

/* Longest file of options. */
#define BACKUP_OPTIONS_MAX (64u << 10)

#define PATH_SIZE    512
#define OPTIONS_FILE "options.json"

/* The files of a state beside its keys, and whether a hub cannot do without them. */
static const struct {
    const char *name;
    bool is_needed;
} files[] = {
    {"hub.db", true},
    {"tls.key", true},
    {"tls.crt", false},
    {"admin.token", false},
    {"addresses.json", false},
    {OPTIONS_FILE, false},
};

/* Write "DIR/name" into @ret, or "DIR" when the name is "". */
static int join_path(char ret[static PATH_SIZE], const char *dir, const char *name, struct err *e)
{
    int n = snprintf(ret, PATH_SIZE, "%s%s%s", dir, name[0] ? "/" : "", name);

    return n > 0 && n < PATH_SIZE
               ? 0
               : err_set(e, -ENAMETOOLONG, "the path \"%.200s\" is too long", dir);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int move_bytes(int from, int to)
{
    char buf[1 << 16];
    ssize_t n;

    while ((n = read(from, buf, sizeof(buf))) > 0)
        for (ssize_t done = 0, w; done < n; done += w) {
            w = write(to, buf + done, (size_t)(n - done));
            if (w < 0)
                return -errno;
        }
    return n < 0 || fsync(to) < 0 ? -errno : 0;
}

/* Copy one file, with mode 0600. STATEFILE_E_ABSENT: there is none at @from. */
static int copy_file(const char *from, const char *to, struct err *e)
{
    _cleanup_(closep) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_(closep) int out = -1;
    int r;

    if (in < 0 && errno == ENOENT)
        return STATEFILE_E_ABSENT;
    if (in < 0)
        return err_set(e, -errno, "\"%s\" cannot be read: %s", from, strerror(errno));
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return err_set(e, -errno, "\"%s\" cannot be made: %s", to, strerror(errno));
    r = move_bytes(in, out);
    return r == 0 ? 0 : err_set(e, r, "\"%s\" cannot be written: %s", to, strerror(-r));
}

static int copy_named(const char *from, const char *to, const char *name, struct err *e)
{
    char source[PATH_SIZE];
    char target[PATH_SIZE];
    int r = join_path(source, from, name, e);

    if (r == 0)
        r = join_path(target, to, name, e);
    return r == 0 ? copy_file(source, target, e) : r;
}

static bool is_key_file(const char *name)
{
    size_t len = strlen(name);

    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".key") == 0;
}

/* Copy the key files of all networks. */
static int copy_keys(const char *from, const char *to, struct err *e)
{
    char source[PATH_SIZE];
    char target[PATH_SIZE];
    const struct dirent *d;
    DIR *dir;
    int r = join_path(source, from, "keys", e);

    if (r == 0)
        r = join_path(target, to, "keys", e);
    if (r == 0)
        r = statefile_make_dir(target, 0700, e);
    if (r != 0)
        return r;
    dir = opendir(source);
    if (!dir)
        return err_set(e, -errno, "\"%s\" cannot be read: %s", source, strerror(errno));
    while (r == 0 && (d = readdir(dir)))
        if (is_key_file(d->d_name))
            r = copy_named(source, target, d->d_name, e);
    (void)closedir(dir);
    return r;
}

/* Copy a whole state. Without @with_db the database is left out: the store has copied it. */
static int copy_all(const char *from, const char *to, bool with_db, struct err *e)
{
    int r = 0;

    for (size_t i = with_db ? 0 : 1; r == 0 && i < sizeof(files) / sizeof(*files); i++) {
        r = copy_named(from, to, files[i].name, e);
        if (r == STATEFILE_E_ABSENT)
            r = files[i].is_needed
                    ? err_set(e, -ENOENT, "\"%s\" has no %s: it is no copy of a hub's state", from,
                          files[i].name)
                    : 0;
    }
    if (r == 0)
        r = copy_keys(from, to, e);
    return r == 0 ? statefile_sync_dir_of(to, e) : r;
}

static void remove_keys(const char *dir)
{
    char path[PATH_SIZE];
    char keys[PATH_SIZE];
    const struct dirent *d;
    DIR *list;

    if (join_path(keys, dir, "keys", NULL) != 0)
        return;
    list = opendir(keys);
    while (list && (d = readdir(list)))
        if (is_key_file(d->d_name) && join_path(path, keys, d->d_name, NULL) == 0)
            (void)unlink(path);
    if (list)
        (void)closedir(list);
    (void)rmdir(keys);
}

void backup_remove(const char *dir)
{
    static const char *const more[] = {"hub.db-wal", "hub.db-shm", "hub.db-journal"};
    char path[PATH_SIZE];

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (join_path(path, dir, files[i].name, NULL) == 0)
            (void)unlink(path);
    for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
        if (join_path(path, dir, more[i], NULL) == 0)
            (void)unlink(path);
    remove_keys(dir);
    (void)rmdir(dir);
}

/* ---- the options of the hub ------------------------------------------------------------------ */

int backup_keep_options(const char *state_dir, const char *const *options, size_t n, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    _cleanup_(freep) char *held = NULL;
    json_t *list = json_array();
    char path[PATH_SIZE];
    int r = join_path(path, state_dir, OPTIONS_FILE, e);

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_string(options[i]));
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (r == 0 && !text)
        r = err_set(e, -ENOMEM, "no memory for \"%s\"", path);
    if (r != 0)
        return r;
    if (statefile_read(path, BACKUP_OPTIONS_MAX, &held, NULL, NULL) == 0 && strcmp(held, text) == 0)
        return 0;
    return statefile_replace(path, text, strlen(text), 0600, e);
}

/* As a shell reads it back. */
static void add_word(struct str *ret, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+.,:/@%[]";

    str_add(ret, " ");
    if (word[0] && word[strspn(word, plain)] == '\0') {
        str_add(ret, word);
        return;
    }
    str_add(ret, "'");
    for (const char *c = word; *c; c++)
        str_addf(ret, *c == '\'' ? "'\\''" : "%c", *c);
    str_add(ret, "'");
}

void backup_read_options(const char *state_dir, struct str *ret)
{
    _cleanup_(freep) char *text = NULL;
    json_t *list = NULL;
    const json_t *word;
    char path[PATH_SIZE];
    size_t i;

    if (join_path(path, state_dir, OPTIONS_FILE, NULL) == 0 &&
        statefile_read(path, BACKUP_OPTIONS_MAX, &text, NULL, NULL) == 0)
        list = json_loads(text, 0, NULL);
    json_array_foreach(list, i, word)
        if (json_is_string(word))
            add_word(ret, json_string_value(word));
    json_decref(list);
}

/* ---- making --------------------------------------------------------------------------------- */

/* A copy that is being made. */
struct making {
    struct disk_works *works; /* pins */
    char state_dir[PATH_SIZE];
    char fresh[PATH_SIZE];
    char place[PATH_SIZE];
    int r;
    struct err e;
    backup_done_fn done;
    void *ctx; /* pins */
};

/* Copy the rest, now that the database is there. Runs on a thread of the loop's pool. */
static void finish(void *arg)
{
    struct making *m = arg;

    m->r = copy_all(m->state_dir, m->fresh, false, &m->e);
    if (m->r == 0) {
        backup_remove(m->place);
        if (rename(m->fresh, m->place) < 0)
            m->r = err_set(&m->e, -errno, "\"%s\" cannot be made: %s", m->place, strerror(errno));
    }
    if (m->r == 0)
        m->r = statefile_sync_dir_of(m->place, &m->e);
    else
        backup_remove(m->fresh);
}

static void on_finished(void *arg)
{
    struct making *m = arg;

    m->done(m->ctx, m->r, m->place, &m->e);
    free(m);
}

static void on_db(void *ctx, const struct store_answer *a)
{
    struct making *m = ctx;

    m->r = a->r;
    m->e = *a->e;
    if (m->r == 0 && disk_work(m->works, finish, on_finished, m) == 0)
        return;
    if (m->r == 0)
        m->r = err_set(&m->e, -ENOMEM, "no memory for a copy");
    backup_remove(m->fresh);
    on_finished(m);
}

int backup_make(struct store *store, struct disk_works *works, const char *state_dir,
    backup_done_fn done, void *ctx, struct err *e)
{
    struct making *m = calloc(1, sizeof(*m));
    char db[PATH_SIZE];
    int r;

    if (!m)
        return err_set(e, -ENOMEM, "no memory for a copy");
    *m = (struct making){.works = works, .done = done, .ctx = ctx};
    r = join_path(m->state_dir, state_dir, "", e);
    if (r == 0)
        r = join_path(m->fresh, state_dir, "backup.new", e);
    if (r == 0)
        r = join_path(m->place, state_dir, "backup", e);
    if (r == 0)
        r = join_path(db, m->fresh, "hub.db", e);
    if (r == 0) {
        /* A hub that ended in the middle of this has left it. */
        backup_remove(m->fresh);
        r = statefile_make_dir(m->fresh, 0700, e);
    }
    if (r == 0)
        r = store_copy(store, db, on_db, m, e);
    if (r != 0)
        free(m);
    return r;
}

int backup_copy(const char *from, const char *to, struct err *e)
{
    int r;

    if (mkdir(to, 0700) < 0)
        return err_set(e, -errno, "\"%s\" cannot be made: %s", to, strerror(errno));
    r = copy_all(from, to, true, e);
    if (r != 0)
        backup_remove(to);
    return r;
}

/* ---- restoring ------------------------------------------------------------------------------ */

static int open_store(struct store **ret, const char *dir, struct err *e)
{
    char url[PATH_SIZE + 16];

    (void)snprintf(url, sizeof(url), "sqlite:%s/hub.db", dir);
    return store_open(ret, url, clock_now(), e);
}

/* Opens the database in @dir, which says whether it is sound and whether somebody has it. */
static int open_db(const char *dir, struct err *e)
{
    struct store *store = NULL;
    int r = open_store(&store, dir, e);

    store_free(store);
    return r;
}

/* Where the keys of networks are looked for. */
struct key_search {
    const char *dir;
    struct str *keyless; /* the networks without one */
};

static bool has_key(const char *dir, const char *network)
{
    struct x25519_secret secret = {{0}};
    struct x25519_public public;
    char path[PATH_SIZE];
    bool is_key = snprintf(path, sizeof(path), "%s/keys/%s.key", dir, network) < PATH_SIZE &&
                  networks_read_key(path, &secret, &public, NULL) == 0;

    secret_wipe(&secret, sizeof(secret));
    return is_key;
}

static int look_for_key(void *ctx, const struct store_item *item)
{
    const char *network = item->key + strlen(network_kind.prefix);
    const struct key_search *search = ctx;

    if (!has_key(search->dir, network))
        str_addf(search->keyless, "%s%.63s", str_text(search->keyless)[0] ? ", " : "", network);
    return 0;
}

/* Adds the networks whose keys are not in @dir to @ret. */
static int find_keyless(const char *dir, struct str *ret, struct err *e)
{
    struct key_search search = {.dir = dir, .keyless = ret};
    struct store *store = NULL;
    int r = open_store(&store, dir, e);

    if (r == 0)
        r = store_now_list(store, network_kind.prefix, look_for_key, &search, NULL, e);
    store_free(store);
    return r;
}

/* Is that the copy of a hub, and whole? Looks into the database. */
static int check_copy(const char *dir, struct err *e)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (!files[i].is_needed || join_path(path, dir, files[i].name, NULL) != 0)
            continue;
        if (access(path, R_OK) < 0)
            return err_set(e, -errno, "\"%s\" is no copy of a hub's state: %s: %s", dir, path,
                strerror(errno));
    }
    return open_db(dir, e);
}

/* Fail if a hub runs on the state: it holds the database for as long as it runs. A database that is
 * damaged cannot be held by anybody. */
static int check_nobody_runs(const char *state_dir, bool *ret_is_there, struct err *e)
{
    struct err damage = ERR_NULL;
    char path[PATH_SIZE];
    int r = join_path(path, state_dir, "hub.db", e);

    if (r != 0)
        return r;
    *ret_is_there = access(state_dir, F_OK) == 0;
    if (access(path, F_OK) < 0)
        return 0;
    r = open_db(state_dir, &damage);
    return r == -EBUSY ? err_set(e, r, "%s: end that hub first", err_text(&damage)) : 0;
}

/* Give the new state to the owner of the former one: a unit may have given that to a user. */
static void give_to_owner_of(const char *former, const char *dir)
{
    char path[PATH_SIZE];
    struct stat st;

    if (stat(former, &st) < 0)
        return;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (join_path(path, dir, files[i].name, NULL) == 0)
            (void)!chown(path, st.st_uid, st.st_gid);
    if (join_path(path, dir, "keys", NULL) == 0) {
        const struct dirent *d;
        DIR *list = opendir(path);
        char key[PATH_SIZE];

        while (list && (d = readdir(list)))
            if (is_key_file(d->d_name) && join_path(key, path, d->d_name, NULL) == 0)
                (void)!chown(key, st.st_uid, st.st_gid);
        if (list)
            (void)closedir(list);
        (void)!chown(path, st.st_uid, st.st_gid);
    }
    (void)!chown(dir, st.st_uid, st.st_gid);
}

static int put_in_place(const char *fresh, const char *state_dir, const char *former, struct err *e)
{
    if (former[0] && rename(state_dir, former) < 0)
        return err_set(
            e, -errno, "\"%s\" cannot be moved to \"%s\": %s", state_dir, former, strerror(errno));
    if (rename(fresh, state_dir) == 0)
        return statefile_sync_dir_of(state_dir, e);
    (void)err_set(e, -errno, "\"%s\" cannot be made: %s", state_dir, strerror(errno));
    if (former[0])
        (void)rename(former, state_dir);
    return e ? e->code : -EIO;
}

/* Make the folder in which the state is to lie: a machine that never had a hub may lack it. */
static int make_space_for(const char *state_dir, struct err *e)
{
    char above[PATH_SIZE];
    char *slash;

    (void)snprintf(above, sizeof(above), "%s", state_dir);
    slash = strrchr(above, '/');
    if (!slash || slash == above)
        return 0;
    *slash = '\0';
    return statefile_make_dir(above, 0755, e);
}

/* Where the former state goes: none of before lies there, from another restore in this second. */
static void name_former(char ret[static PATH_SIZE], const char *state_dir)
{
    long long at = (long long)(clock_wall() / NSEC_PER_SEC);
    struct stat st;

    do
        (void)snprintf(ret, PATH_SIZE, "%.*s.before-%lld", PATH_SIZE - 40, state_dir, at++);
    while (lstat(ret, &st) == 0);
}

int backup_restore(const char *from, const char *state_dir, char ret_former[static 512],
    struct str *ret_keyless, struct err *e)
{
    char fresh[PATH_SIZE];
    char former[PATH_SIZE] = "";
    bool is_there = false;
    int r = check_nobody_runs(state_dir, &is_there, e);

    if (r == 0 && snprintf(fresh, sizeof(fresh), "%s.restore", state_dir) >= PATH_SIZE - 32)
        r = err_set(e, -ENAMETOOLONG, "the path \"%.200s\" is too long", state_dir);
    if (r == 0 && is_there)
        name_former(former, state_dir);
    if (r != 0)
        return r;
    backup_remove(fresh);
    r = make_space_for(state_dir, e);
    if (r == 0)
        r = backup_copy(from, fresh, e);
    if (r == 0) {
        r = check_copy(fresh, e);
        /* The store's words are for who starts a hub on it. */
        if (r == -EUCLEAN)
            (void)err_set(e, r,
                "\"%s/hub.db\" is damaged, or is not the database of a hub: take another copy; "
                "nothing has changed",
                from);
    }
    if (r == 0)
        r = find_keyless(fresh, ret_keyless, e);
    if (r == 0 && is_there)
        give_to_owner_of(state_dir, fresh);
    if (r == 0)
        r = put_in_place(fresh, state_dir, former, e);
    if (r != 0) {
        backup_remove(fresh);
        return r;
    }
    memcpy(ret_former, former, sizeof(former));
    return 0;
}
