# What tests need in their environment, and how much more time, when the build has sanitizers or is another machine's.
#
# TIDE_TEST_ENVIRONMENT: for every test. TIDE_TEST_SLOWDOWN: factor on timeouts. TIDE_TEST_PRELOAD: for
# programs that aren't ours and load our libraries.
# A history that a test leaves behind stays in the build folder.
set(TIDE_TEST_ENVIRONMENT "XDG_STATE_HOME=${PROJECT_BINARY_DIR}/tests/state" TIDE_SCRIPT=now
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/tests/cache") # machine code that is made outlives a run
set(TIDE_TEST_PRELOAD "")
set(TIDE_TEST_SLOWDOWN 1)

if(CMAKE_CROSSCOMPILING) # the emulator
    set(TIDE_TEST_SLOWDOWN 20)
endif()
if(TIDE_SANITIZE MATCHES "address")
    set(TIDE_TEST_SLOWDOWN 5)
    # A failed allocation is an ordinary error in Tide: the allocator must return NULL as malloc does.
    list(APPEND TIDE_TEST_ENVIRONMENT
        "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:strict_string_checks=1"
        "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.supp:print_suppressions=0"
        "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
        OUTPUT_VARIABLE libasan OUTPUT_STRIP_TRAILING_WHITESPACE)
    # Compilers that link their runtime statically only print the name back.
    if(IS_ABSOLUTE "${libasan}")
        set(TIDE_TEST_PRELOAD "LD_PRELOAD=${libasan}")
    endif()
elseif(TIDE_SANITIZE MATCHES "thread")
    set(TIDE_TEST_SLOWDOWN 10)
    list(APPEND TIDE_TEST_ENVIRONMENT "OMP_NUM_THREADS=3"
        "TSAN_OPTIONS=halt_on_error=1:suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp")
endif()
