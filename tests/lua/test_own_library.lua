-- test_own_library.lua: Tide's own modules stand on Lua's library as it was when Tide was opened: whatever a script puts in
-- its place, before a module is first touched or later, breaks the script's calls alone. And no module of Tide's reads a
-- global that is none of Lua's, which a misspelt local is.
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."
local program, build = os.getenv "TIDE", os.getenv "TIDE_BUILD"

-- What a script may do to the library.
local SPOILT = {
    none = "",
    gone = "string, table, math, io, os, utf8, coroutine, debug, package = nil",
    other = "string, table, math, io, os, utf8, debug, package = 1, 'x', {}, print, {}, true, {}, setmetatable({}, {__index = error})",
    functions = "for name in ('ipairs pairs next type tostring tonumber select pcall error rawget rawset rawequal getmetatable "
        .. "setmetatable load'):gmatch('%a+') do _G[name] = nil end",
    emptied = "for _, lib in ipairs { table, math, io, os, utf8, debug, string } do for k in pairs(lib) do lib[k] = nil end end",
    failing = "for _, lib in ipairs { table, math, os, utf8, string } do for k in pairs(lib) do lib[k] = function() error 'no' end end end",
    methods = "debug.setmetatable('', { __index = function() return function() return 'x' end end })",
    no_methods = "debug.setmetatable('', nil)",
    late = "tide.nn.Linear(2, 2); tide.optim.SGD({tide.ones(1):requires_grad_()}, {lr = 1}); string, table, math, io, os, pairs, type = nil",
}

-- Everyday uses of many modules; each prints a line that does not depend on the machine.
local USES = {
    "say(tide._describe({}), #text(tide.nn.Sequential(tide.nn.Linear(2, 3), tide.nn.LocalResponseNorm(2))))",
    "local p = tide.profiler.profile(function() return tide.ones(9, 9):matmul(tide.ones(9, 9)):sum() end); say(#text(p) > 100)",
    "local p = tide.profiler.profile(function() for i = 1, 3 do local x = tide.ones(9):add(1) end end); say(#text(p:advice()) > 0)",
    "say(#text(tide.plot.line({3, 1, 2})) > 20)",
    "tide.save({a = {1, 'x', tide.ones(2)}}, p); say(tide.load(p).a[3]:sum():item())",
    "tide.io.save_npz({a = tide.ones(2)}, p); say(tide.io.load_npz(p).a:sum():item())",
    "tide.io.write_csv(tide.eye(2), p); say(tide.io.read_csv(p):sum():item())",
    "local w = tide.ones(2):requires_grad_(); local o = tide.optim.Adam({w}); (w * w):sum():backward(); o:step(); say(w:lt(1):all():item())",
    "local w = tide.ones(2):requires_grad_(); local o = tide.optim.SGD({w}, {lr = 1}); local s = tide.optim.lr_scheduler.StepLR(o, 1); o:step(); s:step(); say(s:get_last_lr()[1])",
    "say(tide.autograd.gradcheck(function(x) return x * x end, {tide.ones(2, {dtype = tide.float64}):requires_grad_()}))",
    "say(tide.distributions.Normal(0, 1):log_prob(tide.tensor(0.0)):item() < 0)",
    "tide.display.html('<b>x</b>')",
    "say(#tide._require('notebook.html').value({{1, 2}, {3, 4}}) > 10)",
    "local m = tide.nn.Linear(2, 1); local s = m:state_dict(); m:load_state_dict(s); say(#m:parameters())",
    "tide.print({1, {2}})",
    "say(#text(tide.benchmark.Timer{stmt = 'x + x', globals = {x = tide.ones(2)}}:timeit(5)) > 20)",
    "local r = tide.nn.utils.clip_grad_norm_({tide.ones(2):requires_grad_()}, 1); say(r:item())",
    "local n = 0; for a in tide.data.DataLoader({1, 2, 3}, {batch_size = 2, shuffle = true, num_workers = 1}) do n = n + #a end; say(n)",
    "say(pcall_(tide.nn.Linear, 'x'))",
    "say(pcall_(function() return tide.onse end))",
    "say(pcall_(function() return tide.ones(2):matmul(tide.ones(3)) end))",
}

