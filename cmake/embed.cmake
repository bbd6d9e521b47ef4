# tide_embed(target file...): adds each text file to the target as a C array, and a table of them:
#   extern const tide_embedded tide_embedded_TARGET[];   { name without its ending, bytes, length }
function(tide_embed target)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.c)
    set(files)
    foreach(file ${ARGN})
        get_filename_component(path ${file} ABSOLUTE)
        list(APPEND files ${path})
    endforeach()
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSYMBOL=tide_embedded_${target} "-DFILES=${files}"
                -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()
