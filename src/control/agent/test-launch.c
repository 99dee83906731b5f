/*
 * test-launch.c - an agent is started as a process of its own, watched, waited for, and ended.
 *
 * What is started is this program; as an agent it writes down its arguments, and waits.
 */
#include "agent/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/said_agent.h"

#define NOBODY "/tmp/weft-test-launch-nobody"

#define JOINED                                                                                     \
    "{\"self\":{\"engine\":\"userspace\"},\"hub\":{\"handshakeAgeSeconds\":1,\"reachable\":true}}"

/* ---- the first answer ------------------------------------------------------------------------ */

static void test_an_agent_that_answers(void **state)
{
    struct said_agent a = {.answers = {{200, "{}"}}};
    const struct launch launch = {.log_path = "/tmp/log"};

    said_agent_start(&a);
    assert_int_equal(launch_wait_answer(&launch, a.path, 60000, NULL), 0);
    said_agent_end(&a);
    assert_memory_equal(a.requests[0], "GET /v1/status ", 15);
}

static void test_an_agent_that_does_not_answer(void **state)
{
    const struct launch launch = {.log_path = "/tmp/log"};
    const nsec_t since = clock_now();
    struct err e = ERR_NULL;

    assert_int_equal(launch_wait_answer(&launch, NOBODY, 120, &e), -ETIMEDOUT);
    assert_string_equal(e.text, "the agent does not answer on " NOBODY "; /tmp/log says why");
    assert_true(clock_now() - since >= 120 * NSEC_PER_MSEC);
}

static void test_the_log_of_a_unit_is_the_journal(void **state)
{
    const struct launch launch = {.by_systemd = true};
    struct err e = ERR_NULL;

    assert_int_equal(launch_wait_answer(&launch, NOBODY, 0, &e), -ETIMEDOUT);
    assert_non_null(strstr(e.text, "; journalctl -u weft-agent says why"));
}

static pid_t start_and_end(void)
{
    pid_t pid = fork();
    siginfo_t info;

    if (pid == 0)
        _exit(1);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return pid;
}

static void test_an_agent_that_has_ended(void **state)
{
    struct launch launch = {.log_path = "/tmp/log", .pid = start_and_end()};
    const nsec_t since = clock_now();
    struct err e = ERR_NULL;
    json_t *status = NULL;

    assert_int_equal(launch_wait_answer(&launch, NOBODY, 60000, &e), -ECHILD);
    assert_string_equal(e.text, "the agent has ended; /tmp/log says why");
    launch.pid = start_and_end();
    assert_int_equal(launch_wait(&launch, NOBODY, 60000, &status, &e), -ECHILD);
    assert_string_equal(e.text, "the agent has ended; /tmp/log says why");
    assert_true(clock_now() - since < 20 * NSEC_PER_SEC);
}

/* ---- until it is a node ---------------------------------------------------------------------- */

/* @a: with its answers. */
static int wait_for(struct said_agent *a, unsigned timeout_ms, json_t **ret, struct err *e)
{
    const struct launch launch = {.log_path = "/tmp/log"};
    int r;

    said_agent_start(a);
    r = launch_wait(&launch, a->path, timeout_ms, ret, e);
    said_agent_end(a);
    return r;
}

static void test_the_status_of_a_node_that_has_joined(void **state)
{
    struct said_agent a = {
        .answers = {{200, "{\"self\":{},\"hub\":{}}"},
            {200, "{\"self\":{\"engine\":\"userspace\"},\"hub\":{}}"}, {200, JOINED}}};
    json_t *status = NULL;

    assert_int_equal(wait_for(&a, 60000, &status, NULL), 0);
    assert_true(json_is_true(json_object_get(json_object_get(status, "hub"), "reachable")));
    json_decref(status);
}

/* While its process lives it is waited for, as is one that was not started here. */
static void test_a_process_that_lives(void **state)
{
    struct said_agent a = {.answers = {{200, "{\"self\":{},\"hub\":{}}"}, {200, JOINED}}};
    struct launch launch = {.log_path = "/tmp/log", .pid = fork()};
    json_t *status = NULL;
    struct err e = ERR_NULL;

    if (launch.pid == 0)
        for (;;)
            (void)pause();
    assert_int_equal(launch_wait_answer(&launch, NOBODY, 120, &e), -ETIMEDOUT);
    said_agent_start(&a);
    assert_int_equal(launch_wait(&launch, a.path, 60000, &status, &e), 0);
    said_agent_end(&a);
    json_decref(status);
    assert_int_equal(kill(launch.pid, SIGKILL), 0);
    assert_int_equal(waitpid(launch.pid, NULL, 0), launch.pid);
}

