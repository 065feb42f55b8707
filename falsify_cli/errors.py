"""What a user can get wrong, and what we can: the errors that leave the package."""


class FalsifyError(Exception):
    """A mistake the user can mend; the message is one line that says how."""


class InputError(FalsifyError):
    """A file, or a mapping, that cannot be read as a run or as qrels."""


class UsageError(FalsifyError):
    """An argument out of its range, or a metric nobody can compute here."""


class InternalError(Exception):
    """A self-check of the program failed: our fault, never a verdict."""
