-- compiled_save.lua: `tide compiled_save.lua FILE FIRST LAST`: results of the cases, to a file.
local here = arg[0]:match("^(.*)/") or "."
package.path = here .. "/?.lua;" .. here .. "/../../lua/?.lua;" .. package.path
local tensors = {}
for k, result in ipairs(require("compiled_cases").run(tonumber(arg[2]), tonumber(arg[3]))) do
    tensors[k] = result[2]
end
tide.save(tensors, arg[1])