/* After the handshake the hub still has to say who the others are. */
static void test_a_hub_that_has_not_been_heard_yet(void **state)
{
    struct said_agent a = {
        .answers = {{200, "{\"self\":{\"engine\":\"userspace\"},\"hub\":{\"handshakeAgeSeconds\":0,"
                          "\"reachable\":false}}"},
            {200, JOINED}}};
    json_t *status = NULL;

    assert_int_equal(wait_for(&a, 60000, &status, NULL), 0);
    assert_true(json_is_true(json_object_get(json_object_get(status, "hub"), "reachable")));
    json_decref(status);
}

static void test_names_that_are_not_written_yet(void **state)
{
    struct said_agent a = {
        .answers = {{200, "{\"self\":{\"engine\":\"userspace\"},\"namesPending\":true,"
                          "\"hub\":{\"handshakeAgeSeconds\":0,\"reachable\":true}}"},
            {200, JOINED}}};
    json_t *status = NULL;

    assert_int_equal(wait_for(&a, 60000, &status, NULL), 0);
    assert_null(json_object_get(status, "namesPending"));
    json_decref(status);
}

static void test_an_interface_that_cannot_be_made(void **state)
{
    struct said_agent a = {.answers = {{200, "{\"self\":{\"fault\":\"no tun here\"},\"hub\":{}}"}}};
    json_t *status = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(wait_for(&a, 60000, &status, &e), -EIO);
    assert_string_equal(e.text, "the agent cannot make the interface: no tun here");
    assert_null(status);
}

/* With an engine it may mend itself, and is waited for. */
static void test_a_fault_that_may_pass(void **state)
{
    static const char faulty[] =
        "{\"self\":{\"engine\":\"userspace\",\"fault\":\"no route\"},\"hub\":{}}";
    struct said_agent a = {.answers = {{200, faulty}, {200, JOINED}}};
    struct said_agent b = {.answers = {{200, faulty}}};
    json_t *status = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(wait_for(&a, 60000, &status, &e), 0);
    json_decref(status);
    assert_int_equal(wait_for(&b, 0, &status, &e), -EIO);
    assert_string_equal(e.text, "the agent cannot make the interface: no route");
}

static void test_what_is_missing_when_the_time_is_over(void **state)
{
    static const struct {
        const char *status;
        const char *words;
    } cases[] = {
        {"{\"self\":{},\"hub\":{}}",
            "the agent cannot make the interface; /tmp/log says why, and it keeps trying"},
        {"{\"self\":{\"fault\":\"\"},\"hub\":{}}",
            "the agent cannot make the interface; /tmp/log says why, and it keeps trying"},
        {"{\"self\":{\"engine\":\"kernel\"},\"hub\":{\"reachable\":true}}",
            "the hub does not answer on its WireGuard port, nor lets this node in by TLS; is UDP "
            "to it blocked? The agent keeps trying, and weft status tells when it succeeds"},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct said_agent a = {.answers = {{200, cases[i].status}}};
        json_t *status = NULL;
        struct err e = ERR_NULL;

        assert_int_equal(wait_for(&a, 0, &status, &e), -ETIMEDOUT);
        assert_string_equal(e.text, cases[i].words);
    }
}

/* ---- a process of its own -------------------------------------------------------------------- */

/* What an agent of this test does. */
static void be_agent(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++)
        (void)printf("%s%s", argv[i], i + 1 < argc ? " " : "\n");
    (void)printf("times: %s\n", getenv(LAUNCH_LOG_TIME) ? getenv(LAUNCH_LOG_TIME) : "no");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

/* Until the file has @n lines; all of them. */
static const char *read_log(const char *path, unsigned n)
{
    static char text[1024];

    for (unsigned i = 0; i < 1000; i++) {
        FILE *f = fopen(path, "r");
        size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
        unsigned n_lines = 0;

        if (f)
            (void)fclose(f);
        text[len] = '\0';
        for (const char *p = text; (p = strchr(p, '\n')); p++)
            n_lines++;
        if (n_lines >= n)
            return text;
        (void)poll(NULL, 0, 10);
    }
    fail_msg("%s has not %u lines, but: %s", path, n, text);
    return NULL;
}

