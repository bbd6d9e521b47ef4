-- files/state.lua: what load_state_dict of modules, optimizers, schedulers and scalers is given: the table that
-- state_dict gave, not the path of a file that holds it, nor the object it is of.
local tide = ...
local fail = tide._fail

-- Refuses what is no state, and says how one is had of it.
return function(given)
    local meta = type(given) == "table" and getmetatable(given)
    if type(given) == "string" then
        fail("load_state_dict: expected a state_dict, got %s: load_state_dict(tide.load(path))", tide._describe(given))
    elseif type(meta) == "table" and given.state_dict then
        fail("load_state_dict: expected a state_dict, got %s: load_state_dict(other:state_dict())", tide._describe(given))
    elseif type(given) ~= "table" then
        fail("load_state_dict: argument 1 (dict): expected a table, got %s", tide._describe(given))
    end
end
