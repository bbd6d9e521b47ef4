/* tty.c: see tty.h. */
#include "repl/edit/tty.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;        /* what tty_end restores */
static volatile sig_atomic_t is_raw; /* read by the handler of signals that end the process */
static volatile sig_atomic_t resized, continued;
static pthread_t reader;

bool tty_can_edit(void) {
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && term[0] &&
           strcmp(term, "dumb") != 0;
}

/* ---- signals ---- */

/* Any thread of a pool may be given the signal: the one that waits has to hear it. */
static void on_change(int number) {
    int saved = errno;
    if (number == SIGWINCH)
        resized = 1;
    else
        continued = 1;
    if (!pthread_equal(pthread_self(), reader))
        pthread_kill(reader, number);
    errno = saved;
}

static void on_end(int number) {
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_once(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, was;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &was) == 0 && was.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

static void catch_signals(void) {
    reader = pthread_self();
    catch_once(SIGWINCH, on_change, SA_RESTART);
    catch_once(SIGCONT, on_change, SA_RESTART);
    catch_once(SIGTERM, on_end, SA_RESTART);
    catch_once(SIGHUP, on_end, SA_RESTART);
    catch_once(SIGQUIT, on_end, SA_RESTART);
}

void tty_block_signals(sigset_t *old) {
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGWINCH);
    sigaddset(&block, SIGCONT);
    pthread_sigmask(SIG_BLOCK, &block, old);
}

static bool take(volatile sig_atomic_t *flag) {
    bool was = *flag != 0;
    *flag = 0;
    return was;
}

bool tty_took_size(void) {
    return take(&resized);
}

bool tty_took_continue(void) {
    return take(&continued);
}

void tty_suspend(const sigset_t *mask) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, mask, &blocked);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    continued = 0;
}

/* ---- modes ---- */

void tty_begin(void) {
    catch_signals();
    struct termios raw;
    if (is_raw && tcgetattr(STDIN_FILENO, &raw) == 0 && !(raw.c_lflag & (ICANON | ECHO)))
        return;
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    raw = before;
    raw.c_iflag &= ~(tcflag_t)(IXON | ISTRIP | INLCR | IGNCR);
    raw.c_iflag |= ICRNL;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_lflag |= ISIG;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* the screen is left in order first */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void tty_end(void) {
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    is_raw = 0;
}

void tty_size(int *columns, int *rows) {
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col > 0 ? size.ws_col : 80;
    *rows = known && size.ws_row > 0 ? size.ws_row : 24;
    *columns = *columns < 2 ? 2 : *columns;
}

/* ---- bytes ---- */

/* Lets signals through that have come already. pselect does so only where it has to wait itself: a
 * key typed behind Ctrl-C would be taken for one before it. */
static bool let_through(const sigset_t *mask) {
    sigset_t pending, blocked;
    sigpending(&pending);
    if (!sigismember(&pending, SIGINT) && !sigismember(&pending, SIGWINCH) &&
        !sigismember(&pending, SIGCONT))
        return false;
    pthread_sigmask(SIG_SETMASK, mask, &blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    return true;
}

tty_event tty_wait(const sigset_t *mask, double seconds) {
    if (let_through(mask))
        return TTY_SIGNAL;
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(STDIN_FILENO, &readable);
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    int n = pselect(STDIN_FILENO + 1, &readable, NULL, NULL, seconds < 0 ? NULL : &time, mask);
    if (n < 0)
        return errno == EINTR ? TTY_SIGNAL : TTY_CLOSED;
    if (n > 0 && let_through(mask))
        return TTY_SIGNAL;
    return n > 0 ? TTY_READABLE : TTY_QUIET;
}

bool tty_read(char *byte) {
    ssize_t n;
    do {
        n = read(STDIN_FILENO, byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

int tty_waiting(void) {
    int n = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &n) == 0 ? n : 0;
}

void tty_write(const char *text, size_t n) {
    while (n > 0) {
        ssize_t written = write(STDOUT_FILENO, text, n);
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            struct pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
            poll(&ready, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}
