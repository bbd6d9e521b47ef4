/* keyed_places.c: keys with their places, sorted, parted and dealt out by digits. */
#include "engine/cpu/order/keyed_places.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define E      uint64_t
#define HALF   32
#define SUFFIX narrow_entries
#include "engine/cpu/order/keyed_places_loops.h"

#define E      wide
#define HALF   64
#define SUFFIX wide_entries
#include "engine/cpu/order/keyed_places_loops.h"
