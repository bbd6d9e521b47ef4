-- text.lua: a text as tokens, letter by letter, and the program that teaches a network to go on writing one.
local tide = require "tide"

local text = {}

--- letters(text): the bytes that a text has, as tokens from 1: {tensor of them, letters by token, tokens by letter}.
function text.letters(content)
    local found, names, tokens = {}, {}, {}
    for byte in content:gmatch "." do
        if not found[byte] then
            names[#names + 1] = byte
            found[byte] = #names
        end
        tokens[#tokens + 1] = found[byte]
    end
    return tide.tensor(tokens), names, found
end

--- learn_and_write(arguments, new, train): what a script does with its arguments, FILE [steps]: the network new(number of letters)
--- learns the file by train(net, tokens, steps), which gives its losses, and writes 300 letters.
function text.learn_and_write(arguments, new, train)
    local file = assert(io.open(arguments[1] or error(("usage: tide %s FILE [steps]"):format(arguments[0]:match "[^/]*$"), 0)))
    local content = file:read "a"
    file:close()
    tide.manual_seed(0)
    local tokens, names = text.letters(content)
    local net = new(#names)
    local losses = train(net, tokens, tonumber(arguments[2] or 500))
    print(("loss %.3f"):format(losses[#losses]))
    local made = net:generate(tokens["1:32"]:tolist(), 300, { temperature = 0.8 })
    for k, token in ipairs(made) do
        made[k] = names[token]
    end
    print(table.concat(made))
end

return text
