/* doctor.c - weft doctor: what is wrong with this node, and a report of it. */
#include "agent/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/bundle.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "os/clock.h"
#include "os/file.h"

static struct {
    const char *socket;
    const char *state_dir;
    const char *bundle;
    bool json;
} arg;

static const struct option options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--bundle", "FILE", option_text, &arg.bundle, NULL,
        "write a report without secrets, a .tar.gz, or a .tar"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "of the node"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "doctor",
    .summary = "List what is wrong with this node and its pairs, the gravest first, with what "
               "mends it.",
    .options = options,
    .notes =
        "Exit status: 0 nothing is wrong, 1 something is worse than it should be, 2 something\n"
        "does not work.",
};

/* "T": as it is, not compressed. */
static int write_archive(int fd, const struct str *tar, const char *mode)
{
    gzFile gz = gzdopen(fd, mode);
    size_t n = 0;

    if (!gz) {
        (void)close(fd);
        return -ENOMEM;
    }
    while (n < tar->len) {
        size_t left = tar->len - n;
        int done = gzwrite(gz, tar->text + n, left < (1u << 20) ? (unsigned)left : 1u << 20);

        if (done <= 0)
            break;
        n += (size_t)done;
    }
    return gzclose(gz) == Z_OK && n == tar->len ? 0 : -EIO;
}

/* A file that is there stays: it may be an earlier report. */
static int write_bundle(const struct doctor_options *opt, const struct doctor_report *report)
{
    _cleanup_(str_deinit) struct str tar = STR_NULL;
    size_t len = strlen(arg.bundle);
    bool is_gz = len > 2 && strcmp(arg.bundle + len - 2, "gz") == 0;
    int fd = open(arg.bundle, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return cmd_fail("doctor", "%s cannot be made: %s", arg.bundle, strerror(errno));
    bundle_make(&tar, opt, report, clock_wall() / NSEC_PER_SEC);
    if (tar.failed || write_archive(fd, &tar, is_gz ? "wb" : "wbT") != 0) {
        (void)unlink(arg.bundle);
        return cmd_fail("doctor", "%s cannot be written", arg.bundle);
    }
    return CMD_OK;
}

int cmd_doctor(int argc, char **argv)
{
    _cleanup_(doctor_report_deinit) struct doctor_report report = DOCTOR_REPORT_NULL;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct doctor_options opt = {.hub_socket = ADMIN_SOCKET_DEFAULT};
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    opt.socket = arg.socket;
    opt.state_dir = arg.state_dir;
    if (doctor_examine(&opt, &report) < 0)
        return cmd_fail("doctor", "no memory for the report");
    if (arg.bundle && write_bundle(&opt, &report) != CMD_OK)
        return CMD_FAILED;
    if (!arg.json)
        doctor_format(&report, &out);
    if (!arg.json && arg.bundle)
        str_addf(&out, "\n%s has a report without secrets\n", arg.bundle);
    status = admin_print("doctor", arg.json, doctor_encode(&report), &out);
    return status == CMD_OK ? doctor_worst(&report) : status;
}
