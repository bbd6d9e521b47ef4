-- Samples of ctc_loss (see test_walk.lua for what `mk` makes). Its gradient is that by the scores, so what is
-- differenced goes through log_softmax elsewhere: tests/golden.
local function scores(mk, ...) return tide.log_softmax(mk(...):detach(), -1) end
return {
    ctc_loss = {
        function(mk) return { scores(mk, 5, 2, 3), tide.tensor { { 2, 3 }, { 2, 2 } }, tide.tensor { 5, 4 }, tide.tensor { 2, 1 } } end,
        function(mk) return { scores(mk, 4, 3), tide.tensor { 3, 3 }, tide.tensor { 4 }, tide.tensor { 2 } } end,
        function(mk)
            return { scores(mk, 5, 2, 3), tide.tensor { 1, 2, 1 }, tide.tensor { 5, 4 }, tide.tensor { 2, 1 }, 3,
                { reduction = "none" } }
        end,
    },
}
