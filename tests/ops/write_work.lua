-- write_work.lua: writes which functions of a device operators ask for as the Lua module that Tide ships
-- (lua-bindings/lua/devices/work_lists.lua): write(lists, path), where lists[operator] = "FUNCTION FUNCTION".
return function(lists, path)
    local groups, orders = {}, {}
    for name, functions in pairs(lists) do
        if not groups[functions] then
            groups[functions] = {}
            orders[#orders + 1] = functions
        end
        table.insert(groups[functions], name)
    end
    table.sort(orders)
    local file = assert(io.open(path, "w"))
    file:write([=[
-- devices/work_lists.lua: which functions of a device (engine/core/backend.h) each operator asks for: a line
-- "FUNCTIONS: OPERATORS" for all that ask for the same. tests/ops/test_device.lua compares it with what operators do,
-- and writes it anew with TIDE_WORK_WRITE=FILE.
local text = [[
]=])
    for _, functions in ipairs(orders) do
        local names, line = groups[functions], functions .. ":"
        table.sort(names)
        for _, name in ipairs(names) do
            if #line + #name + 1 > 118 then
                file:write(line, "\n")
                line = "   "
            end
            line = line .. " " .. name
        end
        file:write(line, "\n")
    end
    file:write([=[
]]
local lists, functions = {}, ""
for line in text:gmatch("[^\n]+") do
    local head, names = line:match("^([^:]*):(.*)")
    functions = head or functions
    for name in (names or line):gmatch("%S+") do
        lists[name] = functions
    end
end
return lists
]=])
    file:close()
end
