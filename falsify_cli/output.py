"""Text -> a file or standard output, whole or not at all."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from falsify_cli.errors import UsageError


def write_file(name: str, text: str) -> None:
    """Write a file under a temporary name beside it, then rename it.

    A device or a pipe is written to as it is. Raises UsageError where the folder or
    the file cannot be written.
    """
    import tempfile  # 0.01 s, which most runs need not spend

    try:
        if os.path.exists(name) and not os.path.isfile(name):
            with open(name, "w", encoding="utf-8") as stream:
                stream.write(text)
            return
        target = os.path.realpath(name)
        handle, part = tempfile.mkstemp(prefix=".falsify-", dir=os.path.dirname(target))
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            os.chmod(part, _mode(target))
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise UsageError(f"{name}: cannot be written: {error.strerror}") from error


def _mode(target: str) -> int:
    """The mode of the file that is replaced, or what a new file would get."""
    if os.path.exists(target):
        return os.stat(target).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_stdout(text: str) -> None:
    """Write to standard output; a reader that has gone away is no fault.

    Raises UsageError where the output cannot be written for another reason.
    """
    if sys.stdout is None:
        raise UsageError("standard output is closed, and no --output is given")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The verdict still goes out as the exit code.
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        message = f"standard output cannot be written: {error.strerror}"
        raise UsageError(message) from error


def discard(stream: TextIO) -> None:
    """Send what a stream still holds nowhere, or Python would exit 120 over it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def can_print(signs: str) -> bool:
    """Whether standard output's encoding has these signs."""
    try:
        signs.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
