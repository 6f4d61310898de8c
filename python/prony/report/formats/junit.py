"""The limits of a comparison as JUnit's XML, which CI systems show.

*Source*: The JUnit XML file format, as Jenkins, GitLab and pytest read and write it.
"""

from xml.etree import ElementTree

from prony.core.safe_text import escaped
from prony.figures.versus import LimitResult, Versus

# Where neither is shown the test has not passed: an error is what could not be tested.
_ELEMENT = {True: "failure", None: "error"}


def junit(found: Versus) -> str:
    """Return a suite with a test for each limit under each load."""
    suite = ElementTree.Element("testsuite", name=escaped(f"{found.second} against {found.first}"))
    for one in found.limits:
        _case(suite, one)
    counts = {f"{kind}s": len(suite.findall(f"testcase/{kind}")) for kind in _ELEMENT.values()}
    for name, count in {"tests": len(found.limits), **counts}.items():
        suite.set(name, str(count))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _case(suite: ElementTree.Element, one: LimitResult) -> None:
    load = " ".join(f"{name}={value:g}" for name, value in one.load.items())
    case = ElementTree.SubElement(suite, "testcase", classname=load, name=one.limit)
    if one.shown is not False:
        ElementTree.SubElement(case, _ELEMENT[one.shown], message=escaped(one.reason))
