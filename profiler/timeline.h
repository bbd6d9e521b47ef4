/* timeline.h: a recording as a picture: for the terminal in blocks, and as data for one that can be
 * zoomed.
 */
#ifndef TIDE_PROFILER_TIMELINE_H
#define TIDE_PROFILER_TIMELINE_H

#include "profiler/event.h"

/* The part of a recording that is drawn, ns since it began. */
typedef struct tide_window {
    int64_t from, to; /* from < to */
} tide_window;

/* From the first event's beginning to the last one's end. */
tide_window tide_window_of(const tide_recording *recording);

/* Rows for each thread: what the script does between operators, what operators do besides their
 * kernels, the kernels; or a device's work. A cell's height is the share of its time that is spent
 * so, its colour (with `color`, as a terminal's codes) stands for the name that takes most of it,
 * and below are the names. `width` cells, at least 10. For td_free; NULL: ENOMEM. */
char *tide_timeline_text(const tide_recording *recording, tide_window window, int width,
                         bool color);

/* The slices of the window as JSON without a '<': {"from", "to", "left_out", "rows": [{"name",
 * "depth"}], "names", "lines", "shapes", "slices": [row, depth, start ns since `from`, ns, name,
 * line or -1, shapes or -1, kind, ...]}, eight numbers a slice; of more than `most` the longest.
 * For td_free; NULL: ENOMEM. */
char *tide_timeline_data(const tide_recording *recording, tide_window window, int most);

#endif
