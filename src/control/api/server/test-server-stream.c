/*
 * test-server-stream.c - answers that go on, read as bytes: what is pushed while nobody reads comes
 * whole and in order, whether the server or libmicrohttpd has written it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/support/sample_daemon.h"

/* More than the socket takes, and less than a stream keeps. */
#define LINES 900

#define TEXT_MAX (1u << 20)

/* An answer that is being read. */
struct reader {
    int fd;
    char text[TEXT_MAX]; /* all that has come, its header first */
    size_t len;
};

static struct reader reader;

/* @headers: more of them, each with its end. */
static void ask_with(const char *version, const char *headers)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 5};
    char text[128];

    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", sample_daemon.sock);
    reader.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    reader.len = 0;
    assert_int_equal(connect(reader.fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    (void)setsockopt(reader.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)snprintf(
        text, sizeof(text), "GET /v1/hear HTTP/%s\r\nHost: localhost\r\n%s\r\n", version, headers);
    assert_int_equal(write(reader.fd, text, strlen(text)), strlen(text));
}

static void ask(const char *version)
{
    ask_with(version, "");
}

/* Reads until @end has come; fails when nothing comes for five seconds. */
static void read_until(const char *end)
{
    while (!memmem(reader.text, reader.len, end, strlen(end))) {
        ssize_t n = read(reader.fd, reader.text + reader.len, TEXT_MAX - reader.len);

        assert_true(n > 0);
        reader.len += (size_t)n;
    }
}

static void say(unsigned number)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/v1/say/line-%u", number);
    assert_int_equal(sample_call(sample_by_unix(), "POST", path, NULL), 0);
}

/* Takes the chunks' frames (RFC 9112 section 7.1) away from what has come; returns the lines. */
static char *lines_of_chunks(void)
{
    char *p = memmem(reader.text, reader.len, "\r\n\r\n", 4);
    char *end = reader.text + reader.len;
    char *lines = calloc(1, TEXT_MAX);
    size_t len = 0;

    assert_non_null(p);
    for (p += 4; p < end;) {
        char *data;
        unsigned long n = strtoul(p, &data, 16);

        assert_true(n > 0 && data > p && memcmp(data, "\r\n", 2) == 0);
        data += 2;
        assert_true(data + n + 2 <= end && memcmp(data + n, "\r\n", 2) == 0);
        memcpy(lines + len, data, n);
        len += n;
        p = data + n + 2;
    }
    return lines;
}

static void assert_lines(const char *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char line[32];
        size_t len = (size_t)snprintf(line, sizeof(line), "line-%u\n", i);

        assert_memory_equal(text, line, len);
        text += len;
    }
    assert_int_equal(*text, '\0');
}

static void test_pushed_one_by_one(void **state)
{
    char *lines;

    ask("1.1");
    read_until("\r\n\r\n");
    say(0);
    read_until("line-0\n\r\n");
    say(1);
    read_until("line-1\n\r\n");
    assert_non_null(memmem(reader.text, reader.len, "chunked", 7));
    lines = lines_of_chunks();
    assert_lines(lines, 2);
    free(lines);
    (void)close(reader.fd);
}

static void test_pushed_while_nobody_reads(void **state)
{
    char last[32];
    char *lines;

    ask("1.1");
    read_until("\r\n\r\n");
    for (unsigned i = 0; i < LINES; i++)
        say(i);
    (void)snprintf(last, sizeof(last), "line-%u\n\r\n", LINES - 1);
    read_until(last);
    say(LINES);
    (void)snprintf(last, sizeof(last), "line-%u\n\r\n", LINES);
    read_until(last);
    lines = lines_of_chunks();
    assert_lines(lines, LINES + 1);
    free(lines);
    (void)close(reader.fd);
}

/* A client of HTTP/1.0 knows no chunks (RFC 9112 section 6.1). */
static void test_to_an_old_client(void **state)
{
    char *text;

    ask("1.0");
    read_until("\r\n\r\n");
    say(0);
    say(1);
    read_until("line-1\n");
    reader.text[reader.len] = '\0';
    text = strstr(reader.text, "\r\n\r\n");
    assert_lines(text + 4, 2);
    (void)close(reader.fd);
}

/* One that wants the connection closed behind the answer is sent chunks all the same. */
static void test_to_one_that_closes(void **state)
{
    char *lines;

    ask_with("1.1", "Connection: close\r\n");
    read_until("\r\n\r\n");
    say(0);
    say(1);
    read_until("line-1\n\r\n");
    assert_non_null(memmem(reader.text, reader.len, "chunked", 7));
    lines = lines_of_chunks();
    assert_lines(lines, 2);
    free(lines);
    (void)close(reader.fd);
}

/* The next line finds the other end gone; then there is nobody to say anything to. */
static void test_the_other_end_goes(void **state)
{
    int status = 204;

    ask("1.1");
    read_until("\r\n\r\n");
    say(0);
    read_until("line-0\n\r\n");
    (void)close(reader.fd);
    for (unsigned i = 0; i < 100 && status == 204; i++) {
        (void)sample_call(sample_by_unix(), "POST", "/v1/say/nobody", NULL);
        status = sample_answer.status;
    }
    assert_int_equal(status, 409);
}

/* It is noticed without a word to it, if somebody asks. */
static void test_a_silent_end_is_looked_at(void **state)
{
    int status = 204;

    ask("1.1");
    read_until("\r\n\r\n");
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(sample_call(sample_by_unix(), "POST", "/v1/check", NULL), 0);
    (void)close(reader.fd);
    for (unsigned i = 0; i < 100 && status == 204; i++) {
        (void)sample_call(sample_by_unix(), "POST", "/v1/check", NULL);
        status = sample_answer.status;
    }
    assert_int_equal(status, 409);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pushed_one_by_one),
        cmocka_unit_test(test_pushed_while_nobody_reads),
        cmocka_unit_test(test_to_an_old_client),
        cmocka_unit_test(test_to_one_that_closes),
        cmocka_unit_test(test_the_other_end_goes),
        cmocka_unit_test(test_a_silent_end_is_looked_at),
    };

    return cmocka_run_group_tests(tests, sample_start, sample_stop);
}
