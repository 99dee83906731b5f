/* terminal.c - see terminal.h. */
#include "os/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

/* ECMA-48, and two modes of xterm: 1049 is the alternate screen, 25 the cursor. */
#define ENTER_SCREEN "\033[?1049h\033[?25l\033[2J"
#define LEAVE_SCREEN "\033[0m\033[?25h\033[?1049l"

/* Signals that are read; what else a terminal makes has no default that would end a program. */
static const int taken[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

/* Of a fault of the process itself, which ends without coming back to its loop. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/* For the handlers of these, which are given nothing else: what the terminal was set to before, and
 * whether it is set otherwise now. */
static struct termios before;
static volatile sig_atomic_t is_entered;

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Safe in a handler. False: the terminal takes nothing any more. */
static bool put(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};

        if (n > 0) {
            text += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            (void)poll(&fd, 1, 1000);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void leave(void)
{
    if (!is_entered)
        return;
    is_entered = 0;
    (void)put(LEAVE_SCREEN, sizeof(LEAVE_SCREEN) - 1);
    /* Keys that were hit meanwhile are not for the shell. */
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

static bool enter(void)
{
    struct termios now = before;

    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    now.c_iflag &= ~(tcflag_t)IXON;
    now.c_iflag |= ICRNL;
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    /* In the background this stops the process, until it is in the foreground. */
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, &now) != 0)
        if (errno != EINTR)
            return false;
    is_entered = 1;
    return put(ENTER_SCREEN, sizeof(ENTER_SCREEN) - 1);
}

/* The default follows, which ends the process. */
static void on_fault(int signal)
{
    leave();
    (void)raise(signal);
}

static void set_handlers(void (*handler)(int signal))
{
    struct sigaction now;
    struct sigaction set = {.sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER};

    (void)sigemptyset(&set.sa_mask);
    /* What somebody else handles, as a sanitizer does, stays as it is. */
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        if (sigaction(faults[i], NULL, &now) == 0 &&
            (now.sa_handler == SIG_DFL || now.sa_handler == on_fault))
            (void)sigaction(faults[i], &set, NULL);
}

static void set_taken(sigset_t *set)
{
    (void)sigemptyset(set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        (void)sigaddset(set, taken[i]);
}

int terminal_open(struct terminal *t, struct err *e)
{
    sigset_t set;
    int r;

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return err_set(e, -errno, "the terminal: %s", strerror(errno));
    set_taken(&set);
    t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->signals < 0)
        return err_set(e, -errno, "signals cannot be read: %s", strerror(errno));
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    set_handlers(on_fault);
    if (enter())
        return 0;
    r = err_set(e, -errno, "the terminal cannot be set: %s", strerror(errno));
    terminal_close(t);
    return r;
}

void terminal_close(struct terminal *t)
{
    sigset_t set;

    if (t->signals < 0)
        return;
    leave();
    set_handlers(SIG_DFL);
    (void)close(t->signals);
    t->signals = -1;
    set_taken(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* It goes on when somebody continues it. In a group of processes that nobody could continue, the
 * kernel does not stop it. */
static void stop(void)
{
    sigset_t set;

    leave();
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

enum terminal_event terminal_signal(struct terminal *t, int *ret_signal)
{
    struct signalfd_siginfo info;

    if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return TERMINAL_EVENT_NONE;
    switch ((int)info.ssi_signo) {
    case SIGWINCH:
        return TERMINAL_EVENT_REDRAW;
    case SIGTSTP:
        stop();
        (void)enter();
        return TERMINAL_EVENT_REDRAW;
    case SIGCONT:
        (void)enter();
        return TERMINAL_EVENT_REDRAW;
    default:
        *ret_signal = (int)info.ssi_signo;
        return TERMINAL_EVENT_END;
    }
}

void terminal_size(unsigned *ret_columns, unsigned *ret_lines)
{
    struct winsize size = {.ws_col = 0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col > 0 ? size.ws_col : 80;
    *ret_lines = size.ws_row > 0 ? size.ws_row : 24;
}

bool terminal_draw(const char *lines, bool is_new)
{
    struct str out = STR_NULL;
    bool is_shown;

    if (is_new)
        str_add(&out, "\033[2J");
    /* A line is emptied before it is written: behind its last column there is no place for that. */
    for (unsigned n = 1; lines; n++) {
        size_t len = strcspn(lines, "\n");

        str_addf(&out, "\033[%u;1H\033[K", n);
        str_add_bytes(&out, lines, len);
        lines = lines[len] ? lines + len + 1 : NULL;
    }
    is_shown = put(str_text(&out), out.len);
    str_deinit(&out);
    return is_shown;
}
