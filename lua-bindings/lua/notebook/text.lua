-- notebook/text.lua: texts made for a person to read, which the session shows as they stand and not as quoted strings: the last
-- few are known by their letters.
local KEPT = 16
local texts, at = {}, 0

local text = {}

--- note(s): s, from now on known as such a text.
function text.note(s)
    at = at % KEPT + 1
    texts[at] = s
    return s
end

--- is(s): is it one?
function text.is(s)
    for _, known in pairs(texts) do
        if known == s then
            return true
        end
    end
    return false
end

return text
