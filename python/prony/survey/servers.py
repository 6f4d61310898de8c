"""Which servers an app is compared on, unless its user names some. Pure.

>>> usual_servers(Interface.ASGI)[0]
'uvicorn'
"""

from collections.abc import Mapping

from prony.model.subject import Interface

# For each interface at most four: the commonest first, and of those alike in kind only one. Each pair differs
# in how it serves requests at the same time.
_SERVERS: Mapping[Interface, tuple[str, ...]] = {
    # Processes; threads; processes in C, behind a router: without it a connection keeps a worker; threads in
    # Rust.
    Interface.WSGI: ("gunicorn", "waitress", "uwsgi-two-a-cpu", "granian"),
    # An event loop in Python and C; in Rust; in Python alone.
    Interface.ASGI: ("uvicorn", "granian", "hypercorn"),
    # Processes with keep-alive; without; an event loop; one in C.
    Interface.PSGI: ("starman", "starlet", "twiggy", "feersum"),
    # Processes of PHP alone; workers in C, with PHP in them.
    Interface.PHP: ("php-fpm@nginx", "uwsgi-php"),
    Interface.NONE: (),
}


def usual_servers(interface: Interface) -> tuple[str, ...]:
    """Return the servers on which apps of this interface are compared."""
    return _SERVERS[interface]
