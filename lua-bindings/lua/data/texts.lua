-- data/texts.lua: a column of texts: each row has the number of one of the distinct texts, 0 where there is none.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local texts = {}

local Texts = { __name = "Texts" }
tide._class("Texts", Texts)

--- new(codes, bytes, offsets): codes an int64 tensor from 0 on, of which k is the text from offsets[k] to offsets[k + 1] of the bytes;
--- the texts are different.
function texts.new(codes, bytes, offsets)
    return setmetatable({ codes = codes, bytes = bytes, offsets = offsets }, Texts)
end

function texts.is(value)
    return getmetatable(value) == Texts
end

--- of(list): of a list of texts, false or nil (with its length n) where there is none.
function texts.of(name, list, n)
    local categories, numbers, codes = {}, {}, {}
    for k = 1, n or #list do
        local text = list[k]
        if text and type(text) ~= "string" then
            fail("%s: row %d: a text expected, got %s", name, k, describe(text))
        elseif text and not numbers[text] then
            categories[#categories + 1] = text
            numbers[text] = #categories
        end
        codes[k] = text and numbers[text] or 0
    end
    return texts.new(tide.tensor(codes, { dtype = tide.int64 }), tide._texts_pack(categories))
end

local function at(self, code)
    return code > 0 and tide._texts_at(self.bytes, self.offsets, code) or nil
end

local function ncategories(self) return #self.offsets - 1 end

-- The same texts with other rows.
local function with_codes(self, codes) return texts.new(codes, self.bytes, self.offsets) end

function Texts.__index(self, key)
    if math.type(key) == "integer" then
        local n = #self.codes
        key = key < 0 and n + 1 + key or key
        return key >= 1 and key <= n and at(self, self.codes[key]:item()) or nil
    elseif tide.is_tensor(key) then
        return with_codes(self, self.codes[key])
    elseif key == "categories" then
        local list = {}
        for k = 1, ncategories(self) do
            list[k] = at(self, k)
        end
        return list
    end
    return Texts[key]
end

function Texts.__len(self) return #self.codes end

Texts.tolist = declare("tolist(Texts self) -> list", "The texts of all rows; false where there is none.", function(self)
    local list, known = self.codes:tolist(), {}
    for k, code in ipairs(list) do
        known[code] = known[code] or at(self, code) or false
        list[k] = known[code]
    end
    return list
end)

-- true for the rows whose text is one of the list.
local function among(name, self, list)
    local hit = tide.zeros(ncategories(self) + 1, { dtype = tide.bool })
    for _, text in ipairs(list) do
        if type(text) ~= "string" then
            fail("%s: a text expected, got %s", name, describe(text))
        end
        local code = tide._texts_find(self.bytes, self.offsets, text)
        if code then
            hit[code + 1] = true
        end
    end
    return hit[self.codes + 1]
end

Texts.eq = declare("eq(Texts self, any text) -> Tensor", "A mask of the rows that are this text: t[t.kind:eq(\"flat\")].", function(self, text)
    return among("eq", self, { text })
end)

Texts.isin = declare("isin(Texts self, list texts) -> Tensor", "A mask of the rows that are one of these texts.", function(self, list)
    return among("isin", self, list)
end)

Texts.isnan = declare("isnan(Texts self) -> Tensor", "A mask of the rows without a text.", function(self) return self.codes:eq(0) end)

--- narrow(self, first, n): n rows from `first` on.
function texts.narrow(self, first, n)
    return with_codes(self, self.codes:narrow(1, first, n))
end

--- ranks(self): the place of each row's text in the order of bytes, from 1 on, 0 where there is none; and a function that
--- gives a column of such ranks their texts.
function texts.ranks(self)
    local order = tide._texts_order(self.bytes, self.offsets)
    local ranks = tide.zeros(#order + 1, { dtype = tide.int64 })
    ranks[order + 1] = tide.arange(1, #order + 1)
    return ranks[self.codes + 1], function(places) return with_codes(self, order[places]) end
end

function Texts.__tostring(self)
    local n, parts = #self, {}
    for k = 1, math.min(n, 8) do
        parts[k] = self[k] and string.format("%q", self[k]) or "-"
    end
    return string.format("Texts{%s%s} (%d rows, %d different)", table.concat(parts, ", "), n > 8 and ", ..." or "", n, ncategories(self))
end

function texts.open(data)
    data._classes.Texts = Texts
    tide._document(Texts, "Texts", "Texts", "A column of texts of a table: c[i], #c, c:tolist(), c:eq(text), c:isin(texts), c:isnan(); "
        .. "c.codes are the numbers of its c.categories, a list, 0 where there is no text.")
end

return texts