-- The lines that a program prints which spoils the library and then makes its uses; errors are lines too.
local function lines_of(command, spoil)
    local path = os.tmpname()
    local out = { "local print, tostring, pcall, ipairs, load, gsub, p = print, tostring, pcall, ipairs, load, string.gsub, os.tmpname()",
        "function say(...) print(...) end", "_G.text = tostring",
        "local function line(x) return (gsub(tostring(x), '\\n.*', '')) end",
        "function pcall_(...) local ok, message = pcall(...) return ok, line(message) end", "_G.p = p", "local uses = {}" }
    for _, use in ipairs(USES) do
        out[#out + 1] = ("uses[#uses + 1] = load(%q, '=use')"):format(use)
    end
    out[#out + 1] = spoil
    out[#out + 1] = "for k = 1, #uses do local ok, message = pcall(uses[k]) if not ok then print(k, line(message)) end end"
    local file <close> = assert(io.open(path, "w"))
    file:write("local tide = require 'tide' _G.tide = tide\n", table.concat(out, "\n"), "\n")
    file:close()
    local pipe <close> = io.popen(command .. " " .. path .. " 2>&1")
    local text = pipe:read("a")
    os.remove(path)
    return (text:gsub("/tmp/lua_%w+", "PATH"):gsub("0x%x+", "ADDRESS"))
end

-- A plain Lua can't load a sanitized module without more.
local plain = build and not os.getenv "TIDE_SANITIZED" and os.execute("lua5.4 -v >/dev/null 2>&1")
    and ("LUA_CPATH='%s/?.so' lua5.4"):format(build)
for name, command in pairs { tide = program and ("'%s'"):format(program), plain_lua = plain or nil } do
    t.test("what_a_script_does_to_the_library_is_its_own_affair_in_" .. name, function()
        local wanted = lines_of(command, SPOILT.none)
        t.is_true(not wanted:find("\n%d+\t") and select(2, wanted:gsub("\n", "")) >= #USES, wanted)
        for kind, spoil in pairs(SPOILT) do
            t.eq(lines_of(command, spoil), wanted, kind)
        end
    end)
end

t.test("print_and_warn_are_the_script_s_as_they_are_at_the_time", function()
    local heard, print_before, warn_before = {}, print, warn
    print = function(x) heard[#heard + 1] = x end
    warn = print
    tide.interact(function(lr) return lr end, { lr = { 0, 1 } })
    local w = tide.ones(1):requires_grad_()
    local scheduler = tide.optim.lr_scheduler.StepLR(tide.optim.SGD({ w }, { lr = 1 }), 1)
    scheduler:step()
    print, warn = print_before, warn_before
    t.eq(#heard, 2)
end)

local LIBRARY = {}
for name in ("_G arg assert collectgarbage coroutine debug error getmetatable io ipairs load loadfile math next os package pairs pcall print "
    .. "rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type utf8 warn xpcall"):gmatch("%S+") do
    LIBRARY[name] = true
end

-- What strings alone have for methods (others pack and unpack what they will).
local METHODS = {}
for name in ("byte find format gmatch gsub len lower match rep reverse sub upper"):gmatch("%a+") do
    METHODS[name] = true
end

t.test("modules_read_no_globals_but_lua_s_and_no_methods_of_strings", function()
    local luac
    for _, name in ipairs { "luac5.4", "luac" } do
        luac = luac or os.execute(name .. " -v 2>/dev/null | grep -q 'Lua 5.4'") and name
    end
    if not luac then
        return
    end
    local pipe <close> = io.popen(("cd '%s/../../lua-bindings/lua' && for f in *.lua */*.lua; do echo file $f; %s -l -l -p $f; done"):format(here, luac))
    local file, files
    for text in pipe:lines() do
        local other = text:match("^file (.*)")
        file, files = other or file, (files or 0) + (other and 1 or 0)
        local name = text:match('_ENV "([%w_]+)"')
        t.is_true(not name or LIBRARY[name], ("%s: %s"):format(file, name))
        t.is_true(not text:find("SETTABUP.*_ENV"), ("%s: %s"):format(file, text))
        local method = text:match('SELF%s.*"(%a+)"')
        t.is_true(not (method and METHODS[method]), ("%s: s:%s(), where string.%s(s) is kept"):format(file, method, method))
    end
    t.is_true(files > 100)
end)
