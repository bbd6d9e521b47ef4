/* event_parts.h: names of events that stand for several operators at once. */
#ifndef TD_CALLS_EVENT_PARTS_H
#define TD_CALLS_EVENT_PARTS_H

/* The name for events of a group, kept for ever, with what it is made of as people read it ("mul
 * model.lua:3, tanh model.lua:4"). The same texts give the same name. After some thousand of them,
 * or without memory, `otherwise`. Any thread. */
const char *td_event_group_name(const char *name, const char *parts, const char *otherwise);

/* What such a name is made of, valid for ever; NULL: it is of one operator, or of none. */
const char *td_event_parts(const char *name);

#endif
