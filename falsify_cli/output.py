"""Text -> a file or standard output, whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile

from falsify_cli.errors import UsageError


def write_file(name: str, text: str) -> None:
    """Write a file under a temporary name beside it, then rename it.

    A device or a pipe is written to as it is. Raises UsageError where the folder or
    the file cannot be written.
    """
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
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The verdict still goes out as the exit code. Python would complain once
        # more when it closes standard output, so that is pointed elsewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        message = f"standard output cannot be written: {error.strerror}"
        raise UsageError(message) from error


def can_print(signs: str) -> bool:
    """Whether standard output's encoding has these signs."""
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
