#!/usr/bin/env python3
"""Writes how PyTorch trains: the way of a few float64 parameters under every optimizer and its options, and the
learning rates of every scheduler. One case a line of JSON in optimizers.jsonl and schedulers.jsonl beside this
script; tests/lua/nn/test_training.lua goes the same ways. Needs PyTorch.

The loss of parameter k is sum(c * p^2 / 2 + sin(3 p)) with c = 0.5 + k; parameter 2 has no gradient in step 4."""
import json
import os
import warnings

import torch
from torch import optim
from torch.optim import lr_scheduler

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = ((2, 3), (4,), ())
STEPS, SHOWN = 14, (1, 2, 3, 5, 9, 14)

DECAYS = ({}, {"weight_decay": 0.1}, {"maximize": True}, {"weight_decay": 0.1, "maximize": True})
OPTIMIZERS = {
    "SGD": ({}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.3}, {"momentum": 0.9, "nesterov": True}),
    "Adam": ({}, {"amsgrad": True}, {"betas": [0.3, 0.6]}, {"eps": 0.01}, {"decoupled_weight_decay": True}),
    "AdamW": ({}, {"amsgrad": True}, {"betas": [0.5, 0.9]}),
    "Adamax": ({}, {"betas": [0.4, 0.7]}),
    "NAdam": ({}, {"momentum_decay": 0.1}, {"decoupled_weight_decay": True}),
    "RAdam": ({}, {"betas": [0.8, 0.7]}, {"decoupled_weight_decay": True}),
    "RMSprop": ({}, {"centered": True}, {"momentum": 0.8}, {"momentum": 0.8, "centered": True}, {"alpha": 0.4}),
    "Rprop": ({}, {"etas": [0.3, 1.7]}, {"step_sizes": [0.01, 0.03]}),
    "Adagrad": ({}, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.5}),
    "Adadelta": ({}, {"rho": 0.5}),
    "ASGD": ({}, {"t0": 2, "lambd": 0.1, "alpha": 0.5}),
    "Adafactor": ({}, {"beta2_decay": -0.5, "d": 1.5}),
}
RATES = (None, 0.07)
LBFGS = ({}, {"lr": 0.3}, {"max_iter": 3}, {"history_size": 2}, {"line_search_fn": "strong_wolfe"},
         {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 3}, {"lr": 0.1, "max_iter": 7, "max_eval": 5})


def parameters():
    made = []
    for k, shape in enumerate(SHAPES):
        n = torch.Size(shape).numel()
        values = [((7 * j + 3 * k) % 11 - 5) / 4 + 0.1 for j in range(n)]
        made.append(torch.tensor(values).reshape(shape).requires_grad_())
    return made


def loss_of(params):
    return sum(((0.5 + k) * p * p / 2 + torch.sin(3 * p)).sum() for k, p in enumerate(params))


def walk(make, closure=False):
    params = parameters()
    optimizer = make(params)
    shown = []
    for step in range(1, STEPS + 1):
        def compute():
            optimizer.zero_grad()
            loss = loss_of(params)
            loss.backward()
            return loss
        if closure:
            optimizer.step(compute)
        else:
            compute()
            if step == 4:
                params[1].grad = None
            optimizer.step()
        if step in SHOWN:
            shown.append([p.detach().reshape(-1).tolist() for p in params])
    return shown


def optimizer_cases():
    for name, variants in OPTIMIZERS.items():
        for variant in variants:
            for decay in DECAYS:
                if name == "Rprop" and "weight_decay" in decay:
                    continue
                for lr in RATES:
                    options = dict(variant, **decay, **({} if lr is None else {"lr": lr}))
                    shown = walk(lambda params: getattr(optim, name)(params, **options))
                    yield {"name": name, "options": options, "shown": shown}
    for options in LBFGS:
        yield {"name": "LBFGS", "options": options,
               "shown": walk(lambda params: optim.LBFGS(params, **options), closure=True)}


