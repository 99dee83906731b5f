/* node_clock.c - see node_clock.h. */
#include "agent/node_clock.h"

#include <stdio.h>
#include <string.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "os/log.h"

/* A clock that is kept right goes back, too, by much less. */
#define SLACK (10 * NSEC_PER_SEC)

/* A difference is over at this one, so that one near the limit is not told each minute. */
#define SETTLED_S 8

void node_clock_init(struct node_clock *nc, const char *state_dir)
{
    nsec_t kept;

    *nc = (struct node_clock){.before = 0};
    (void)state_timestamp_path(nc->path, state_dir);
    /* The file is ahead of the clock. Whoever writes it names what is wrong with it. */
    if (timestamp_file_read(&kept, nc->path, NULL) == 0)
        nc->before = nsec_max(kept - TIMESTAMP_FILE_BACK, 0);
}

void node_clock_end(struct node_clock *nc, nsec_t wall, nsec_t now)
{
    timestamp_file_end(&nc->file, wall, now);
}

static void explain_lockout(struct node_clock *nc, nsec_t back)
{
    bool is_new = nc->lockout[0] == '\0';

    (void)snprintf(nc->lockout, sizeof(nc->lockout),
        "this machine's clock was set back, and for %lld s more peers refuse the handshakes that "
        "the kernel's WireGuard begins, since they are dated before earlier ones",
        (long long)(back / NSEC_PER_SEC));
    if (is_new)
        log_warning("%s; the userspace engine has none of that", nc->lockout);
}

void node_clock_look(struct node_clock *nc, bool is_kernel, nsec_t wall, nsec_t now)
{
    nsec_t back = nc->before - wall;

    if (!is_kernel || nc->path[0] == '\0') {
        timestamp_file_end(&nc->file, wall, now);
        nc->lockout[0] = '\0';
        return;
    }
    if (nc->file.path[0] == '\0')
        timestamp_file_open(&nc->file, nc->path, wall, now);
    (void)timestamp_file_keep(&nc->file, wall, wall, now);
    if (back > SLACK) {
        explain_lockout(nc, back);
        return;
    }
    if (nc->lockout[0] != '\0')
        log_info("this machine's clock has caught up with its earlier handshakes");
    nc->lockout[0] = '\0';
    nc->before = nsec_max(nc->before, wall);
}

void node_clock_compare(struct node_clock *nc, int64_t ahead_s)
{
    uint64_t off = ahead_s < 0 ? -(uint64_t)ahead_s : (uint64_t)ahead_s;
    bool was_off = nc->off[0] != '\0';

    if (off <= (was_off ? SETTLED_S : NODE_CLOCK_OFF_S)) {
        nc->off[0] = '\0';
        if (was_off)
            log_info("this machine's clock agrees with the hub's again");
        return;
    }
    (void)snprintf(nc->off, sizeof(nc->off),
        "this machine's clock is %llu s %s the hub's; let the one that is wrong follow a time "
        "server: \"timedatectl set-ntp true\", or chrony",
        (unsigned long long)off, ahead_s < 0 ? "behind" : "ahead of");
    if (!was_off)
        log_warning("%s", nc->off);
}

const char *node_clock_why(const struct node_clock *nc)
{
    return nc->lockout[0] != '\0' ? nc->lockout : nc->off;
}
