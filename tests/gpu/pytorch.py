#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The zoo's networks in PyTorch, for two purposes.

  pytorch.py step NETWORK BATCH TYPE [STEPS]   how long a step takes, unswapped: one JSON object
  pytorch.py profile NETWORK BATCH FOLDER      one step as `ferry import` wants it, cleaned
  pytorch.py train NETWORK BATCH STEPS [WAY]   losses of a fixed start and a digest of what was
                                               learned: a library in front of the driver must not
                                               change them
  pytorch.py clean FILE...                     takes paths, host and process names out of profiles

TYPE is fp32, tf32 or bf16. WAY is plain, or what people do today to need less memory: save_on_cpu (pinned),
checkpoint (each block is calculated again), half (two halves of the batch, their gradients added).
FERRY_OPTIMIZER is sgd, momentum (the default) or adam, with the zoo's rates. FERRY_TORCH_DEVICE is cuda, or
cpu for a look at what this file does. Ends with 77 where there is no PyTorch or no GPU that it sees.
"""
import gzip
import json
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_ways import WAYS, checkpointed, lossy_step

SKIPPED = 77
DEVICE = os.environ.get("FERRY_TORCH_DEVICE", "cuda")


def vgg16():
    from torch import nn
    layers, channels = [], 3
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if width == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
        channels = width
    layers += [nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Dropout(),
               nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers)


def resnet50():
    from torch import nn

    class Block(nn.Module):
        def __init__(self, channels, width, stride):
            super().__init__()
            def conv(a, b, kernel, step=1):
                return nn.Sequential(nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False),
                                     nn.BatchNorm2d(b))
            self.one, self.two = conv(channels, width, 1), conv(width, width, 3, stride)
            self.three = conv(width, 4 * width, 1)
            same = stride == 1 and channels == 4 * width
            self.past = nn.Identity() if same else conv(channels, 4 * width, 1, stride)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.three(self.relu(self.two(self.relu(self.one(x)))))
            return self.relu(y + self.past(x))

    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
                        nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            layers.append(Block(channels, width, 2 if i == 0 and width > 64 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def unet3d():
    import torch
    from torch import nn

    def unit(a, b):
        return nn.Sequential(nn.Conv3d(a, b, 3), nn.BatchNorm3d(b, affine=False),
                             nn.ReLU(inplace=True))

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.turn, self.up = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
            channels = 3
            for i in range(3):
                self.down.append(nn.Sequential(unit(channels, 32 << i), unit(32 << i, 64 << i)))
                channels = 64 << i
            self.bottom = nn.Sequential(unit(channels, 256), unit(256, 512))
            channels = 512
            for i in (2, 1, 0):
                self.turn.append(nn.ConvTranspose3d(channels, channels, 2, 2, bias=False))
                self.up.append(nn.Sequential(unit(channels + (64 << i), 64 << i),
                                             unit(64 << i, 64 << i)))
                channels = 64 << i
            self.classes, self.pool = nn.Conv3d(channels, 3, 1), nn.MaxPool3d(2)

        def forward(self, x):
            across = []
            for down in self.down:
                across.append(down(x))
                x = self.pool(across[-1])
            x = self.bottom(x)
            for turn, up in zip(self.turn, self.up):
                x, y = turn(x), across.pop()
                cut = [(a - b) // 2 for a, b in zip(y.shape[2:], x.shape[2:])]
                y = y[:, :, cut[0]:cut[0] + x.shape[2], cut[1]:cut[1] + x.shape[3],
                      cut[2]:cut[2] + x.shape[4]]
                x = up(torch.cat((y, x), 1))
            return self.classes(x)

    return Unet()


def charrnn():
    from torch import nn

    class Letters(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm = nn.Embedding(128, 512), nn.LSTM(512, 512, 2, batch_first=True)
            self.out = nn.Linear(512, 128)

        def forward(self, x):
            return self.out(self.lstm(self.table(x))[0]).transpose(1, 2)

    return Letters()


def gpt2():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width, heads, drop):
            super().__init__()
            self.heads, self.drop = heads, drop
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"),
                                     nn.Linear(4 * width, width), nn.Dropout(drop))

        def forward(self, x):
            n, rows, width = x.shape
            q, k, v = (y.view(n, rows, self.heads, -1).transpose(1, 2)
                       for y in self.qkv(self.norm1(x)).split(width, 2))
            y = nn.functional.scaled_dot_product_attention(
                q, k, v, dropout_p=self.drop if self.training else 0, is_causal=True)
            y = self.out(y.transpose(1, 2).reshape(n, rows, width))
            x = x + nn.functional.dropout(y, self.drop, self.training)
            return x + self.mlp(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self, width=768, heads=12, blocks=12, rows=1024, words=50257, drop=0.1):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(rows, width)
            self.drop, self.norm = nn.Dropout(drop), nn.LayerNorm(width)
            self.blocks = nn.Sequential(*[Block(width, heads, drop) for _ in range(blocks)])

        def forward(self, x):
            at = torch.arange(x.shape[1], device=x.device)
            x = self.norm(self.blocks(self.drop(self.words(x) + self.places(at))))
            return nn.functional.linear(x, self.words.weight).transpose(1, 2)

    return Gpt()


# Model, shape of one item (of whole numbers below the second entry, else of noise), classes.
NETWORKS = {
    "vgg16": (vgg16, (3, 224, 224), 0, 1000),
    "resnet50": (resnet50, (3, 224, 224), 0, 1000),
    "unet3d": (unet3d, (3, 116, 132, 132), 0, 3),
    "charrnn": (charrnn, (100,), 128, 128),
    "gpt2": (gpt2, (1024,), 50257, 50257),
}


def prepare(name, batch, dtype, way="plain"):
    """A function that trains one step and returns its loss."""
    import torch
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    torch.backends.cudnn.enabled = way != "native"
    torch.use_deterministic_algorithms(os.environ.get("FERRY_DETERMINISTIC") == "1")
    make, shape, whole, classes = NETWORKS[name]
    model = make().to(DEVICE)
    if dtype == "bf16":
        model = model.bfloat16()
    if whole:
        data = torch.randint(whole, (batch, *shape), device=DEVICE)
    else:
        data = torch.randn(batch, *shape, device=DEVICE,
                           dtype=torch.bfloat16 if dtype == "bf16" else torch.float32)
    with torch.no_grad():
        out = model(data[:1])
    target = torch.randint(classes, (batch, *out.shape[2:]), device=DEVICE)
    rates = os.environ.get("FERRY_OPTIMIZER", "momentum")
    if rates == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2 if rates == "sgd" else 1e-3,
                                    momentum=0 if rates == "sgd" else 0.9)
    running = checkpointed(model) if way == "checkpoint" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = lossy_step(running, data, target, way)
        optimizer.step()
        return loss

    step.model = model
    return step


def about():
    import torch
    return {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
            "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}


def time_steps(name, batch, dtype, steps):
    import torch
    step = prepare(name, batch, dtype)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    print(json.dumps({**about(), "batch": batch, "dtype": dtype, "network": name,
                      "optimizer": os.environ.get("FERRY_OPTIMIZER", "momentum"),
                      "peak_bytes": torch.cuda.max_memory_allocated(),
                      "step_ns": int(statistics.median(times) * 1e6), "steps": steps},
                     sort_keys=True))


def train(name, batch, steps, way="plain"):
    import hashlib
    import time
    import torch
    on_gpu = DEVICE == "cuda"
    step, losses, times = prepare(name, batch, "fp32", way), [], []
    digest = hashlib.sha256()
    for _ in range(steps):
        begin = time.monotonic_ns()
        losses.append(step().item().hex())
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.monotonic_ns() - begin)
    for value in step.model.state_dict().values():
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    times = times[len(times) // 2:]  # a training is long: what its first steps take does not count
    print(json.dumps({"losses": losses, "step_ns": int(statistics.median(times)), "way": way,
                      "parameters": digest.hexdigest(),
                      "torch_peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else 0,
                      "backend": torch.cuda.get_allocator_backend() if on_gpu else "cpu"},
                     sort_keys=True))


def profile(name, batch, folder):
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile as profiler
    from torch.profiler import schedule
    step = prepare(name, batch, "fp32")
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, f"{name}-b{batch}")
    et, kineto = stem + ".et.json", stem + ".kineto.json"
    observer = ExecutionTraceObserver().register_callback(et)
    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                  schedule=schedule(wait=2, warmup=2, active=1), record_shapes=True,
                  profile_memory=True, execution_trace_observer=observer,
                  on_trace_ready=lambda p: p.export_chrome_trace(kineto)) as p:
        for _ in range(6):
            step()
            p.step()
    with open(stem + ".origin.json", "w") as out:
        json.dump({**about(), "batch": batch, "network": name,
                   "recorded": "tests/gpu/pytorch.py profile"}, out, indent=2, sort_keys=True)
    clean([et, kineto])
    print(json.dumps({"files": [os.path.basename(f) + ".gz" for f in (et, kineto)],
                      "network": name}, sort_keys=True))


# Keys whose values tell of the machine, and no importer reads.
PRIVATE = {"traceName", "hostname", "trace_id", "Call stack", "Python id", "Python parent id",
           "Python module id", "host_id", "user", "cwd", "WORLD_SIZE_env"}
PATH = re.compile(r"(?:/[\w.+-]+){2,}")
PROCESS_NAME = re.compile(r"^(?!GPU|CPU|stream|thread)")


def cleaned(x):
    if isinstance(x, dict):
        return {k: cleaned(v) for k, v in x.items() if k not in PRIVATE}
    if isinstance(x, list):
        return [cleaned(v) for v in x]
    return PATH.sub("", x) if isinstance(x, str) else x


def is_wanted(event):
    """Python frames and the names of processes say nothing of a step."""
    if event.get("cat") == "python_function":
        return False
    return not (event.get("ph") == "M" and event.get("name") == "process_name")


def clean(files):
    """Beside each file, which is taken away, a compressed one without what is private."""
    for path in files:
        with open(path) as f:
            data = json.load(f)
        if isinstance(data, dict) and "traceEvents" in data:
            data["traceEvents"] = [e for e in data["traceEvents"] if is_wanted(e)]
        with gzip.GzipFile(path + ".gz", "wb", mtime=0) as f:
            f.write(json.dumps(cleaned(data), sort_keys=True, separators=(",", ":")).encode())
        os.remove(path)


def main(args):
    if args[:1] == ["clean"] and len(args) > 1:
        return clean(args[1:])
    try:
        import torch
        if DEVICE == "cuda" and not torch.cuda.is_available():
            raise ImportError("no GPU")
    except ImportError as why:
        print(f"pytorch.py: {why}: skipped", file=sys.stderr)
        return SKIPPED
    if args[:1] == ["step"] and len(args) in (4, 5):
        return time_steps(args[1], int(args[2]), args[3], int(args[4]) if len(args) > 4 else 10)
    if args[:1] == ["profile"] and len(args) == 4:
        return profile(args[1], int(args[2]), args[3])
    if args[:1] == ["train"] and len(args) in (4, 5) and (args[4:] or ["plain"])[0] in (*WAYS, "native"):
        return train(args[1], int(args[2]), int(args[3]), *args[4:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
