# SPDX-License-Identifier: GPL-3.0-or-later
"""Records one step of each example at the size of a large card, without one and without the memory:
examples.py FOLDER."""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../executor/torch"),
                os.path.join(HERE, "../../executor/torch/examples")]


SIZES = {"cnn": (64, 224, 64), "lstm": (1024, 32, 256), "gpt": (1024, 1024, 8),
         "unet": (64, 256, 16)}


def main(folder, *only):
    from torch._subclasses import FakeTensorMode
    import ferry_torch
    for name, sizes in SIZES.items():
        if only and name not in only:
            continue
        sys.argv[1:] = map(str, sizes)
        path = os.path.join(folder, f"torch-{name}.json.gz")
        with FakeTensorMode():
            example = importlib.import_module(name)
            with ferry_torch.record(path, example.model, example.optimizer, device="h200",
                                    name=f"torch-{name}") as recording:
                example.step()
        print(name, recording.summary)


if __name__ == "__main__":
    main(*sys.argv[1:])
