/* trace_place.h: slices of a trace, which may overlap, onto tracks where they nest. */
#ifndef TIDE_PROFILER_TRACE_PLACE_H
#define TIDE_PROFILER_TRACE_PLACE_H

#include "profiler/event.h"

/* `events` of the recording have name, kind, times (of any origin) and, as `thread`, the number of
 * one of its `tracks` from 1: put them in order, find what lies around each, move what overlaps to
 * new tracks, count from the first beginning. ENOMEM; EVALUE when too many overlap. */
td_status tide_place_events(tide_recording *recording) TD_MUST_CHECK;

#endif
