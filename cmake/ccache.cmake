# Compile through ccache where it is found and can write its cache; -DTIDE_CCACHE=OFF leaves it out.
option(TIDE_CCACHE "Compile through ccache where it is found" ON)
if(TIDE_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    find_program(TIDE_CCACHE_PROGRAM ccache)
    if(TIDE_CCACHE_PROGRAM)
        # Only compiling shows whether it can (a home that isn't there, a read-only one).
        set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/ccache_probe)
        file(WRITE ${probe}.c "int main(void) { return 0; }\n")
        execute_process(COMMAND ${TIDE_CCACHE_PROGRAM} ${CMAKE_C_COMPILER} -c ${probe}.c -o ${probe}.o
            RESULT_VARIABLE ccache_status OUTPUT_QUIET ERROR_QUIET)
        if(ccache_status EQUAL 0)
            set(CMAKE_C_COMPILER_LAUNCHER ${TIDE_CCACHE_PROGRAM})
            set(CMAKE_CXX_COMPILER_LAUNCHER ${TIDE_CCACHE_PROGRAM})
            set(CMAKE_CUDA_COMPILER_LAUNCHER ${TIDE_CCACHE_PROGRAM})
        endif()
    endif()
endif()
