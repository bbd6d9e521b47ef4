# Script mode: writes the C file that tide_embed promises.
set(arrays "")
set(table "")
set(index 0)
foreach(file ${FILES})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND arrays "static const char file${index}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", file${index}, sizeof file${index} - 1},\n")
    math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "#include \"cmake/embedded.h\"\n${arrays}
extern const tide_embedded ${SYMBOL}[];
const tide_embedded ${SYMBOL}[] = {\n${table}    {0, 0, 0},\n};\n")
