/* poison.h: memory that nobody may touch for now, told to the address sanitizer; nothing without
 * it.
 *
 * What reads or writes poisoned bytes ends the program with a report. Whoever poisons a block
 * unpoisons it before it goes back to where it came from.
 */
#ifndef TD_CORE_POISON_H
#define TD_CORE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define TD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TD_SANITIZED 1
#endif
#endif

#ifdef TD_SANITIZED
#include <sanitizer/asan_interface.h>
#define TD_POISON(p, bytes)   __asan_poison_memory_region(p, bytes)
#define TD_UNPOISON(p, bytes) __asan_unpoison_memory_region(p, bytes)
#else
#define TD_SANITIZED          0
#define TD_POISON(p, bytes)   ((void)(p), (void)(bytes))
#define TD_UNPOISON(p, bytes) ((void)(p), (void)(bytes))
#endif

#endif
