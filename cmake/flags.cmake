# Compiler flags that every room shares.
add_library(tide_flags INTERFACE)
target_compile_options(tide_flags INTERFACE
    -Wall -Wextra -Wshadow -Wundef -Wpointer-arith -Wswitch-enum
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    -fno-math-errno -ffp-contract=off -fno-semantic-interposition -fno-plt
    $<$<BOOL:${TIDE_WERROR}>:-Werror>)
if(TIDE_SANITIZE) # a list of sanitizers has commas, which generator expressions take for their own
    target_compile_options(tide_flags INTERFACE
        -fsanitize=${TIDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    target_link_options(tide_flags INTERFACE -fsanitize=${TIDE_SANITIZE})
endif()
# What a bug of ours, or of whoever loads us, finds when it writes where it should not: no table of
# functions that can be written, arrays on the stack behind a guard, copies that know their target.
target_link_options(tide_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
target_compile_options(tide_flags INTERFACE -fstack-protector-strong)
if(NOT TIDE_SANITIZE) # sanitizers look themselves; without optimisation the library refuses
    target_compile_options(tide_flags INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
# Where the tree lies is nothing that a program should carry; a release names no file of it anyway.
target_compile_options(tide_flags INTERFACE
    $<$<NOT:$<OR:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CUDA>>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
target_compile_definitions(tide_flags INTERFACE _GNU_SOURCE)
target_include_directories(tide_flags INTERFACE ${PROJECT_SOURCE_DIR})
