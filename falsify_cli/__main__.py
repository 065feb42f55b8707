"""The process: catches everything, so that a crash never looks like a verdict.

Python exits 1 on a crash, and 1 means FAIL here.
"""

from __future__ import annotations

import gc
import os
import sys

USAGE, FAULT, INTERRUPTED = 2, 70, 130


def process() -> None:
    """Run the command line as a process of its own, which ends with it.

    To take the interpreter apart takes 0.03 s, a tenth of a small gate; the system
    frees all of it anyway. Cycles are not looked for either: there are hardly any, and
    the search takes 0.007 s, and copies 1 to 2 MB of what a helper shares with it.
    """
    gc.disable()
    try:
        main()
    except SystemExit as end:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            # Somebody does not listen any more: the usual way out copes with that.
            raise end from None
        os._exit(int(end.code or 0))


def main() -> None:
    """Run the command line, and exit with the code of the verdict."""
    # Nothing here multiplies matrices: without this numpy's BLAS starts a thread a
    # core, for 0.07 s of processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        code = _report_fault(error)
    sys.exit(code)


def _run() -> int:
    from falsify_cli.cli import app
    from falsify_cli.errors import FalsifyError, InternalError

    try:
        return int(app(standalone_mode=False, prog_name="falsify") or 0)
    except FalsifyError as error:
        return _complain(str(error), USAGE)
    except InternalError as error:
        return _complain(
            f"a self-check of falsify failed, please report it: {error}", FAULT
        )
    except MemoryError:
        return _complain("not enough memory for these files", USAGE)
    except Exception as error:
        return _shell_error(error)


def _shell_error(error: Exception) -> int:
    """What the option parser raises: wrong usage, or a wish to stop.

    Its classes live in click or, since 0.20, in typer itself; they are known by what
    they carry.
    """
    if type(error).__name__ == "Abort":
        # The parser makes an Abort of an EOFError too, which would be our fault.
        if isinstance(error.__cause__ or error.__context__, EOFError):
            raise error
        return INTERRUPTED
    message = getattr(error, "format_message", None)
    if message is None:
        raise error
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "falsify"
    return _complain(f"{message()} Try '{command} --help'.", USAGE)


def _complain(message: str, code: int) -> int:
    """Print one line to standard error; control characters are spelled out."""
    _tell(
        "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode()
            for c in f"falsify: {message}"
        )
    )
    return code


def _report_fault(error: BaseException) -> int:
    import traceback

    trace = "".join(traceback.format_exception(error))
    _tell(f"{trace}falsify: this is a fault of falsify, please report it")
    return FAULT


def _tell(text: str) -> None:
    """Print to standard error; where nobody listens the exit code has to do."""
    if sys.stderr is None:
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


if __name__ == "__main__":
    process()
