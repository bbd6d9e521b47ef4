-- data.lua: tide.data: datasets, samplers and the DataLoader, after PyTorch's torch.utils.data. The parts are data/NAME.lua;
-- what the classes' methods are is under _classes, by which their objects go to workers.
local tide = ...
local data = { _classes = {} }

for _, part in ipairs { "datasets", "samplers", "collate", "views", "loader", "images", "transforms", "texts", "table", "tar" } do
    tide._require("data." .. part).open(data)
end
tide._document(data, "data", "tide.data", "Data in batches: DataLoader(dataset, {batch_size = 32, shuffle = true, num_workers = 2}); datasets: "
    .. "TensorDataset, ImageFolder, fashion_mnist, mnist, cifar10, cifar100, TextLines, Subset, ConcatDataset, StackDataset, ChainDataset, "
    .. "map, filter, zip, batch, shuffle, random_split, and any object with get(self, i) and a length or with iter(self); get_into(self, i, "
    .. "row) writes a sample's first value into its row of the batch and returns the others, get_batch(self, indices) gives whole batches, "
    .. "sharded = true says that iter shares itself out by get_worker_info(); samplers: RandomSampler, WeightedRandomSampler, BatchSampler "
    .. "and their kin. table: columns by name, of a CSV file or of tensors and texts; tar: samples in archives.")
return data
