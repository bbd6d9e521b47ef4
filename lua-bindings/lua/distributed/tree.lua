-- distributed/tree.lua: means over the micro-batches of a step in one fixed binary tree, so that their bits are the same for every
-- number of ranks. Knows rows of elements, neither modules nor backward.
--
-- Micro-batches count from 0 here. The node (height, number) is the sum of micro-batches number * 2^height to
-- (number + 1) * 2^height - 1, of those that there are, and is its left half plus its right. A rank has micro-batches that follow one
-- another, and adds up what nodes lie within them. Each rank then gets all ranks' nodes of its share of the elements, adds the rest, and
-- gives the means of its share to all.
local tide = ...

local tree = {}

--- share(count, size, rank): the first of `count` things that rank has, and the first that it has not, from 0.
function tree.share(count, size, rank)
    return rank * count // size, (rank + 1) * count // size
end

-- Put a node behind those that are there; a left half and its right half become one, in the place of the left.
local function push(nodes, height, number, row)
    local left = nodes[#nodes]
    while left and left.height == height and left.number ~ 1 == number do
        row = row and left.row:add_(row)
        height, number = height + 1, number // 2
        nodes[#nodes] = nil
        left = nodes[#nodes]
    end
    nodes[#nodes + 1] = { height = height, number = number, row = row }
end

-- The nodes of a rank, without their rows.
local function plan(count, size, rank)
    local nodes, first, behind = {}, tree.share(count, size, rank)
    for number = first, behind - 1 do
        push(nodes, 0, number)
    end
    return nodes
end

-- All nodes of a tree as one: where a right half is missing the left stands for both.
local function fold(nodes)
    local right = nodes[#nodes]
    for k = #nodes - 1, 1, -1 do
        right = { row = nodes[k].row:add_(right.row) }
    end
    return right.row
end

local Mean = {}
Mean.__index = Mean

--- new(count, group): means over `count` micro-batches of a step, by the ranks of a group.
function tree.new(count, group)
    local size, rank = tide.distributed.size(group), tide.distributed.rank(group)
    local first, behind = tree.share(count, size, rank)
    local self = { count = count, group = group, size = size, rank = rank, first = first, behind = behind, plans = {} }
    for r = 0, size - 1 do
        self.plans[r + 1] = plan(count, size, r)
    end
    return setmetatable(self, Mean)
end

--- begin(number): what is added from here on is of this micro-batch, one of first to behind - 1, in this order.
function Mean:begin(number)
    if number == self.first then
        self.nodes, self.gathers = {}, {}
    end
    self.number, self.added = number, {}
end

-- This rank's nodes go to the ranks to whose share their elements belong.
local function scatter(self, nodes, row)
    local n, rows, send, receive = row:numel(), {}, {}, {}
    local first, behind = tree.share(n, self.size, self.rank)
    local total = 0
    for r = 0, self.size - 1 do
        local from, to = tree.share(n, self.size, r)
        for _, node in ipairs(nodes) do
            rows[#rows + 1] = node.row:narrow(1, from + 1, to - from)
        end
        send[r + 1], receive[r + 1] = #nodes * (to - from), #self.plans[r + 1] * (behind - first)
        total = total + receive[r + 1]
    end
    local mine = tide.distributed._host(#nodes == 1 and nodes[1].row or tide.cat(rows))
    local theirs = tide.empty(total, { dtype = row.dtype, device = mine.device })
    return tide.distributed._post(self.group, "all_to_all", { send_counts = send, recv_counts = receive }, mine, theirs,
        function() return theirs:to(row.device) end)
end

-- The mean of this rank's share of the elements, of all ranks' nodes of them.
local function finish_share(self, theirs, elements)
    local nodes, at, first, behind = {}, 0, tree.share(elements, self.size, self.rank)
    local length = behind - first
    for _, planned in ipairs(self.plans) do
        for _, node in ipairs(planned) do
            push(nodes, node.height, node.number, theirs:narrow(1, at + 1, length))
            at = at + length
        end
    end
    return fold(nodes):div_(self.count)
end

local function gather(self, part, row)
    local counts = {}
    for r = 0, self.size - 1 do
        local from, to = tree.share(row:numel(), self.size, r)
        counts[r + 1] = to - from
    end
    local mine, whole = tide.distributed._host(part), tide.distributed._host(row)
    return tide.distributed._post(self.group, "all_gather", { recv_counts = counts }, mine, whole,
        function() return row:data_ptr() ~= whole:data_ptr() and row:copy_(whole) or row end)
end

--- add(key, row): the row of the present micro-batch. Rows of one key belong together; all ranks add the last micro-batch's in the
--- same order of keys. Then the mean is on its way: a function is returned that takes it further, and `wait` puts it into that row.
function Mean:add(key, row)
    local nodes = self.nodes[key] or {}
    self.nodes[key], self.added[key] = nodes, true
    push(nodes, 0, self.number, row:clone())
    if self.number < self.behind - 1 then
        return nil
    elseif self.size == 1 then
        row:copy_(fold(nodes):div_(self.count))
        return nil
    end
    local work = scatter(self, nodes, row)
    return function()
        local part = finish_share(self, work:wait(), row:numel())
        self.nodes[key] = nil
        self.gathers[#self.gathers + 1] = gather(self, part, row)
    end
end

--- wait(): until all means are in their rows.
function Mean:wait()
    for _, work in ipairs(self.gathers) do
        work:wait()
    end
    self.gathers = {}
end

return tree
