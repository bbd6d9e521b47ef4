-- onnx/encode.lua: messages of protobuf, as onnx/messages.lua describes them, as pieces of a file: strings, and contiguous tensors
-- for their own bytes.
local tide = ...
local wire = tide._require "files.wire"
local encode = {}

local function size_of(piece) return type(piece) == "string" and #piece or piece:numel() * piece:element_size() end

local add_message

local NUMBERS <const> = { int = wire.whole, float = wire.float, double = wire.double }

-- One value of a field, behind what stands in `out`; its length in bytes.
local function add_field(out, number, kind, value)
    local inner, length = { value }, nil
    if NUMBERS[kind] then
        out[#out + 1] = NUMBERS[kind](number, value)
        return #out[#out]
    elseif type(kind) == "string" then -- text, or the bytes of a place
        length = size_of(value)
    else
        inner = {}
        length = add_message(inner, value, kind)
    end
    local head = wire.head(number, length)
    out[#out + 1] = head
    table.move(inner, 1, #inner, #out + 1, out)
    return #head + length
end

function add_message(out, message, description)
    local numbers, length, seen = {}, 0, {}
    for number in pairs(description) do
        numbers[#numbers + 1] = number
    end
    table.sort(numbers)
    for _, number in ipairs(numbers) do
        local field = description[number]
        local name, kind, value = field[1], field[2], message[field[1]]
        if value ~= nil and not seen[name] then -- of fields of one name the first
            seen[name] = true
            for _, one in ipairs(field.many and value or { value }) do
                length = length + add_field(out, number, kind, one)
            end
        end
    end
    return length
end

--- pieces(message, description): the message as a list of strings and tensors, in their order in the file.
function encode.pieces(message, description)
    local out, joined, texts = {}, {}, {}
    add_message(out, message, description)
    local function close()
        joined[#joined + 1] = #texts > 0 and table.concat(texts) or nil
        texts = {}
    end
    for _, piece in ipairs(out) do -- strings that stand side by side are one piece
        if type(piece) == "string" then
            texts[#texts + 1] = piece
        else
            close()
            joined[#joined + 1] = piece
        end
    end
    close()
    return joined
end

return encode
