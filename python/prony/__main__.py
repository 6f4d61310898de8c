"""``python -m prony``, and the command ``prony``.

The version is printed before the commands are imported, which takes most of a second.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Print the version if that is the only argument; else call the command line."""
    if sys.argv[1:] == ["--version"]:
        from prony._engine import __version__

        sys.stdout.write(f"prony {__version__}\n")
        sys.exit()
    from prony.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