static void test_a_detached_agent(void **state)
{
    static const char *const options[] = {"--pings", "--no-measure"};
    char dir[] = "/tmp/weft-test-launch.XXXXXX";
    char log[64];
    char expected[256];
    struct launch launch;
    struct err e = ERR_NULL;
    struct launch_config config = {
        .socket_path = "/run/x.sock", .options = options, .n_options = 2};

    config.state_dir = mkdtemp(dir);
    assert_non_null(config.state_dir);
    assert_int_equal(launch_agent(&config, &launch, &e), 0);
    assert_false(launch.by_systemd);
    (void)snprintf(log, sizeof(log), "%s/agent.log", dir);
    assert_string_equal(launch.log_path, log);
    (void)snprintf(expected, sizeof(expected),
        "agent --watched --state %s --socket /run/x.sock --pings --no-measure\ntimes: 1\n", dir);
    assert_string_equal(read_log(log, 2), expected);
    assert_int_equal(kill(launch.pid, 0), 0);
    launch_stop(&launch);
    assert_int_equal(waitpid(launch.pid, NULL, WNOHANG), launch.pid);
    (void)unlink(log);
    assert_int_equal(rmdir(dir), 0);
}

static void test_as_many_options_as_there_may_be(void **state)
{
    const char *options[LAUNCH_OPTIONS_MAX + 1];
    char dir[] = "/tmp/weft-test-launch.XXXXXX";
    struct launch_config config = {.socket_path = "/run/x.sock", .options = options};
    struct launch launch;
    struct err e = ERR_NULL;

    for (unsigned i = 0; i <= LAUNCH_OPTIONS_MAX; i++)
        options[i] = i == LAUNCH_OPTIONS_MAX - 1 ? "last" : "-v";
    config.state_dir = mkdtemp(dir);
    config.n_options = LAUNCH_OPTIONS_MAX + 1;
    assert_int_equal(launch_agent(&config, &launch, &e), -E2BIG);
    assert_string_equal(e.text, "65 options are more than 64");
    config.n_options = LAUNCH_OPTIONS_MAX;
    assert_int_equal(launch_agent(&config, &launch, &e), 0);
    assert_non_null(strstr(read_log(launch.log_path, 2), " -v last\n"));
    launch_stop(&launch);
    (void)waitpid(launch.pid, NULL, 0);
    (void)unlink(launch.log_path);
    assert_int_equal(rmdir(dir), 0);
}

/* What was not started is not ended. */
static void test_nothing_to_end(void **state)
{
    launch_stop(&(struct launch){.pid = 0});
}

/* ---- systemd --------------------------------------------------------------------------------- */

#define UNIT_DIR "/etc/systemd/system"

/* As systemctl: writes down what it is asked for, and fails when there is a file that says so. */
static int be_systemctl(int argc, char *argv[])
{
    FILE *f = fopen("/run/asked", "we");

    for (int i = 1; f && i < argc; i++)
        (void)fprintf(f, "%s%s", argv[i], i + 1 < argc ? " " : "");
    if (f)
        (void)fclose(f);
    return access("/run/fails", F_OK) == 0 ? 1 : 0;
}

static void copy_self(const char *path)
{
    char buf[65536];
    int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    int from = open("/run/self", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, buf, sizeof(buf))) > 0)
        assert_int_equal(write(to, buf, (size_t)n), n);
    (void)close(from);
    assert_int_equal(close(to), 0);
}

