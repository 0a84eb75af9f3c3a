"""The first module of the command `umpc`: Ctrl-C is one line also before and after the command.

It imports nothing that takes time. The rest is loaded where an interruption is already caught.
"""

from __future__ import annotations

import signal
import sys
import threading

AGAIN_SECONDS = 0.02
"""Seconds until an ignored Ctrl-C comes again: the callback has ended by then."""


def main() -> None:
    """Run the `umpc` command.

    Once it has ended, Ctrl-C ends the process at once. Python would print a traceback if the signal
    came while it clears its modules, and the output is complete by then.
    """
    sys.unraisablehook = _interrupt_again
    try:
        from umpc.cli.main import main as run

        run()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 raises RuntimeError from an interruption while a class is made
        if KeyboardInterrupt not in (type(error), type(error.__cause__)):
            raise
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Raise Ctrl-C once more if it came inside a callback, where Python ignores every exception.

    Its imports have such callbacks. A server then began to wait as if nothing had come.
    """
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        again = threading.Timer(AGAIN_SECONDS, _interrupt)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(ignored)


def _interrupt() -> None:
    """Send Ctrl-C to the main thread, which may be waiting."""
    main_thread = threading.main_thread().ident
    if main_thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:  # Windows
        signal.raise_signal(signal.SIGINT)
