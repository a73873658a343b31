# SPDX-License-Identifier: GPL-3.0-or-later
"""Each guard is taken out of a copy of the package: then the claim about its trap must not hold."""
import contextlib
import importlib
import io
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "../../executor/torch/ferry_torch")
OURS = ("ferry_torch", "common", "nets", "known_nets", "follow_claims", "trap_claims", "early_claims",
        "updates_claims", "again_claims", "record_claims", "outside_claims", "fit_claims",
        "home_claims", "used_claims")

LATER = '''        class Later(Done):
            def wait(self):
                target.copy_(source)
        return Later()
'''

# Claim, file, and what is written in the place of what.
GUARDS = {
    "a_storage_is_known_by_itself": (
        "trap_claims.test_an_address_is_not_an_identity", "storages.py",
        ("self.rows.get(storage._cdata)", "self.rows.get(storage.data_ptr())"),
        ("row is None or row[0].expired()", "row is None"),
        ("self.rows[weak.key] =", "self.rows[storage.data_ptr()] =")),
    "a_copy_is_made_at_once": (
        "trap_claims.test_the_copy_is_made_when_it_is_packed", "lanes.py",
        ("    def out(self, source, target, after):\n        target.copy_(source)\n        return Done()\n",
         "    def out(self, source, target, after):\n" + LATER)),
    "another_storage_is_noticed": (
        "trap_claims.test_another_storage_in_the_place_of_a_known_one", "saved.py",
        ("content.weak.expired() or content.weak.key != storage_of(tensor)._cdata", "False")),
    "a_content_that_is_not_the_last_stays": (
        "trap_claims.test_a_write_after_a_discarded_save", "saved.py",
        ("self.pack_content[order] != self.last_content[index]", "False")),
    "what_is_held_has_no_op_behind_it": (
        "trap_claims.test_a_forward_pass_without_a_way_back_leaves_nothing", "held.py",
        ("tensor if tensor.is_leaf else tensor.detach()", "tensor")),
    "what_an_update_wrote_is_changed": (
        "updates_claims.test_what_an_update_wrote_leaves_though_nobody_counted_it", "follower.py",
        ("            slot.changed()\n", "            pass\n"), ("slot.give_up_copy()", "pass")),
    "what_a_module_uses_first_stays_meanwhile": (
        "outside_claims.test_a_step_that_is_not_the_plans_has_its_weights", "follower.py",
        ("slots is running[-1][1] or ", "")),
    "what_is_pickled_is_whole": (
        "outside_claims.test_a_state_that_was_kept_is_saved_whole", "outside.py",
        ("            act(tensor)\n", "")),
    "new_weights_are_no_old_ones": (
        "early_claims.test_a_look_at_new_weights_before_the_step_is_refused", "follower.py",
        ("            self.early.require_old()\n", "            pass\n")),
    "all_of_a_storage_moves": (
        "trap_claims.test_a_saved_view_of_a_dead_base", "slots.py",
        ("self.whole = self.form if self.form.is_all(tensor, self.size) else None", "self.whole = self.form")),
    "a_place_that_is_needed_is_not_given_again": (
        "trap_claims.test_a_place_on_the_host_is_not_given_twice", "arena.py",
        ("needed = needed or room.needed", "pass")),
    "a_plan_is_checked": (
        "trap_claims.test_a_move_that_the_program_forbids", "plan.py", ("    check(read)\n", "")),
    "all_comes_back": (
        "trap_claims.test_everything_is_back_after_an_exception", "follow.py",
        ("        stack.callback(follower.bring_all)\n", "")),
    "only_known_optimizers_are_taken_apart": (
        "trap_claims.test_unknown_optimizers_keep_their_state", "updates.py",
        ("type(one) in ALONE", "isinstance(one, ALONE)")),
    "the_old_weight_is_waited_for": (
        "early_claims.test_an_update_waits_for_the_last_use_of_the_old_weight", "early.py",
        ("if self.is_kept(parameter):", "if False:")),
    "who_looks_at_an_updated_gradient_is_seen": (
        "early_claims.test_clipping_by_norm_is_refused", "record.py",
        ('entry.over is not None and op.phase != "update"', "False")),
    "another_batch_is_seen": (
        "follow_claims.test_a_short_last_batch_is_run_without_the_plan", "follower.py",
        ("if signature(inputs) != self.plan.inputs:", "if False:")),
    "statistics_change_once": (
        "again_claims.test_statistics_change_the_first_time_only", "again.py",
        ("t if t is None else t.clone()", "t")),
    "statistics_of_a_norm_change_once": (
        "again_claims.test_statistics_change_the_first_time_only", "again.py",
        ("return dict.fromkeys(module._buffers)", "return {}")),
    "what_a_module_is_given_is_compared": (
        "again_claims.test_ops_on_other_tensors_than_the_traces", "again.py",
        ("if i >= 0 and not self.is_storage_of(i, tensor, follower):", "if False:")),
    "changes_of_what_is_noted_are_seen": (
        "again_claims.test_what_was_changed_meanwhile_is_said", "again.py",
        ("if held.changed():", "if False:")),
    "nothing_holds_itself": (
        "again_claims.test_the_device_has_what_was_predicted", "again.py",
        ("        made = {}\n        with Below",
         "        made = {}\n        made[-1] = made\n        with Below")),
    "versions_are_compared": (
        "trap_claims.test_what_a_hook_leaves_on_the_device_is_compared", "held.py",
        ("self.tensor._version != self.version", "False")),
    "what_a_module_uses_later_stays_until_its_end": (
        "trap_claims.test_what_a_module_uses_later_stays_until_its_end", "follower.py",
        (" or slot.index in self.late", "")),
    "a_tensor_without_bytes_is_any": (
        "trap_claims.test_a_tensor_without_bytes_is_any", "saved.py", ("index < 0 or size ==", "size ==")),
    "random_ops_do_not_run_again": (
        "again_claims.test_random_ops_are_not_run_again", "again.py", ("if not known.steady:", "if False:")),
    "what_runs_again_is_checked": (
        "again_claims.test_refusals", "again.py", ('if "out" not in note:', "if False:")),
    "weights_are_compared": (
        "again_claims.test_a_weight_that_has_changed_is_not_used_again", "again.py", ("if p._version != version:", "if False:")),
    "each_op_has_what_it_was_given": (
        "again_claims.test_what_was_changed_meanwhile_is_said", "again.py",
        ("self.held[index][at]", "next(iter(self.held[index].values()))")),
    "each_pass_is_counted_once": (
        "fit_claims.test_each_pass_of_a_step_is_counted_once", "fit.py",
        ("getattr(model, self.method) if begun else inner", "inner")),
    "a_gradient_is_not_used_twice": (
        "early_claims.test_a_second_step_for_one_way_back_is_refused", "early.py",
        ("if not self.due:", "if False:")),
    "a_copy_has_its_own_methods": (
        "outside_claims.test_a_copy_of_the_model_is_another_model", "modules.py",
        ("super().__init__(owner, name, Instead(owner, name, act, owner.__dict__.get(name)))",
         "super().__init__(owner, name, act)")),
    "a_pass_without_gradients_is_no_step": (
        "again_claims.test_passes_without_gradients_are_no_steps", "follower.py",
        ("        if not torch.is_grad_enabled():\n            return\n", "")),
    "a_pass_without_gradients_is_not_learned_from": (
        "fit_claims.test_passes_without_gradients_are_not_learned_from", "fit.py",
        ("torch.is_grad_enabled() and self.before_forward", "self.before_forward")),
    "a_step_that_is_not_whole_is_not_learned_from": (
        "fit_claims.test_steps_that_are_not_whole_are_not_learned_from", "fit.py",
        ("not self.ran:", "False:"), ("if self.spoiled:", "if False:"),
        ("not any(p.grad is not None for p in updates.parameters_of(self.optimizer))", "False")),
    "a_short_batch_is_not_recorded": (
        "fit_claims.test_a_short_batch_is_not_recorded_where_others_come", "fit.py",
        ("if self.is_usual() else", "if self.is_usual() or True else")),
    "one_model_is_watched_at_a_time": (
        "fit_claims.test_what_cannot_be_is_said_at_once", "modules.py",
        ('getattr(WATCHED, "model", False)', "False")),
    "inputs_by_name_are_looked_at": (
        "follow_claims.test_inputs_by_name_are_a_batch_too", "modules.py",
        ("around([arguments, options])", "around(arguments)")),
    "what_a_loss_saves_tells_nothing": (
        "follow_claims.test_double_backward", "watch.py", (" if n in inside]", "]")),
    "a_graph_that_is_walked_again_says_where_it_is": (
        "follow_claims.test_double_backward", "saved.py", ("places[min(times, len(places)) - 1]", "places[0]")),
    "memory_of_a_file_is_replaced": (
        "used_claims.test_what_was_learned_is_kept_in_a_checkpoint", "follower.py",
        ("            tensor.data = tensor.clone()\n", "")),
    "a_step_is_every_optimizers": (
        "used_claims.test_two_models_and_two_optimizers", "updates.py",
        ("        if len(self.stepped) < self.most:\n            return False\n", "")),
    "marks_are_told_apart_by_order": (
        "record_claims.test_the_peak_is_the_allocators", "memory.py",
        ("most = max(most, now)", "most += abs(size)")),
}


@contextlib.contextmanager
def changed_package(file, changes):
    """`import ferry_torch` gives a copy with the changes, to our modules as well."""
    folder = tempfile.mkdtemp(prefix="ferry-torch-")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in OURS}
    try:
        shutil.copytree(PACKAGE, os.path.join(folder, "ferry_torch"))
        path = os.path.join(folder, "ferry_torch", file)
        with open(path) as source:
            text = source.read()
        for old, new in changes:
            assert text.count(old) == 1, f"{file} has no longer, or more than once: {old}"
            text = text.replace(old, new)
        with open(path, "w") as target:
            target.write(text)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
        for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
            del sys.modules[name]
        sys.modules.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def without(claim, file, *changes):
    def holds_not(folder):
        module, name = claim.split(".")
        with changed_package(file, changes):
            what = getattr(importlib.import_module(module), name)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    what(folder)
            except Exception:
                return
        raise AssertionError(f"{claim} holds without its guard")
    return holds_not


for guard, row in GUARDS.items():
    globals()["test_" + guard] = without(*row)
