/* activity.h: how what was done beside the threads (a device's kernels, copies and memory sets,
 * transfers between processes) reaches those who record: who does it registers a source, which
 * costs nothing until somebody asks it to begin. Knows no profiler. */
#ifndef TD_CORE_ACTIVITY_H
#define TD_CORE_ACTIVITY_H

#include "engine/core/device.h"

typedef enum td_activity_kind {
    TD_ACTIVITY_KERNEL,
    TD_ACTIVITY_COPY,
    TD_ACTIVITY_SET,       /* of memory to a byte */
    TD_ACTIVITY_COMPILE,   /* by a thread of the engine's own (td_compile_end) */
    TD_ACTIVITY_COLLECTIVE /* a transfer between processes: the CPU's, a stream for each group */
} td_activity_kind;

enum { TD_ACTIVITY_OTHERS = 256 }; /* streams from here on are libraries' own */

/* Something that a device did. Times are by the source's clock. */
typedef struct td_activity {
    td_activity_kind kind;
    uint32_t thread;           /* that asked for it, as the system calls it; 0: not known */
    const char *name;          /* for people; borrowed for the call */
    td_stream track;           /* where it was done */
    int64_t bytes;             /* of copies, sets and transfers */
    uint64_t number;           /* of a collective: td_collective_number; 0: none */
    uint64_t start_ns, end_ns; /* on the device */
    uint64_t launch_ns;        /* when the thread asked for it; 0: not known */
} td_activity;

/* The same on all ranks for one collective, and for no other: the group's number and the
 * collective's among those of the group. */
static inline uint64_t td_collective_number(uint32_t group, uint32_t sequence) {
    return sequence ? (uint64_t)group << 32 | sequence : 0;
}

typedef void (*td_activity_fn)(void *ctx, const td_activity *activity);

/* Ranges that a tool beside the program shows (NVTX), of the calling thread. */
typedef struct td_annotations {
    int (*push)(const char *name); /* how many are open around it; negative: nobody looks */
    int (*pop)(void);              /* how many are left; negative: nobody looks, or none is open */
    void (*mark)(const char *name);
} td_annotations;

/* What a module offers; valid for ever. Only one caller begins, collects and ends at a time. */
typedef struct td_activity_source {
    uint64_t (*now)(void); /* its clock, ns; between begin and end */
    /* Keep what is done from here on, of more than `most` activities the newest. The answer says
     * what is wrong with their times, static; NULL: nothing. */
    const char *(*begin)(int64_t most);
    /* Until the devices have done what they were asked for so far. */
    void (*wait)(void);
    /* Hand over what was done since the beginning or the last time, in any order; returns how many
     * there was no room for. */
    int64_t (*collect)(td_activity_fn take, void *ctx);
    void (*end)(void);
    const td_annotations *annotations; /* NULL: the module was built without */
} td_activity_source;

/* The source of each kind of device; NULL: there is none, or its module has not been loaded. */
const td_activity_source *td_activity_source_of(td_device_type type);
void td_activity_register(td_device_type type, const td_activity_source *source);
/* Who is told of sources that appear from now on, on the thread that loads their module. */
void td_activity_listen(void (*appeared)(td_device_type type));

/* ---- the CPU's log ----
 *
 * What threads of the engine's own do (they compile, they move data between processes): the CPU's
 * source. It costs a load and a branch while nobody records. */

/* The log's clock, the system's monotonic one, ns. */
int64_t td_clock_ns(void);
/* Keep a copy, if somebody records; of more than is wanted the newest. Names are cut at 200
 * characters. */
void td_activity_log(const td_activity *activity);
/* Who logs what a script has waited for only on its device's stream: called, until another is given
 * (NULL: nobody), before a recording takes the log, it waits for that. */
void td_activity_log_wait_by(void (*wait)(void));
/* When the engine starts: whoever records may ask for the log. */
void td_activity_log_announce(void);

/* The rows that what is compiled is shown on: its streams. Those from TD_COMPILERS on are the
 * transfers'. */
typedef enum td_compiler { TD_COMPILER_CODE, TD_COMPILER_GRAPHS, TD_COMPILERS } td_compiler;

/* Who asked for it: noted on the asker's thread. */
typedef struct td_compile_request {
    uint32_t thread; /* 0: not known, nobody recorded then */
    uint64_t at_ns;
} td_compile_request;
td_compile_request td_compile_request_now(void);

/* The moment at which something begins; 0: nobody records. */
uint64_t td_compile_begin(void);
/* It has been done. "WHAT NAME" is what people read, cut at 200 characters. */
void td_compile_end(uint64_t began_ns, td_compiler compiler, td_compile_request request,
                    const char *what, const char *name);

#endif
