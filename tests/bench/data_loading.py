"""data_loading.py: the cases of data_loading.lua in PyTorch, whose workers are processes."""
import os
import shutil
import tempfile

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from bench import made, size

torch.set_num_threads(1)


def endless(loader):
    def step():
        nonlocal batches
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        return batch
    batches = iter(loader)
    return step


class Files(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, k):
        return torch.from_numpy(numpy.load(self.paths[k])).permute(2, 0, 1).float().div_(255)


def none():
    return None


rows = size(1000000)
table = TensorDataset(torch.zeros(rows, 8), torch.zeros(rows, dtype=torch.int64))
for shuffle in (False, True):
    for batch in (64, 256):
        made(f"loader_rows_{'shuffled_' if shuffle else ''}{batch}",
             lambda: (endless(DataLoader(table, batch_size=batch, shuffle=shuffle, num_workers=2, persistent_workers=True)), none))

folder = tempfile.mkdtemp()
paths = []
for k in range(size(512)):
    paths.append(os.path.join(folder, f"{k}.npy"))
    numpy.save(paths[-1], numpy.full((120, 160, 3), k % 256, numpy.uint8))
options = {"batch_size": 64, "shuffle": True, "num_workers": 2}
made("loader_npy_files", lambda: (endless(DataLoader(Files(paths), persistent_workers=True, **options)), none))
made("loader_npy_files_first", lambda: (lambda: next(iter(DataLoader(Files(paths), **options))), none))
if os.environ.get("TIDE_BENCH_IMAGES"):
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import Compose, RandomCrop, RandomHorizontalFlip, ToTensor
    pictures = ImageFolder(os.environ["TIDE_BENCH_IMAGES"], Compose([RandomCrop(112), RandomHorizontalFlip(), ToTensor()]))
    made("loader_jpegs", lambda: (endless(DataLoader(pictures, persistent_workers=True, **options)), none))
    made("loader_jpegs_first", lambda: (lambda: next(iter(DataLoader(pictures, **options))), none))
shutil.rmtree(folder)
