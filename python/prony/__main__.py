"""``python -m prony``, and the command ``prony``.

The version is told before the commands are loaded, which takes most of a second.
"""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Tell the version where nothing else is asked for; else hand over to the command line."""
    if sys.argv[1:] == ["--version"]:
        from prony._engine import __version__

        sys.stdout.write(f"prony {__version__}\n")
        sys.exit()
    from prony.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
