"""What a shell completes, asked as bash asks."""

import pytest


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("prony ser", "servers"),
        ("prony run emb", "embedded-servers"),
        ("prony run --servers gunicorn,wai", "gunicorn,waitress"),
        ("prony run --cross-check wrk,h2", "wrk,h2load"),
        ("prony servers star", "starlet\nstarman"),
    ],
)
def test_commands_and_names_are_completed(said, monkeypatch, line, found):
    monkeypatch.setenv("_PRONY_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert said().out.strip() == found
