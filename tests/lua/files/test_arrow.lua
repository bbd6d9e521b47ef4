-- tide.io.to_arrow and from_arrow: what is handed over by Arrow's structs comes back as it was, and is taken once.
local t = require "harness"

local function back(x)
    local s = tide.io.to_arrow(x)
    return tide.io.from_arrow(s.schema, s.array)
end

t.test("tensors_and_tables_come_back", function()
    for _, dtype in ipairs { tide.float64, tide.float32, tide.float16, tide.int64, tide.int32, tide.int16, tide.int8, tide.uint8, tide.bool } do
        for _, n in ipairs { 0, 1, 9 } do
            local x = (tide.arange(n) % 2):to(dtype)
            local y = back(x)
            t.is_true(y.dtype == dtype and y:equal(x), tostring(dtype))
        end
    end
    t.eq(back(tide.arange(6):view(2, 3):t()[{ {}, 2 }]):tolist(), { 3, 4, 5 }) -- a view with strides
    local tbl = tide.data.table { { "n", { 1, 2, 3 } }, { "f", { 0.5, 0 / 0, 2 } }, { "s", tide.data.table { s = { "x", "", "x" } }.s },
        { "b", { true, false, true } } }
    tbl.gap = tide.io.from_arrow(tide.io.to_arrow(tbl.s).schema, tide.io.to_arrow(tbl.s).array)
    local got = back(tbl)
    t.eq({ got:names(), #got, got.n:tolist(), got.s:tolist(), got.b:tolist(), got.f:isnan():tolist() },
        { { "n", "f", "s", "b", "gap" }, 3, { 1, 2, 3 }, { "x", "", "x" }, { true, false, true }, { false, true, false } })
    t.eq({ #back(tide.data.table {}), #back(tide.data.table { a = tide.zeros(0) }) }, { 0, 0 })
end)

t.test("memory_lives_as_long_as_who_uses_it", function()
    local s = tide.io.to_arrow(tide.arange(1000) * 2)
    local y = tide.io.from_arrow(s.schema, s.array)
    s = nil
    collectgarbage()
    t.eq(y:sum():item(), 999000)
    for _ = 1, 100 do
        tide.io.to_arrow(tide.data.table { a = tide.ones(10), s = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" } }) -- nobody takes it
    end
    collectgarbage()
end)

t.test("what_is_no_column_is_refused", function()
    local s = tide.io.to_arrow(tide.ones(3))
    local schema, array = s.schema, s.array
    tide.io.from_arrow(schema, array)
    t.error_has(function() tide.io.from_arrow(schema, array) end, "from_arrow: arrow: the structs were released already")
    for _, wrong in ipairs { 5, "x", {}, tide.ones(1) } do
        t.error_has(function() tide.io.from_arrow(wrong, wrong) end, "from_arrow: the addresses of a schema and of an array expected, as light userdata")
    end
    t.error_has(function() tide.io.to_arrow(tide.ones(2, 2)) end, "to_arrow: arrow: a row-major tensor of one dim on the CPU expected")
    t.error_has(function() tide.io.to_arrow(tide.ones(2):to(tide.bfloat16)) end, "of a dtype that Arrow has")
    t.error_has(function() tide.io.to_arrow { 1, 2 } end, "to_arrow: a tensor of one dim or a table expected, got table")
    t.error_has(function() tide.io.to_arrow(tide.data.table { ["a\0b"] = { 1 } }) end, "the name of column 1 holds a NUL byte")
end)
