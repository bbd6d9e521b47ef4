"""A Python process that loads libtide.so by itself, beside NumPy where that is there, and then trains in a Lua that it
loads as well: `host.py LIBTIDE LIBLUA SCRIPT`. What a library wants of each thread's storage must be there for those that
come later."""
import ctypes
import struct
import sys

PT_TLS, MOST = 7, 512  # what glibc keeps for libraries that are loaded late is some 1,600 bytes, for all together


def thread_storage(path):
    """Bytes that a library (ELF, 64 bits) takes of each thread's storage."""
    with open(path, "rb") as file:
        data = file.read()
    at, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, at + k * size) for k in range(count)]
    return sum(h[6] for h in headers if h[0] == PT_TLS)


def main(library, lua, script):
    taken = thread_storage(library)
    assert taken <= MOST, f"{library} takes {taken} bytes of each thread's storage, {MOST} at most"
    try:
        import numpy
        numpy.ones((100, 100)) @ numpy.ones((100, 100))
    except ImportError:
        pass
    tide = ctypes.CDLL(library)
    tide.td_error_message.restype = ctypes.c_char_p
    assert tide.td_init() == 0, tide.td_error_message()
    lib = ctypes.CDLL(lua, mode=ctypes.RTLD_GLOBAL)
    lib.luaL_newstate.restype = ctypes.c_void_p
    lib.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lib.luaL_newstate())
    lib.luaL_openlibs(state)
    failed = lib.luaL_loadfilex(state, script.encode(), None) or lib.lua_pcallk(state, 0, 0, 0, ctypes.c_ssize_t(0), None)
    if failed:
        sys.exit(lib.lua_tolstring(state, -1, None).decode())
    lib.lua_close(state)


main(*sys.argv[1:])
