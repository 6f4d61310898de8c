"""How each subject was set up, the machine, and the terms: what a reader needs to repeat a study, as HTML."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prony.core.glossary import TERMS, anchor
from prony.model.facts import Fingerprint
from prony.model.trial import Run, SubjectRecord
from prony.report.document import Document
from prony.report.page.chart import Chapter, Chart, Style
from prony.report.page.figure import chapter_html, key_html
from prony.report.page.markup import page, safe, section_html

_CODE = re.compile("`([^`]*)`")


def setups_html(records: Iterable[SubjectRecord]) -> str:
    """Return every subject's command line, version, settings, packages and limits, as archived."""
    return "\n".join(map(_setup, records))


def _setup(one: SubjectRecord) -> str:
    versions = [f"{safe(name)} {safe(version)}" for name, version in sorted(one.packages.items())]
    parts = [
        _fact("version", safe(one.server_version or "not known")),
        _fact("interpreter", safe(one.interpreter)) if one.interpreter else "",
        _fact("not measured", safe(one.unavailable)) if one.unavailable else "",
        _fact(
            "settings",
            ", ".join(f"{safe(name)} = {safe(str(value))}" for name, value in one.settings.items()),
        ),
        _fact("packages", ", ".join(versions)),
        _fact("limits", ", ".join(_limits(one))),
    ]
    command = one.command_line
    code = f'<pre class="command"><code>{safe(command)}</code></pre>' if command else ""
    return f"<details><summary>{safe(one.name)}</summary>{code}<dl>{''.join(parts)}</dl></details>"


def _limits(one: SubjectRecord) -> Iterator[str]:
    for name, limit in one.sandbox.limits.items():
        yield f"{safe(name)}: {safe(limit.holding.value)}"


def _fact(name: str, html: str) -> str:
    return f"<dt>{name}</dt><dd>{html}</dd>" if html else ""


def machine_html(fingerprint: Fingerprint, runs: Iterable[Run], *, redact: bool) -> str:
    """Return the facts of the machine, and the runs. ``redact``: without what names or locates it."""
    facts = [] if redact else list(_flat(fingerprint.free))
    rows = "".join(f'<tr><th scope="row">{safe(name)}</th><td>{value}</td></tr>' for name, value in facts)
    ran = "".join(
        f"<li>run {one.id}: Prony {safe(one.prony_version)}, {safe(one.status.value)}</li>" for one in runs
    )
    table = f'<div class="scroll" tabindex="0"><table class="facts">{rows}</table></div>' if rows else ""
    return f"<ul>{ran}</ul>{table}"


def _flat(facts: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and set(value) == {"missing"}:
            yield path, f'<span class="quiet">— {safe(str(value["missing"]))}</span>'
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{path} › ")
        else:
            yield path, safe(str(value))


def page_with_terms(
    title: str, content: Iterable[str], charts: Sequence[Chart], *, lead: str = "", first: str = "the answer"
) -> str:
    """Return a page with this content, and below it the terms that it uses. ``lead``: below the title;
    ``first``: what its section `answer` is.
    """
    parts = (
        f'<a class="skip" href="#answer">To {first}</a>',
        f"<header><h1>{safe(title)}</h1>{lead}</header>\n<main>",
        *content,
        '<section id="terms"><h2>Terms</h2><!--terms--></section>\n</main>',
        "<footer>Made by Prony. This file is complete: it loads nothing from the network.</footer>",
    )
    body = "\n".join(parts)
    return page(title, body.replace("<!--terms-->", _terms_html(body)), charts)


def page_of_document(
    document: Document, count: int, look: Style, pictures: Chapter, *, first: str = "the answer"
) -> str:
    """Return a page of a document with pictures behind so many of its sections; ``first``: what these are."""
    shown, others = document.sections[:count], document.sections[count:]
    content = (
        f'<section id="answer" class="answer">{"".join(map(section_html, shown))}</section>',
        key_html(look),
        chapter_html(pictures) if pictures.charts else "",
        *(f"<section>{section_html(section)}</section>" for section in others),
    )
    return page_with_terms(str(document.title), content, pictures.charts, first=first)


def _terms_html(page: str) -> str:
    """Return the definitions of the terms to which ``page`` links."""
    used = [term for term in TERMS if f'href="#term-{anchor(term)}"' in page]
    rows = (
        f'<div><dt id="term-{anchor(term)}">{safe(term)}</dt><dd>{_defined(term)}</dd></div>' for term in used
    )
    return f'<dl class="terms">{"".join(rows)}</dl>'


def _defined(term: str) -> str:
    return _CODE.sub(r"<code>\1</code>", safe(TERMS[term]))
