-- tide.data.tar, write_tar and tide.io.open_tar: samples as webdataset has them, from archives of Python's tarfile (tests/golden/tar_files.py).
local t = require "harness"
local data = tide.data

local GOLDEN = os.getenv "TIDE_SOURCE" .. "/tests/golden/tar/"
local path = os.tmpname()

local function slurp(name)
    local f <close> = assert(io.open(name, "rb"))
    return f:read("a")
end

local function put(bytes)
    local f <close> = assert(io.open(path, "wb"))
    f:write(bytes)
end

local function all(dataset)
    local list = {}
    for sample in dataset:iter() do
        list[#list + 1] = sample
    end
    return list
end

-- An archive of Python's without gzip.
local function unpacked(form)
    assert(os.execute(("gzip -dc %s%s.tar.gz > %s"):format(GOLDEN, form, path)))
    return path
end

t.test("all_forms_of_names_are_read_and_samples_are_files_of_one_stem", function()
    for form, key in pairs { ustar = ("d"):rep(60) .. "/" .. ("u"):rep(60), gnu = ("d"):rep(120) .. "/" .. ("ü"):rep(80),
        pax = ("d"):rep(120) .. "/" .. ("ü"):rep(80) } do
        for _, archive in ipairs { GOLDEN .. form .. ".tar.gz", unpacked(form) } do
            local samples = all(data.tar(archive))
            t.eq(#samples, 4)
            for k = 0, 2 do
                local bytes = {}
                for byte = 0, 255 do
                    bytes[byte + 1] = string.char(byte)
                end
                t.eq(samples[k + 1], { __key__ = key .. k, cls = k, json = { k = k, list = { 1, 2.5 } }, ["seg.txt"] = "caption é",
                    bin = table.concat(bytes):rep(2 * k) })
            end
            t.eq(samples[4], { __key__ = "last", txt = "" })
        end
        local archive = tide.io.open_tar(unpacked(form))
        t.eq({ #archive, archive:names()[1], archive:read(key .. "2.cls"), archive:read("last.txt"), #archive:read(key .. "2.bin") },
            { 15, key .. "0.cls", "2\n", "", 1024 })
    end
    t.error_has(function() tide.io.open_tar(GOLDEN .. "gnu.tar.gz") end, "is packed by gzip")
    t.error_has(function() tide.io.open_tar(unpacked "gnu"):read("no") end, "no file 'no'")
end)

t.test("what_is_written_is_read_again", function()
    local samples = { { __key__ = "a/b", cls = 3, json = { x = { 1, 2 } }, npy = tide.arange(6):view(2, 3), txt = "hi", ["left.bin"] = "\0\1" },
        { __key__ = ("k"):rep(300), txt = "" }, { __key__ = "c", bin = ("x"):rep(512), count = -1 } }
    for _, ending in ipairs { "", ".tar.gz" } do
        t.eq(data.write_tar(samples, path .. ending), 3)
        local got = all(data.tar(path .. ending))
        t.is_true(got[1].npy:equal(samples[1].npy) and got[1].npy.dtype == tide.int64)
        got[1].npy = samples[1].npy
        t.eq(got, samples)
    end
    t.eq(slurp(path .. ".tar.gz"):sub(1, 2), "\31\139")
    os.remove(path .. ".tar.gz")
    data.write_tar(data.map({ 1, 2 }, function(k) return { __key__ = "s" .. k, cls = k } end), path)
    t.eq(all(data.tar(path)), { { __key__ = "s1", cls = 1 }, { __key__ = "s2", cls = 2 } })
    local before = slurp(path)
    for what, wrong in pairs { ["a table with a __key__ expected"] = { txt = "x" }, ["a key has a name without a point"] = { __key__ = "a.b" },
        ["bytes expected, a number"] = { __key__ = "a", bin = tide.ones(1) }, ["names of fields expected"] = { __key__ = "a", ["x/y"] = "" } } do
        t.error_has(function() data.write_tar({ { __key__ = "ok", txt = "" }, wrong }, path) end, what)
        t.eq(slurp(path), before)
    end
    t.error_has(function() data.write_tar(samples, "/nonexistent/x.tar") end, "write_tar: cannot write '/nonexistent/x.tar'")
end)

t.test("shards_are_read_one_behind_the_other_and_nothing_twice", function()
    local shards = {}
    for shard = 0, 11 do
        local samples = {}
        for k = 1, 3 do
            samples[k] = { __key__ = ("%04d"):format(shard * 3 + k), id = shard * 3 + k }
        end
        shards[shard + 1] = ("%s-%02d.tar"):format(path, shard)
        data.write_tar(samples, shards[shard + 1])
    end
    local want = {}
    for k = 1, 36 do
        want[k] = k
    end
    for _, paths in ipairs { path .. "-{00..11}.tar", { path .. "-{00..04}.tar", path .. "-0{5,6,7,8,9}.tar", path .. "-1{0,1}.tar" }, shards } do
        for workers = 0, 2 do
            local got = {}
            for batch in data.DataLoader { data.tar(paths), batch_size = 5, num_workers = workers } do
                table.move(batch.id:tolist(), 1, #batch.id, #got + 1, got)
            end
            t.eq(got, want)
        end
    end
    data.write_tar({ { __key__ = "same", txt = "1" } }, shards[1])
    data.write_tar({ { __key__ = "same", txt = "2" } }, shards[2])
    t.eq(all(data.tar { shards[1], shards[2] }), { { __key__ = "same", txt = "1" }, { __key__ = "same", txt = "2" } })
    for _, shard in ipairs(shards) do
        os.remove(shard)
    end
end)

t.test("decoders_are_chosen_and_their_errors_name_the_file", function()
    data.write_tar({ { __key__ = "a", cls = "x", json = "{", npy = "no", txt = "ok" } }, path)
    t.eq(all(data.tar(path, { decode = false })), { { __key__ = "a", cls = "x", json = "{", npy = "no", txt = "ok" } })
    local own = { cls = string.upper, json = function(bytes) return #bytes end, npy = function() return 1 end }
    t.eq(all(data.tar { path, decode = own }), { { __key__ = "a", cls = "X", json = 1, npy = 1, txt = "ok" } })
    for field, what in pairs { cls = "'a.cls': no integer", json = "'a.json': ", npy = "'a.npy': " } do
        local others = { cls = string.upper, json = string.upper, npy = string.upper }
        others[field] = nil
        t.error_has(function() all(data.tar(path, { decode = others })) end, "tar: '" .. path .. "': " .. what)
    end
    t.error_has(function() all(data.tar(path, { decode = { txt = function() end, cls = string.upper, json = string.upper, npy = string.upper } })) end,
        "'a.txt': its decoder gave nil")
    t.error_has(function() data.tar { path, decoders = {} } end, "tar: no option 'decoders'")
    t.error_has(function() data.tar(5) end, "tar: paths[1]: a path expected, got number 5")
    t.error_has(function() data.tar {} end, "a path or a list of paths expected")
    t.error_has(function() all(data.tar "/nonexistent/a.tar") end, "tar: cannot read '/nonexistent/a.tar': No such file")
    local entry = tide._require("files.tar").entry
    put(entry("a.txt", "1") .. entry("a.txt", "2"))
    t.error_has(function() all(data.tar(path)) end, "sample 'a' has two files 'txt'")
end)

t.test("an_archive_cut_or_changed_anywhere_is_read_or_refused_in_one_line", function()
    for _, form in ipairs { "ustar", "gnu", "pax" } do
        local bytes = slurp(unpacked(form))
        local function try(changed, what)
            put(changed)
            for _, open in ipairs { function() return all(data.tar(path, { decode = false })) end, function() return tide.io.open_tar(path) end } do
                local ok, got = pcall(open)
                t.is_true(ok or got:find("'" .. path .. "': ", 1, true) and not got:find "\n", what .. ": " .. tostring(got))
            end
        end
        for n = 0, 3000, 3 do
            try(bytes:sub(1, n), form .. " cut at " .. n)
        end
        for n = 1, 3072, 7 do
            try(bytes:sub(1, n - 1) .. string.char(bytes:byte(n) ~ 0xFF) .. bytes:sub(n + 1), form .. " changed at " .. n)
        end
    end
    local entry = tide._require("files.tar").entry("a.txt", "x")
    -- sizes that no file has, under a checksum that fits
    for _, size in ipairs { "77777777777\0", "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "-0000000001\0" } do
        local head = entry:sub(1, 124) .. size .. entry:sub(137, 148) .. "        " .. entry:sub(157, 512)
        local sum = 0
        for k = 1, 512 do
            sum = sum + head:byte(k)
        end
        put(head:sub(1, 148) .. ("%06o\0 "):format(sum) .. head:sub(157) .. entry:sub(513))
        t.error_has(function() all(data.tar(path)) end, "tar: '" .. path .. "': ")
        t.error_has(function() tide.io.open_tar(path) end, "open_tar: '" .. path .. "': ")
    end
    local packed = slurp(GOLDEN .. "gnu.tar.gz")
    for n = 3, #packed - 1, 7 do
        put(packed:sub(1, n))
        t.error_has(function() all(data.tar(path)) end, "tar: cannot read '" .. path .. "': the packed file is cut short or damaged")
    end
end)

os.remove(path)
