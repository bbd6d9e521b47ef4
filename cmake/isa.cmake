# The instruction sets that kernels are compiled for, from TIDE_ISA: `tide_isas`, baseline first, and the
# flags of each. The baseline is always there; it is compiled quickly where a better set will run.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(tide_known_isas avx2 avx512)
else()
    set(tide_known_isas)
    message(STATUS "Kernels are compiled for the baseline alone: AVX2 and AVX-512 are x86-64's")
endif()
set(tide_isa_flags_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(tide_isa_flags_avx512 ${tide_isa_flags_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq
    -mprefer-vector-width=512)

# What /proc/cpuinfo calls what each set needs; cpu/isa/isa_select.c asks the processor when Tide starts.
set(tide_isa_needs_avx2 avx2 fma f16c bmi2)
set(tide_isa_needs_avx512 ${tide_isa_needs_avx2} avx512f avx512bw avx512vl avx512dq)

# tide_machine_isas(out): which of the known sets this machine has; all where that can't be told.
function(tide_machine_isas out)
    set(has ${tide_known_isas})
    if(EXISTS /proc/cpuinfo)
        file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
        foreach(isa ${tide_known_isas})
            foreach(need ${tide_isa_needs_${isa}})
                if(NOT flags MATCHES "[ \t]${need}( |$)")
                    list(REMOVE_ITEM has ${isa})
                endif()
            endforeach()
        endforeach()
    endif()
    set(${out} ${has} PARENT_SCOPE)
endfunction()

# How code is compiled to be there, not to be fast: a set that better ones replace on this machine, or all of a `quick`
# build, which another replaces soon. It takes two thirds of the time that -O1 takes. The warnings are what gcc 12 to 14 say falsely where they optimise little.
set(tide_quickly -Og)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND tide_quickly -Wno-array-bounds -Wno-stringop-overflow -Wno-uninitialized -Wno-maybe-uninitialized)
endif()

tide_machine_isas(tide_machine_has)
if(TIDE_ISA STREQUAL "all")
    set(tide_isas ${tide_known_isas})
elseif(TIDE_ISA STREQUAL "native")
    set(tide_isas ${tide_machine_has})
    if(tide_isas)
        list(GET tide_isas -1 tide_isas) # known sets stand in the order of their worth
        set(tide_isa_quick_baseline ${tide_quickly})
    endif()
elseif(TIDE_ISA STREQUAL "quick")
    set(tide_isas)
    set(tide_isa_quick_baseline ${tide_quickly})
else()
    set(tide_isas ${TIDE_ISA})
    list(REMOVE_ITEM tide_isas baseline)
    foreach(isa ${tide_isas})
        if(NOT isa IN_LIST tide_known_isas)
            list(JOIN tide_known_isas ", " known)
            message(FATAL_ERROR "TIDE_ISA=${TIDE_ISA}: '${isa}' is none of native, quick, all, baseline, ${known}")
        endif()
    endforeach()
endif()
list(PREPEND tide_isas baseline)
