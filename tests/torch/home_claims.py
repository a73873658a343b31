# SPDX-License-Identifier: GPL-3.0-or-later
"""Training in other libraries' loops: within a budget they learn the same bits. Models are tiny and random, and
nothing is downloaded. A library that is not there is said, and its claim not tried."""
import contextlib
import importlib
import logging
import os
import unittest.mock
import warnings

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import ferry_torch
from ferry_torch import integrations
from nets import Cnn, Transformer, letters, pictures
from trap_claims import refused

STEPS = 20


def needs(*libraries):
    """The claim is tried where all of them can be imported."""
    def around(claim):
        def tried(folder):
            for name in libraries:
                try:
                    importlib.import_module(name)
                except ImportError as error:
                    return print(f"{claim.__name__}: not tried, {name} cannot be imported ({error})")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return claim(folder)
        return tried
    return around


class Rows(Dataset):
    """So many rows of a batch function."""

    def __init__(self, batches, names=None, count=8 * STEPS):
        x, y = zip(*(batches(n) for n in range(count // 8)))
        self.x, self.y, self.names = torch.cat(x), torch.cat(y), names

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        row = self.x[at], self.y[at]
        return row if self.names is None else dict(zip(self.names, row))


def weights(model):
    return [t.clone() for t in model.state_dict().values()]


def require_followed(report, steps=STEPS - 3):
    assert report is not None and report.steps == steps and report.unmatched == report.other == 0, report and report.text()
    assert report.out_bytes > 0, report.text()


def twice(train, *more):
    """Trained plain and within a budget: the same bits. Returns the report."""
    plain, _ = train(None, *more)
    planned, report = train("90%", *more)
    assert len(plain) == len(planned) and all(map(torch.equal, plain, planned))
    return report


def quietly(report):
    return None


@needs("transformers", "accelerate")
def test_a_trainer_of_transformers(folder):
    import transformers
    transformers.logging.set_verbosity_error()

    def train(budget, accumulated=1):
        torch.manual_seed(1)
        config = transformers.GPT2Config(vocab_size=50, n_positions=24, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
                                         eos_token_id=0)
        model = transformers.GPT2LMHeadModel(config)
        callbacks = [integrations.huggingface(budget, say=quietly)] if budget else []
        arguments = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=8 // accumulated, max_steps=STEPS, report_to=[], disable_tqdm=True,
            save_strategy="steps", save_steps=8, save_only_model=False, eval_strategy="steps", eval_steps=6,
            logging_strategy="no", use_cpu=True, seed=3, gradient_accumulation_steps=accumulated)
        rows = Rows(letters(24), ("input_ids", "labels"))
        trainer = transformers.Trainer(model=model, args=arguments, callbacks=callbacks, train_dataset=rows,
                                       eval_dataset=torch.utils.data.Subset(rows, range(12)))
        with open(os.devnull, "w") as none, contextlib.redirect_stdout(none), contextlib.redirect_stderr(none):
            trainer.train()
        state = torch.load(os.path.join(folder, "checkpoint-16", "optimizer.pt"), weights_only=True)["state"]
        saved = [value for row in state.values() for value in row.values()]
        return weights(model) + saved, callbacks and callbacks[0].report
    for accumulated in (1, 2):
        require_followed(twice(train, accumulated))


@needs("lightning")
def test_a_trainer_of_lightning(folder):
    import lightning
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Cnn()

        def training_step(self, batch, index):
            return F.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    def train(budget, how, steps=STEPS, path=None):
        torch.manual_seed(1)
        model = Net()
        callbacks = [integrations.lightning(budget, say=quietly)] if budget else []
        trainer = lightning.Trainer(max_steps=steps, accelerator="cpu", callbacks=callbacks, logger=False,
                                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                    **how)
        torch.manual_seed(2)
        trainer.fit(model, DataLoader(Rows(pictures(20, 10), count=16 * STEPS), 8), ckpt_path=path, weights_only=True)
        assert "training_step" not in model.__dict__
        trainer.save_checkpoint(os.path.join(folder, f"{bool(budget)}.ckpt"))
        return weights(model), callbacks and callbacks[0].report

    def resumed(budget, how):
        train(budget, how, 8)
        return train(budget, how, path=os.path.join(folder, f"{bool(budget)}.ckpt"))
    for how in ({}, {"gradient_clip_val": 0.5, "accumulate_grad_batches": 2}, {"precision": "bf16-mixed"}):
        require_followed(twice(train, how))
    require_followed(twice(resumed, {}), STEPS - 8)  # the plan is in the checkpoint


@needs("accelerate")
def test_a_loop_with_accelerate(folder):
    import accelerate

    def train(budget, how):
        torch.manual_seed(1)
        accelerator = accelerate.Accelerator(cpu=True, **how)
        model = Transformer()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(Rows(letters(24), count=16 * STEPS), 8)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        run = integrations.accelerate(model, optimizer, budget, say=quietly) if budget else contextlib.nullcontext()
        with run as run:
            for x, y in loader:
                with accelerator.accumulate(model):
                    loss = F.cross_entropy(model(x), y)
                    accelerator.backward(loss)
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
        accelerate.state.AcceleratorState._reset_state(True)
        return weights(model), run and run.report
    require_followed(twice(train, {}), 2 * STEPS - 3)
    require_followed(twice(train, {"mixed_precision": "bf16"}), 2 * STEPS - 3)
    require_followed(twice(train, {"gradient_accumulation_steps": 2}))


def speech():
    """Two inputs, an encoder and a decoder."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    kinds = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))}
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=64, num_mel_bins=16, d_model=32, max_source_positions=32, max_target_positions=24, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, dropout=0.1, **kinds))
    return model, lambda: {"input_features": torch.randn(4, 16, 64), "labels": torch.randint(3, 64, (4, 16))}


def experts():
    """Which of them run is decided by the batch."""
    from transformers import MixtralConfig, MixtralForCausalLM
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64, output_router_logits=True))
    return model, lambda: {"input_ids": torch.randint(0, 64, (4, 32)), "labels": torch.randint(0, 64, (4, 32)), "use_cache": False}


@needs("transformers")
def test_models_of_others_learn_the_same(folder):
    for make in (speech, experts):
        def train(budget):
            torch.manual_seed(1)
            model, batch = make()
            optimizer = torch.optim.AdamW(model.train().parameters(), 1e-3)
            with ferry_torch.fit(model, optimizer, budget, say=quietly) if budget else contextlib.nullcontext() as run:
                for n in range(STEPS):
                    torch.manual_seed(n)
                    optimizer.zero_grad()
                    model(**batch()).loss.backward()
                    optimizer.step()
            return weights(model), run and run.report
        require_followed(twice(train))


def test_a_library_that_is_not_there_is_named(folder):
    with unittest.mock.patch.dict("sys.modules", {name: None for name in ("transformers", "lightning.pytorch")}):
        refused(lambda: integrations.huggingface("1GiB"), "pip install transformers")
        refused(lambda: integrations.lightning("1GiB"), "pip install lightning")
    refused(lambda: integrations.accelerate(torch.nn.Linear(2, 2), None, "1GiB").__enter__(), "no optimizer")