SCHEDULERS = (
    ("StepLR", {"step_size": 3}), ("StepLR", {"step_size": 2, "gamma": 0.7}),
    ("MultiStepLR", {"milestones": [2, 5, 5]}), ("MultiStepLR", {"milestones": [7, 3], "gamma": 0.3}),
    ("ConstantLR", {}), ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {}), ("LinearLR", {"start_factor": 0.2, "end_factor": 0.6, "total_iters": 7}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {}), ("PolynomialLR", {"total_iters": 9, "power": 2.5}),
    ("CosineAnnealingLR", {"T_max": 5}), ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.02}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": [0.1, 0.3], "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 20}), ("OneCycleLR", {"max_lr": [0.3, 0.2], "epochs": 3, "steps_per_epoch": 7}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 20, "anneal_strategy": "linear", "three_phase": True, "pct_start": 0.25}),
    ("LambdaLR", {}), ("MultiplicativeLR", {}),
    ("ReduceLROnPlateau", {"patience": 1}), ("ReduceLROnPlateau", {"patience": 0, "factor": 0.5, "cooldown": 2, "min_lr": 0.02}),
    ("ReduceLROnPlateau", {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.3}),
)
NESTED = (
    {"name": "SequentialLR", "milestones": [4],
     "parts": [("LinearLR", {"start_factor": 0.1, "total_iters": 4}), ("ExponentialLR", {"gamma": 0.8})]},
    {"name": "SequentialLR", "milestones": [3, 8],
     "parts": [("ConstantLR", {"factor": 0.2, "total_iters": 2}), ("CosineAnnealingLR", {"T_max": 6}),
               ("StepLR", {"step_size": 2})]},
    {"name": "SequentialLR", "milestones": [5],
     "parts": [("PolynomialLR", {"total_iters": 5}), ("CosineAnnealingWarmRestarts", {"T_0": 4})]},
    {"name": "ChainedScheduler", "parts": [("ConstantLR", {"factor": 0.1, "total_iters": 3}), ("ExponentialLR", {"gamma": 0.9})]},
)
SCHEDULER_STEPS = 18


def make_scheduler(optimizer, name, options):
    extra = {"lr_lambda": lambda n: 0.95 ** n} if name in ("LambdaLR", "MultiplicativeLR") else {}
    return getattr(lr_scheduler, name)(optimizer, **options, **extra)


def scheduled(make, name, kind):
    params = parameters()
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.2}]
    optimizer = optim.SGD(groups, lr=0.1, momentum=0.9) if kind == "SGD" else optim.Adam(groups, lr=0.1)
    scheduler = make(optimizer)
    rates, momenta = [], []
    for step in range(SCHEDULER_STEPS + 1):
        rates.append([float(group["lr"]) for group in optimizer.param_groups])
        momenta.append([float(g["momentum"] if kind == "SGD" else g["betas"][0]) for g in optimizer.param_groups])
        optimizer.step()
        if name == "ReduceLROnPlateau":
            scheduler.step(abs((step * 5) % 9 - 4) / 2)
        else:
            scheduler.step()
    return {"rates": rates, "momenta": momenta, "optimizer": kind}


def scheduler_cases():
    for name, options in SCHEDULERS:
        for kind in ("SGD", "Adam"):
            yield {"name": name, "options": options,
                   **scheduled(lambda optimizer: make_scheduler(optimizer, name, options), name, kind)}
    for case in NESTED:
        def make(optimizer):
            parts = [make_scheduler(optimizer, *part) for part in case["parts"]]
            if case["name"] == "ChainedScheduler":
                return lr_scheduler.ChainedScheduler(parts)
            return lr_scheduler.SequentialLR(optimizer, parts, case["milestones"])
        yield {**case, **scheduled(make, case["name"], "SGD")}


def write(name, cases):
    with open(os.path.join(HERE, name + ".jsonl"), "w", encoding="utf-8") as out:
        out.write(json.dumps({"torch": torch.__version__.split("+")[0]}) + "\n")
        for case in cases:
            out.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    write("optimizers", optimizer_cases())
    write("schedulers", scheduler_cases())
