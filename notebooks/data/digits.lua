-- digits.lua: handwritten digits (digits.csv) as images of 32x32 and classes, shuffled by a seed, in a part that
-- trains and a part that tests.
--
--     local data = require("data.digits") { seed = 0 }
--     model(data.train_x), data.train_y, data.test_x, data.test_y
--
-- Of 1,797 images 360 test. `fold` (1 to 5, the last if not given) says which fifth these are: over all five each
-- image is tested once.
local tide = require "tide"

local folds = 5

return function(options)
    local rows = tide.io.read_csv(debug.getinfo(1, "S").source:match("^@(.*)%.lua$") .. ".csv")
    local fold, n = options.fold or folds, #rows
    local first, last = n * (fold - 1) // folds + 1, n * fold // folds
    tide.manual_seed(options.seed)
    rows = rows[tide.randperm(n)]
    local images = tide.interpolate(rows[":, 1:64"]:reshape(-1, 1, 8, 8) / 16, { scale_factor = 4 })
    local classes = rows[":, 65"]:long() + 1 -- classes count from 1: digit 0 is class 1
    local place = tide.arange(1, n + 1)
    local tested = place:ge(first) & place:le(last)
    return { train_x = images[~tested], train_y = classes[~tested], test_x = images[tested],
        test_y = classes[tested] }
end
