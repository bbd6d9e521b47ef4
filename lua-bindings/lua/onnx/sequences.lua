-- onnx/sequences.lua: ONNX's sequences (lists of tensors), values that may be missing, and graphs that run in graphs.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local wrong = tensors.wrong
local operators = {}

local NOTHING <const> = common.NOTHING

-- ---- sequences ----

function operators.SequenceConstruct(_, ...) return { ... } end
function operators.SequenceEmpty() return {} end
function operators.SequenceLength(_, list) return common.scalar(#list, tide.int64) end

local function place_in(list, position, most)
    local at = position and common.number(position) or most - 1
    at = at < 0 and at + #list or at
    if at < 0 or at >= most then
        wrong("place %d of a sequence of %d", at, #list)
    end
    return at + 1
end

function operators.SequenceAt(_, list, position) return list[place_in(list, position, #list)] end
function operators.SequenceErase(_, list, position)
    local new = table.move(list, 1, #list, 1, {})
    table.remove(new, place_in(list, position, #list))
    return new
end
function operators.SequenceInsert(_, list, x, position)
    local new = table.move(list, 1, #list, 1, {})
    table.insert(new, place_in(list, position, #list + 1), x)
    return new
end

function operators.ConcatFromSequence(call, list)
    local a = call.attributes
    if a.new_axis == 1 then
        return tide.stack(list, common.dim(a.axis, list[1]:dim() + 1))
    end
    return tide.cat(list, common.dim(a.axis, list[1]))
end

function operators.SplitToSequence(call, x, sizes)
    local a = call.attributes
    local dim = common.dim(a.axis or 0, x)
    local each = sizes and (sizes:dim() == 0 and common.number(sizes) or common.list(sizes)) or 1
    local parts = type(each) == "number" and { table.unpack(x:split(each, dim)) } or x:split(each, dim)
    local list = {}
    for k, part in ipairs(parts) do
        list[k] = (not sizes and a.keepdims == 0) and part:squeeze(dim) or part
    end
    return list
end

function operators.SequenceMap(call, first, ...)
    local more, results = { ... }, {}
    for k = 1, call.outputs do
        results[k] = {}
    end
    for k, x in ipairs(first) do
        local inputs = { x }
        for j, other in ipairs(more) do
            inputs[j + 1] = (type(other) == "table") and other[k] or other
        end
        for j, value in ipairs(call.block(call.attributes.body, inputs)) do
            results[j][k] = value
        end
    end
    return table.unpack(results)
end

-- ---- what may be missing ----

function operators.Optional(_, x) return x == nil and NOTHING or x end
function operators.OptionalHasElement(_, x) return common.scalar(x ~= nil and x ~= NOTHING, tide.bool) end
function operators.OptionalGetElement(_, x)
    return x ~= NOTHING and x or wrong("there is no element")
end

-- ---- control ----

function operators.If(call, condition)
    local branch = common.number(condition)
    return table.unpack(call.block(call.attributes[(branch == true or branch == 1) and "then_branch" or "else_branch"], {}))
end

local function holds(x)
    local value = x == nil or common.number(x)
    return value == true or value == 1
end

-- Lists of values as one tensor with a dim more, at a place.
local function stacked(list, axis)
    return #list > 0 and tide.stack(list, axis or 1) or tide.zeros(0)
end

function operators.Loop(call, most, condition, ...)
    local body, carried = call.attributes.body, table.pack(...)
    local count, n = most and common.number(most) or math.maxinteger, carried.n
    local going, trip, scans = holds(condition), 0, {}
    for k = 1, #body.outputs - 1 - n do
        scans[k] = {}
    end
    while going and trip < count do
        local outputs = call.block(body, { common.scalar(trip, tide.int64), common.scalar(true, tide.bool), table.unpack(carried, 1, n) })
        going, trip = holds(outputs[1]), trip + 1
        for k = 1, n do
            carried[k] = outputs[k + 1]
        end
        for k, list in ipairs(scans) do
            list[trip] = outputs[n + 1 + k]
        end
    end
    for k, list in ipairs(scans) do
        carried[n + k] = stacked(list)
    end
    return table.unpack(carried, 1, n + #scans)
end

function operators.Scan(call, ...)
    local a, body, given = call.attributes, call.attributes.body, { ... }
    if call.opset < 9 then -- a batch in front, and lengths
        table.remove(given, 1)
        local n, all = given[1]:size(1), {}
        for b = 1, n do
            local own = {}
            for k, x in ipairs(given) do
                own[k] = x[b]
            end
            for k, y in ipairs { operators.Scan({ attributes = a, opset = 9, block = call.block, what = call.what }, table.unpack(own)) } do
                all[k] = all[k] or {}
                all[k][b] = y
            end
        end
        for k, list in ipairs(all) do
            all[k] = tide.stack(list)
        end
        return table.unpack(all)
    end
    local scanned = a.num_scan_inputs
    local n = #given - scanned
    local state, steps, results = table.move(given, 1, n, 1, {}), nil, {}
    local ahead = {}
    for k = 1, scanned do
        local x = given[n + k]
        local dim = common.dim(a.scan_input_axes and a.scan_input_axes[k] or 0, x)
        local back = a.scan_input_directions and a.scan_input_directions[k] == 1
        steps = x:size(dim)
        ahead[k] = function(t) return x:select(dim, back and steps - t + 1 or t) end
    end
    for t = 1, steps do
        local inputs = table.move(state, 1, n, 1, {})
        for k = 1, scanned do
            inputs[n + k] = ahead[k](t)
        end
        local outputs = call.block(body, inputs)
        for k = 1, n do
            state[k] = outputs[k]
        end
        for k = 1, #body.outputs - n do
            results[k] = results[k] or {}
            local back = a.scan_output_directions and a.scan_output_directions[k] == 1
            table.insert(results[k], back and 1 or #results[k] + 1, outputs[n + k])
        end
    end
    for k, list in ipairs(results) do
        local axis = a.scan_output_axes and a.scan_output_axes[k] or 0
        state[n + k] = stacked(list, common.dim(axis, list[1]:dim() + 1))
    end
    return table.unpack(state, 1, n + #results)
end

return operators
