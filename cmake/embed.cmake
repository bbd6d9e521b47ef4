# tide_embed(target [FOLDER folder] file...): adds each text file to the target as a C array, and a table of them:
#   extern const tide_embedded tide_embedded_TARGET[];   { name, bytes, length }
# A file's name is what it is called, without its ending; files of a folder are named by their paths in it:
# nn/layers.lua is "nn.layers", examples/nn.txt "examples/nn.txt".
function(tide_embed target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "")
    set(folder)
    if(arg_FOLDER)
        get_filename_component(folder ${arg_FOLDER} ABSOLUTE)
    endif()
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.c)
    set(files)
    foreach(file ${arg_UNPARSED_ARGUMENTS})
        get_filename_component(path ${file} ABSOLUTE)
        list(APPEND files ${path})
    endforeach()
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSYMBOL=tide_embedded_${target} "-DFILES=${files}" "-DFOLDER=${folder}"
                -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()
