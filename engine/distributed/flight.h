/* flight.h: what this process did together with others of late: a record for each transfer, the
 * last TD_FLIGHT of them. Written by the script's thread and the driver's, read by the watch's. */
#ifndef TD_DISTRIBUTED_FLIGHT_H
#define TD_DISTRIBUTED_FLIGHT_H

#include "engine/distributed/work.h"

enum { TD_FLIGHT = 1000, TD_FLIGHT_DIMS = 4 };

/* One transfer, as it is also sent to the hub: no pointers, the same bytes on all machines of a
 * job. */
typedef struct td_flight_record {
    uint64_t number;   /* of this process's transfers, from 1 */
    uint32_t group;    /* 0: all ranks; else the number of the group, the same on all ranks */
    uint32_t sequence; /* of the group's collectives, from 1; 0: send and recv */
    uint8_t kind, op, dtype, ndim; /* of the whole shape */
    uint8_t lane; /* 0: the CPU's elements; else which of the devices of the group, from 1 */
    uint8_t unused[3];
    int32_t peer;
    int64_t count; /* elements that all ranks must agree on; -1: none */
    int64_t sizes[TD_FLIGHT_DIMS];
    double posted, arrived; /* seconds since 1970; 0: not yet */
    char place[TD_PLACE];
} td_flight_record;

double td_flight_clock(void); /* seconds since 1970 */

/* Begin anew. */
void td_flight_clear(void);
/* Note a transfer that begins; its number. `record` gets number and time. */
uint64_t td_flight_begin(td_flight_record *record);
void td_flight_end(uint64_t number);

/* Copy up to `room` records behind the given number, oldest first; how many. */
int td_flight_read(uint64_t behind, td_flight_record *records, int room);
/* The oldest that has not arrived; false: all have, and *record is the last of all, if there is
 * any (number 0: none). */
bool td_flight_oldest(td_flight_record *record);

/* "all_reduce #41 of group 2, train.lua:88" into a buffer; returns it. */
const char *td_flight_text(const td_flight_record *record, char *buffer, size_t size);

/* Do two ranks' records of one collective tell the same? */
bool td_flight_agree(const td_flight_record *a, const td_flight_record *b);
/* Add formatted text to a buffer of so many bytes, as far as there is room. */
void td_flight_add(char *text, size_t size, const char *format, ...) TD_PRINTF(3, 4);
/* Add to a buffer where a rank is: "in all_reduce of 1000 float32 (sum), train.lua:88". */
void td_flight_describe(const td_flight_record *record, char *text, size_t size);

/* Write all as a Chrome trace, in which this process is number `rank`. EIO, ENOMEM. */
td_status td_flight_write(const char *path, int rank) TD_MUST_CHECK;

#endif
