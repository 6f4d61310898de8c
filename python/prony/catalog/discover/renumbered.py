"""A command as its owner wrote it, with other numbers: all else of its text stays, to the letter. Pure.

>>> renumbered("gunicorn", "exec gunicorn -w 4 -b unix:/run/a.sock shop:app >> log", {"--workers": 2})
'exec gunicorn --workers 2 -b unix:/run/a.sock shop:app >> log'
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from prony.catalog.discover.current import AS_MODULE, SUBSTITUTION, UWSGI_FILES, split_options
from prony.catalog.discover.servers import SERVERS

# Words as a shell divides a line, each with its quotes, and what ends a command.
_TOKEN = re.compile(
    rf"(?P<end>[;&|\n]+)|(?:\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'|{SUBSTITUTION.pattern}|[^\s;&|\"'\\`])+",
    re.DOTALL,
)


def renumbered(program: str, text: str, numbers: Mapping[str, int]) -> str | None:
    """Return a command's ``text`` with these numbers, by their options, in the place of its own; None where
    it does not start the ``program`` by itself: a script does, or a file of uWSGI has its options.
    """
    text = re.sub(r"\\\n\s*", " ", text)
    found = ([*words] for words in _commands(text) if any(_name(one) == program for one in words))
    *_, words = [[], *found]
    if not words or (program == "uwsgi" and any(_plain(one[0]).endswith(UWSGI_FILES) for one in words)):
        return None
    at = next(at for at, one in enumerate(words) if _name(one) == program)
    begin = words[at].end()
    said = "".join(f" {option} {value}" for option, value in numbers.items())
    return f"{text[:begin]}{said}{''.join(_kept(text, begin, words[at + 1 :], program, numbers))}"


def _commands(text: str) -> Iterator[list[re.Match[str]]]:
    """Yield the words of each simple command of a line."""
    words: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        if token["end"]:
            yield words
            words = []
        else:
            words.append(token)
    yield words


def _name(word: re.Match[str]) -> str:
    name = _plain(word[0]).rpartition("/")[2]
    return AS_MODULE.get(name, name)


def _plain(word: str) -> str:
    """Return a word without its quotes."""
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word


def _kept(
    text: str, end: int, words: Sequence[re.Match[str]], program: str, numbers: Mapping[str, int]
) -> Iterator[str]:
    """Yield the text behind the program, which is at its ``end``, without the options of the numbers."""
    server, at = SERVERS[program], 0
    for option in split_options([_plain(word[0]) for word in words], server.aliases, server.flags):
        at += len(option.words)
        until = words[at - 1].end()
        if option.name not in numbers:
            yield text[end:until]
        end = until
    yield text[end:]