/* What systemctl was asked for, once; "": nothing. */
static const char *asked(void)
{
    static char text[128];
    FILE *f = fopen("/run/asked", "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (f)
        (void)fclose(f);
    (void)unlink("/run/asked");
    return text;
}

static void check_systemd(void)
{
    struct launch_config config = {
        .state_dir = STATE_DIR_DEFAULT, .socket_path = STATE_SOCKET_DEFAULT};
    struct launch launch = {.by_systemd = true};
    struct err e = ERR_NULL;

    /* Systemd, its program and the agent's unit have to be there, all of them. */
    launch_stop(&launch);
    assert_string_equal(asked(), "");
    assert_int_equal(mkdir("/etc/systemd", 0755), 0);
    assert_int_equal(mkdir(UNIT_DIR, 0755), 0);
    assert_int_equal(close(creat(UNIT_DIR "/weft-agent.service", 0644)), 0);
    launch_stop(&launch);
    assert_string_equal(asked(), "disable --now --quiet weft-agent.service");
    launch_stop(&(struct launch){.by_systemd = false});
    assert_string_equal(asked(), "");

    assert_int_equal(launch_agent(&config, &launch, &e), 0);
    assert_true(launch.by_systemd);
    assert_int_equal(launch.pid, 0);
    assert_string_equal(launch.log_path, "");
    assert_string_equal(asked(), "enable --now --quiet weft-agent.service");
    assert_int_equal(close(creat("/run/fails", 0644)), 0);
    assert_int_not_equal(launch_agent(&config, &launch, &e), 0);
    assert_memory_equal(e.text, "systemd does not start weft-agent.service: ", 43);
    (void)asked();

    /* The unit is that of an agent in the usual folder, without options. */
    config.n_options = LAUNCH_OPTIONS_MAX + 1;
    assert_int_equal(launch_agent(&config, &launch, &e), -E2BIG);
    assert_false(launch.by_systemd);
    config =
        (struct launch_config){.state_dir = "/nonexistent", .socket_path = STATE_SOCKET_DEFAULT};
    assert_int_not_equal(launch_agent(&config, &launch, &e), 0);
    assert_false(launch.by_systemd);
    assert_string_equal(asked(), "");

    launch.by_systemd = true;
    assert_int_equal(rmdir("/run/systemd/system"), 0);
    launch_stop(&launch);
    assert_string_equal(asked(), "");
    assert_int_equal(mkdir("/run/systemd/system", 0755), 0);
    assert_int_equal(unlink("/usr/bin/systemctl"), 0);
    launch_stop(&launch);
    assert_string_equal(asked(), "");
}

/* On a machine of its own, as far as its files go. */
static void test_an_agent_of_systemd(void **state)
{
    static const char *const places[] = {"/run", "/etc", "/usr/local/lib"};
    pid_t pid;
    int status;

    if (access("/lib/systemd/system/weft-agent.service", F_OK) == 0)
        skip();
    pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(77);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(mount("none", places[i], "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir("/run/systemd", 0755), 0);
        assert_int_equal(mkdir("/run/systemd/system", 0755), 0);
        assert_int_equal(symlink("/proc/self/exe", "/run/self"), 0);
        assert_int_equal(mkdir("/run/bin", 0755), 0);
        copy_self("/run/bin/systemctl");
        assert_int_equal(mount("/run/bin", "/usr/bin", NULL, MS_BIND, NULL), 0);
        check_systemd();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* ---- watching -------------------------------------------------------------------------------- */

/* One that fails at its very start would fail again. */
static void test_an_agent_that_does_not_start(void **state)
{
    char *words[] = {strdup("/bin/false"), NULL};
    struct err e = ERR_NULL;

    assert_int_equal(launch_watch(words, "/nonexistent", &e), 1);
    free(words[0]);
}

/* One that somebody has killed is started again, until this machine has left its network. */
static void test_an_agent_that_is_started_again(void **state)
{
    char dir[] = "/tmp/weft-test-watch.XXXXXX";
    char *words[] = {strdup("/bin/sh"), strdup("-c"),
        strdup("cd \"$0\"; if [ -e ran ]; then rm ran node.json; exit 4; fi; : > ran; kill $$"),
        mkdtemp(dir), NULL};
    char path[64];
    struct err e = ERR_NULL;
    int r;

    (void)snprintf(path, sizeof(path), "%s/node.json", dir);
    assert_int_equal(close(creat(path, 0600)), 0);
    heard_log_begin();
    r = launch_watch(words, dir, &e);
    assert_string_equal(heard_log_end(),
        "warning: weft: the agent was ended by signal 15; it is started again in 0.25 s\n"
        "info: weft: the agent ended with status 4, and this machine has left its network: it "
        "is not started again\n");
    assert_int_equal(r, 4);
    for (unsigned i = 0; i < 3; i++)
        free(words[i]);
    assert_int_equal(rmdir(dir), 0);
}

static void test_an_agent_that_ends_well(void **state)
{
    char *words[] = {strdup("/bin/true"), NULL};
    struct err e = ERR_NULL;

    assert_int_equal(launch_watch(words, "/nonexistent", &e), 0);
    free(words[0]);
}

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_agent_that_answers),
        cmocka_unit_test(test_an_agent_that_does_not_answer),
        cmocka_unit_test(test_the_log_of_a_unit_is_the_journal),
        cmocka_unit_test(test_an_agent_that_has_ended),
        cmocka_unit_test(test_the_status_of_a_node_that_has_joined),
        cmocka_unit_test(test_a_process_that_lives),
        cmocka_unit_test(test_a_hub_that_has_not_been_heard_yet),
        cmocka_unit_test(test_names_that_are_not_written_yet),
        cmocka_unit_test(test_an_interface_that_cannot_be_made),
        cmocka_unit_test(test_a_fault_that_may_pass),
        cmocka_unit_test(test_what_is_missing_when_the_time_is_over),
        cmocka_unit_test(test_a_detached_agent),
        cmocka_unit_test(test_as_many_options_as_there_may_be),
        cmocka_unit_test(test_nothing_to_end),
        cmocka_unit_test(test_an_agent_of_systemd),
        cmocka_unit_test(test_an_agent_that_does_not_start),
        cmocka_unit_test(test_an_agent_that_ends_well),
        cmocka_unit_test(test_an_agent_that_is_started_again),
    };

    if (argc > 1 && strcmp(argv[1], "agent") == 0)
        be_agent(argc, argv);
    if (argc > 1)
        return be_systemctl(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
