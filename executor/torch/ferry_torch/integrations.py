# SPDX-License-Identifier: GPL-3.0-or-later
"""`fit` for programs whose loop is a library's.

    transformers.Trainer(..., callbacks=[ferry_torch.integrations.huggingface("10GiB")])
    lightning.Trainer(..., callbacks=[ferry_torch.integrations.lightning("10GiB")])
    with ferry_torch.integrations.accelerate(model, optimizer, "10GiB"):
        ...  # what accelerator.prepare gave, in a loop of one's own

A library is imported only where it is asked for. Options are those of `fit`.
"""
import contextlib
import importlib
import sys

from .card import require_budget
from .errors import Refused
from .fit import fit


def library(name, package):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refused(f"{name} cannot be imported ({error}); pip install {package}") from None


def torch_optimizer(optimizer):
    """The one that a library has wrapped; what it does around its step stays its own."""
    if optimizer is None:
        raise Refused("the trainer has no optimizer yet; ferry plans a step of a model and its optimizer")
    while hasattr(optimizer, "optimizer"):
        if getattr(optimizer, "scaler", None) is not None:
            raise Refused("accelerate's scaler for fp16 puts a step of its own in the optimizer's place; train in bf16, "
                          "or in a loop of your own with torch's GradScaler")
        optimizer = optimizer.optimizer
    return optimizer


class Fitting:
    """A `fit` that is entered and left by two calls of a library. What it has learned goes from one to the next."""

    def __init__(self, budget, options):
        require_budget(budget)
        self.budget, self.options = budget, options
        self.stack, self.run, self.kept = contextlib.ExitStack(), None, {}

    def begin(self, model, optimizer, **more):
        self.end()  # of a training that was broken off
        self.kept = self.state_dict()
        self.run = self.stack.enter_context(fit(model, torch_optimizer(optimizer), self.budget, **more, **self.options))
        self.run.load_state_dict(self.kept)

    def end(self):
        self.stack.close()

    def state_dict(self):
        """What the next `begin` starts with, in another process too."""
        return (self.run and self.run.state_dict()) or self.kept

    @property
    def report(self):
        return None if self.run is None else self.run.report


class Kept:
    """The part that all callbacks share, by their `fitting`."""

    def state_dict(self):
        return self.fitting.state_dict()

    def load_state_dict(self, state):
        self.fitting.kept = state

    @property
    def report(self):
        return self.fitting.report


def huggingface(budget, **options):
    """A callback for `transformers.Trainer`. After an exception call its `close()`: the trainer tells it nothing."""
    base = library("transformers", "transformers").TrainerCallback

    class Callback(Kept, base):
        def __init__(self):
            self.fitting = Fitting(budget, options)

        def on_train_begin(self, args, state, control, model=None, optimizer=None, **unused):
            self.fitting.begin(model, optimizer)

        def on_train_end(self, args, state, control, **unused):
            self.close()

        def close(self):
            self.fitting.end()
    return Callback()


def lightning(budget, **options):
    """A callback for Lightning's `Trainer`, whichever of its two packages the program has imported."""
    names = ("lightning.pytorch", "pytorch_lightning")
    name = next((n for n in names if n in sys.modules), names[0])
    base = library(name, name.split(".", maxsplit=1)[0]).Callback

    class Callback(Kept, base):
        def __init__(self):
            self.fitting = Fitting(budget, options)

        def on_train_start(self, trainer, pl_module):
            if len(trainer.optimizers) != 1:
                raise Refused(f"the module has {len(trainer.optimizers)} optimizers, and this callback plans a step of one")
            self.fitting.begin(pl_module, trainer.optimizers[0], method="training_step")

        def on_train_end(self, trainer, pl_module):
            self.fitting.end()

        def on_exception(self, trainer, pl_module, exception):
            self.fitting.end()
    return Callback()


@contextlib.contextmanager
def accelerate(model, optimizer, budget, **options):
    """`fit` for what `accelerator.prepare` gave."""
    with fit(model, torch_optimizer(optimizer), budget, **options) as run:
        yield run
