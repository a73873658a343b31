# SPDX-License-Identifier: GPL-3.0-or-later
"""What this package cannot do is said in one line, before anything was changed."""


class Refused(RuntimeError):
    """A plan, a model or a step that cannot be recorded or followed; the text says what to do."""
