-- Samples of sums of products (see test_walk.lua for what `mk` makes).
local function equation(text, ...)
    local shapes = { ... }
    return function(mk)
        local tensors = {}
        for k, shape in ipairs(shapes) do
            tensors[k] = mk(table.unpack(shape))
        end
        return { text, tensors }
    end
end

return {
    einsum = {
        equation("ij,jk->ik", { 2, 3 }, { 3, 4 }),
        equation("...ij,...jk", { 2, 1, 2, 3 }, { 4, 3, 2 }),
        equation("ii->i", { 3, 3 }),
        equation("ij->", { 2, 3 }),
        equation("bi,bj,bk->ijk", { 2, 2 }, { 2, 3 }, { 2, 2 }),
        equation("iji,j->j", { 2, 3, 2 }, { 3 }),
        equation(",i->i", {}, { 3 }),
    },
    tensordot = {
        function(mk) return { mk(2, 3, 2), mk(3, 2, 2) } end,
        function(mk) return { mk(2, 3), mk(2, 2), 0 } end,
        function(mk) return { mk(2, 3, 4), mk(4, 2), { 3, 1 }, { 1, 2 } } end,
    },
}
