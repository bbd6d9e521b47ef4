-- nn/print.lua: what print(model) and model:summary(...) show.
local tide = ...

-- "Name(\n  (child): text\n)" of {name, text} lines.
local function tree_text(self, lines)
    local title, extra = getmetatable(self).__name, self:extra_repr()
    if #lines == 0 then
        return string.format("%s(%s)", title, extra)
    end
    local texts = {}
    for k, line in ipairs(lines) do
        texts[k] = string.format("  (%s): %s", line[1], (string.gsub(line[2], "\n", "\n  ")))
    end
    return string.format("%s(%s\n%s\n)", title, extra ~= "" and "\n  " .. extra or "", table.concat(texts, "\n"))
end

-- ---- summary ----

local UNITS = { "B", "KiB", "MiB", "GiB", "TiB" }

local function size_text(bytes)
    local k, value = 1, bytes
    while value >= 1024 and k < #UNITS do
        k, value = k + 1, value / 1024
    end
    return k == 1 and string.format("%d B", bytes) or string.format("%.1f %s", value, UNITS[k])
end

-- 1234567 as 1,234,567.
local function count_text(n)
    local text = string.reverse((string.gsub(string.reverse((tostring(n))), "(%d%d%d)", "%1,")))
    return (string.gsub(text, "^,", ""))
end

local function bytes_of(tensors)
    local bytes = 0
    for _, x in ipairs(tensors) do
        bytes = bytes + x:numel() * x:element_size()
    end
    return bytes
end

-- Calls visit(x) for every tensor among values and in their tables.
local function each_tensor(values, n, visit)
    for k = 1, n do
        local value = values[k]
        if tide.is_tensor(value) then
            visit(value)
        elseif type(value) == "table" and getmetatable(value) == nil then
            each_tensor(value, #value, visit)
        end
    end
end

local function shapes_text(results)
    local texts = {}
    each_tensor(results, results.n, function(x) texts[#texts + 1] = tostring(x.shape) end)
    return #texts > 0 and table.concat(texts, ", ") or "-"
end

local function numel_of(tensors)
    local n = 0
    for _, x in ipairs(tensors) do
        n = n + x:numel()
    end
    return n
end

-- Runs the model as in use, without recording, and says what each module gave, the last time and in
-- all: [module] = {text, bytes, all}.
local function watch(self, ...)
    local seen, hooks, modes = {}, {}, {}
    local modules = self:modules()
    for k, module in ipairs(modules) do
        modes[k] = module.training
        rawset(module, "training", false)
        hooks[k] = module:register_forward_hook(function(_, _, ...)
            local results, bytes = table.pack(...), 0
            each_tensor(results, results.n, function(x) bytes = bytes + x:numel() * x:element_size() end)
            local before = seen[module]
            seen[module] = { text = shapes_text(results), bytes = bytes, all = bytes + (before and before.all or 0) }
        end)
    end
    local given = table.pack(pcall(tide.no_grad, self, ...))
    for k, module in ipairs(modules) do
        hooks[k]:remove()
        rawset(module, "training", modes[k])
    end
    if not given[1] then
        error(given[2], 0)
    end
    return seen
end

-- A line of each module in the order of the tree; parameters are counted where they stand first.
local function lines_of(base, self, seen)
    local lines, counted = {}, {}
    local function add(module, label, depth)
        local params = {}
        for _, p in ipairs(module:parameters(false)) do
            params[#params + 1] = not counted[p] and p or nil
            counted[p] = true
        end
        local children, given = base.children(module), seen[module]
        local line = { string.format("%s%s%s", string.rep("  ", depth), label, getmetatable(module).__name),
            given and given.text or "-", numel_of(params), #children == 0 and given and given.bytes or 0 }
        line.all = #children == 0 and given and not counted[module] and given.all or 0
        counted[module] = true
        lines[#lines + 1] = line
        for _, child in ipairs(children) do
            add(child[2], string.format("(%s): ", child[1]), depth + 1)
        end
    end
    add(self, "", 0)
    return lines
end

local function table_text(rows, align)
    local widths, texts = {}, {}
    for _, row in ipairs(rows) do
        for k, cell in ipairs(row) do
            widths[k] = math.max(widths[k] or 0, utf8.len(cell) or #cell)
        end
    end
    for k, row in ipairs(rows) do
        local cells = {}
        for c, cell in ipairs(row) do
            local space = string.rep(" ", widths[c] - (utf8.len(cell) or #cell))
            cells[c] = align[c] == "right" and space .. cell or cell .. space
        end
        texts[k] = (string.gsub(table.concat(cells, "  "), "%s+$", ""))
    end
    local width = 2 * (#widths - 1)
    for _, w in ipairs(widths) do
        width = width + w
    end
    return texts, string.rep("-", width)
end

local function trainable(params)
    local n = 0
    for _, p in ipairs(params) do
        n = n + (p.requires_grad and p:numel() or 0)
    end
    return n
end

local function summary(base, self, ...)
    local seen = watch(base.check_tree(self), ...)
    local rows, bytes = { { "Module", "Output shape", "Parameters", "Output memory" } }, 0
    for _, line in ipairs(lines_of(base, self, seen)) do
        bytes = bytes + line.all
        rows[#rows + 1] = { line[1], line[2], line[3] > 0 and count_text(line[3]) or "-",
            line[4] > 0 and size_text(line[4]) or "-" }
    end
    local texts, rule = table_text(rows, { "left", "left", "right", "right" })
    table.insert(texts, 2, rule)
    local params, buffers = self:parameters(), self:buffers()
    local all = numel_of(params)
    texts[#texts + 1] = rule
    texts[#texts + 1] = string.format("Parameters: %s (%s to learn), %s; buffers: %s", count_text(all),
        count_text(trainable(params)), size_text(bytes_of(params)), size_text(bytes_of(buffers)))
    texts[#texts + 1] = string.format("Outputs of all layers: %s", size_text(bytes))
    return table.concat(texts, "\n")
end

return function(nn, base)
    local Module = nn.Module

    base.tree_text = tree_text

    -- What stands in a module's parentheses; classes override it.
    function Module:extra_repr() return "" end

    function Module:describe()
        local lines = {}
        for name, child in base.check_tree(self):named_children() do
            lines[#lines + 1] = { name, child:describe() }
        end
        return tree_text(self, lines)
    end

    base.method("summary", ", ...) -> str", "A table of all modules with the shapes that they give for these arguments, "
        .. "how many parameters they have, and memory: print(model:summary(x)).",
        function(self, ...) return tide._require("notebook.text").note(summary(base, self, ...)) end)
end
