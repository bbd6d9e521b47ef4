-- pytorch_names.lua: a function that gives PyTorch's name of a parameter, whose lists count from 0, for one of Tide's.
return function(name)
    return (("." .. name):gsub("%.(%d+)%f[.\0]", function(k) return "." .. k - 1 end):sub(2))
end
