# exports.cmake: writes a version script that exports what the public headers declare, td.h and
# td_backend.h, and operators.
# cmake -DROOT=SOURCE -DOUT=exports.map -P exports.cmake
file(STRINGS ${ROOT}/engine/td.h lines REGEX "^#include \"")
file(STRINGS ${ROOT}/engine/td_backend.h more REGEX "^#include \"")
list(APPEND lines ${more})
set(exported "td_operator_*" __jit_debug_descriptor __jit_debug_register_code) # debuggers find these by name
foreach(line ${lines})
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" path "${line}")
    file(READ ${ROOT}/${path} text)
    string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
    string(REGEX MATCHALL "[a-zA-Z0-9_]+" words "${text}")
    list(FILTER words INCLUDE REGEX "^td_[a-z0-9_]+$")
    list(APPEND exported ${words})
endforeach()
list(REMOVE_DUPLICATES exported)
list(SORT exported)
list(JOIN exported ";\n    " names)
file(WRITE ${OUT} "{\n    global:\n    ${names};\n    local: *;\n};\n")
