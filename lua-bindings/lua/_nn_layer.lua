-- _nn_layer.lua: what the files of layers share: a class of modules whose arguments are declared by a schema.
local tide = ...

-- A class whose arguments, read by the schema "Name(PARAMETERS)", become fields of the same names.
local function layer(nn, schema, doc, class)
    local name, read = schema:match("^%w+"), tide._function(schema, doc)
    local c = nn.class(name)
    for key, value in pairs(class) do
        c[key] = value
    end
    function c:init(...)
        for field, value in pairs(read(...)) do
            rawset(self, field, value)
        end
        if class.make then
            class.make(self)
        end
    end
    nn[name] = c
    tide._document(c, read)
end

return layer
