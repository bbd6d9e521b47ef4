# Programs and libraries are linked beside their places and moved there, so that what starts while a build goes on finds
# the old or the new, never a part.
foreach(rule C_CREATE_SHARED_LIBRARY C_CREATE_SHARED_MODULE C_LINK_EXECUTABLE CXX_CREATE_SHARED_LIBRARY
        CXX_CREATE_SHARED_MODULE CXX_LINK_EXECUTABLE)
    string(REPLACE "-o <TARGET>" "-o <TARGET>.new" CMAKE_${rule} "${CMAKE_${rule}}")
    list(APPEND CMAKE_${rule} "\"${CMAKE_COMMAND}\" -E rename <TARGET>.new <TARGET>")
endforeach()
