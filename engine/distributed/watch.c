/* watch.c: the thread, and what others want it to say. */
#include "engine/distributed/watch.h"

#include "engine/core/signals.h"
#include "engine/distributed/channel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TELL_MS = 100 };

static const double MUTE = 3; /* seconds of the hub's silence, beyond the timeout of collectives */

static const double PATIENCE = 5; /* seconds for the hub's last word, which may wait for a reason */

static struct {
    const td_channel_calls *calls;
    void *socket;
    pthread_t thread;
    pthread_mutex_t lock;
    bool open, done;
    atomic_bool leaving, known; /* known: the hub has answered */
    td_job_ended ended;
    td_message said;    /* what is told; the thread's own */
    uint64_t told;      /* number of the last record that was */
    double heard, lost; /* times: of the hub's last word; of the connection's end, 0: none */
    char secret[TD_SECRET + 1];
    td_word word; /* that another thread wants to be said; guarded as `text` */
    char text[TD_WHY + 512];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void tell(td_word word, const char *text) {
    td_message *m = &watch.said;
    td_flight_record now;
    m->word = word;
    m->waits = td_flight_oldest(&now);
    m->now = now;
    snprintf(m->text, sizeof m->text, "%s", text);
    do {
        m->news_count = td_flight_read(watch.told, m->news, TD_NEWS);
        if (m->news_count)
            watch.told = m->news[m->news_count - 1].number;
        m->over = !m->waits && now.kind == TD_SHUTDOWN && now.number && m->news_count < TD_NEWS;
        watch.calls->send(watch.socket, 0, m, td_message_size(m));
    } while (m->news_count == TD_NEWS);
}

static void hear(const td_message *m, long len) {
    if (len < (long)offsetof(td_message, news) ||
        strncmp(m->secret, watch.secret, sizeof m->secret) != 0)
        return;
    watch.heard = td_flight_clock();
    watch.lost = 0;
    atomic_store(&watch.known, true);
    watch.done = m->word == TD_DONE;
    if (m->word == TD_VERDICT)
        watch.ended(m->text, watch.said.rank);
}

/* Without the hub each rank knows of itself alone, and says that. */
static void miss_hub(void) {
    double now = td_flight_clock();
    td_flight_record record;
    char at[200], why[512];
    bool waits = td_flight_oldest(&record);
    bool lost = watch.lost > 0 && now - watch.lost > 0.5;
    bool mute =
        waits && now - record.posted > watch.said.timeout + MUTE && now - watch.heard > MUTE;
    if (!lost && !mute)
        return;
    td_flight_text(&record, at, sizeof at);
    snprintf(why, sizeof why,
             "rank 0, which kept the control channel, %s %.1f s ago; this rank %s %s",
             lost ? "left" : "was last heard", now - (lost ? watch.lost : watch.heard),
             waits ? "waits in" : "is in no collective since",
             record.number ? at : "the job's beginning");
    watch.ended(why, watch.said.rank);
}

static void *work(void *unused) {
    (void)unused;
    static td_message m; /* large; there is one watch in a process */
    double last = 0;
    tell(TD_HELLO, "");
    while (!atomic_load(&watch.leaving)) {
        uint32_t peer;
        long len = watch.calls->receive(watch.socket, TELL_MS / 2, &peer, &m, sizeof m);
        double now = td_flight_clock();
        if (len > 0)
            hear(&m, len);
        else if (len < 0)
            watch.lost = now;
        pthread_mutex_lock(&watch.lock);
        td_word word = watch.word;
        watch.word = TD_STATE;
        if (word != TD_STATE || now - last > TELL_MS * 1e-3) {
            tell(word, watch.text);
            last = now;
        }
        pthread_mutex_unlock(&watch.lock);
        miss_hub();
    }
    /* All have left: had any of them done something else, the hub may be about to say so. */
    tell(TD_STATE, "");
    for (double began = td_flight_clock(); !watch.done && td_flight_clock() - began < PATIENCE;) {
        uint32_t peer;
        hear(&m, watch.calls->receive(watch.socket, TELL_MS / 2, &peer, &m, sizeof m));
    }
    return NULL;
}

/* What happens before the hub knows of this process would be told as another's fault. */
static bool wait_for_hub(void) {
    for (int k = 0; k < 10000 && !atomic_load(&watch.known); k++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return atomic_load(&watch.known);
}

static void stop(void) {
    atomic_store(&watch.leaving, true);
    pthread_join(watch.thread, NULL);
    watch.calls->close(watch.socket);
    watch.open = false;
}

td_status td_watch_open(const char *address, int rank, int size, double timeout,
                        td_job_ended ended) {
    td_status status = TD_OK;
    td_address a;
    char place[TD_ADDRESS], why[TD_WHY];
    sigset_t before;
    if (!td_address_read(address, &a))
        return td_fail(TD_EIO, "no address of a control channel came from rank 0");
    TD_TRY(td_channel_load(&watch.calls));
    td_address_reach(&a, place);
    watch.socket = watch.calls->connect(place, why);
    if (!watch.socket)
        return td_fail(TD_EIO, "%s", why);
    td_flight_clear();
    watch.said = (td_message){.rank = rank, .size = size, .pid = getpid(), .timeout = timeout};
    gethostname(watch.said.host, sizeof watch.said.host - 1);
    memcpy(watch.said.secret, a.secret, sizeof a.secret);
    memcpy(watch.secret, a.secret, sizeof a.secret);
    watch.ended = ended;
    watch.word = TD_STATE;
    atomic_store(&watch.known, false);
    watch.told = 0;
    watch.done = false;
    watch.lost = 0;
    watch.heard = td_flight_clock();
    watch.text[0] = '\0';
    atomic_store(&watch.leaving, false);
    td_signals_hold(&before);
    int code = pthread_create(&watch.thread, NULL, work, NULL);
    td_signals_release(&before);
    if (code) {
        watch.calls->close(watch.socket);
        TD_TRY(td_fail(TD_ENOMEM, "no thread to be had"));
    }
    watch.open = true;
    if (!wait_for_hub()) {
        stop();
        TD_TRY(td_fail(TD_EIO, "the control channel at %s does not answer", place));
    }
done:
    return status;
}

bool td_watch_is_open(void) {
    return watch.open;
}

static void say(td_word word, const char *why) {
    if (!watch.open)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.word = word;
    snprintf(watch.text, sizeof watch.text, "%s", why);
    pthread_mutex_unlock(&watch.lock);
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
}

void td_watch_trouble(const char *why) {
    say(TD_TROUBLE, why);
}

void td_watch_leave(const char *why) {
    say(TD_GONE, why);
}

void td_watch_close(void) {
    if (watch.open)
        stop();
}
