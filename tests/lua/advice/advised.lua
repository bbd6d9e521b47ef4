-- advised.lua: what tests of advice share.
local advised = {}

-- A sanitizer's checks take longer than what is to be compared: there whatever does not end or breaks memory counts.
local SANITIZED = os.getenv "TIDE_SANITIZED" ~= nil

--- of_kind(advice, kind): the first entry of that kind, or nil.
function advised.of_kind(advice, kind)
    for _, item in ipairs(advice) do
        if item.kind == kind then
            return item
        end
    end
end

--- try(holds): a replay on a machine that others keep busy may see no difference: holds() is tried five times until
--- it returns true, the last time as holds(true), which is to fail where it does not hold.
function advised.try(holds)
    for _ = 1, 4 do
        if holds() then
            return
        end
    end
    holds(not SANITIZED)
end

--- found(record, kind): the entry of that kind, and all of the advice, that a profile of record() draws, which is
--- recorded anew five times at most: where others keep the machine busy, a share or a replay may be off.
function advised.found(record, kind)
    local advice
    for _ = 1, 5 do
        advice = record():advice()
        local item = advised.of_kind(advice, kind)
        if item then
            return item, advice
        end
    end
    error(("no advice of kind %s: %s"):format(kind, tostring(advice)), 2)
end

return advised
