"""Which of the caller's variables a build may see, by their whole names.

Packages run code when they are built, and a name that only begins like a setting may hold a secret
(UV_PUBLISH_TOKEN, CARGO_REGISTRY_TOKEN, GOOGLE_API_KEY). An address of an index may hold a password too:
whoever builds needs it to fetch.
"""

_COMMON = frozenset(
    (
        *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
        *("LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
        *("TZ", "PATH", "CC", "CXX"),
        *("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_TIMEOUT"),
    )
)
_UV = frozenset(
    (
        *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        *("UV_FIND_LINKS", "UV_NO_INDEX", "UV_INDEX_STRATEGY", "UV_INSECURE_HOST"),
        *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_OFFLINE", "UV_CONFIG_FILE"),
        *("UV_NO_CONFIG", "UV_EXCLUDE_NEWER", "UV_HTTP_TIMEOUT", "UV_HTTP_CONNECT_TIMEOUT"),
        *("UV_HTTP_RETRIES", "UV_REQUEST_TIMEOUT", "UV_KEYRING_PROVIDER", "UV_CONCURRENT_BUILDS"),
        *(
            "UV_CONCURRENT_DOWNLOADS",
            "UV_CONCURRENT_INSTALLS",
            "UV_PYTHON_INSTALL_DIR",
            "UV_PYTHON_PREFERENCE",
        ),
        *("UV_PYTHON_INSTALL_MIRROR", "UV_PYPY_INSTALL_MIRROR"),
    )
)
# Where an ordinary user's uv finds that user's settings.
_OWN_PLACES = frozenset(("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "NETRC", "SSL_CLIENT_CERT"))
_CARGO = frozenset(
    (
        *("CARGO_HTTP_CAINFO", "CARGO_HTTP_CHECK_REVOKE", "CARGO_HTTP_MULTIPLEXING", "CARGO_HTTP_PROXY"),
        *("CARGO_HTTP_TIMEOUT", "CARGO_NET_GIT_FETCH_WITH_CLI", "CARGO_NET_OFFLINE", "CARGO_NET_RETRY"),
        *("CARGO_BUILD_JOBS", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL"),
    )
)
_GO = frozenset(
    (
        *("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB"),
        *("GONOSUMDB", "GOINSECURE", "GOFLAGS", "GOTOOLCHAIN"),
        *("GOVCS", "GOROOT", "GOAMD64", "GOARCH"),
        *("GOOS", "GOMAXPROCS", "GO111MODULE"),
    )
)
# npm reads its settings in any case, proxies are written in any.
_NPM = frozenset(
    f"npm_config_{name}"
    for name in (
        *("registry", "proxy", "https_proxy", "noproxy", "cafile", "strict_ssl"),
        *("fetch_timeout", "fetch_retries", "offline", "prefer_offline"),
    )
)
_PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))


def passes_to_uv(name: str) -> bool:
    """Return whether uv may see a variable.

    >>> passes_to_uv("HTTPS_PROXY"), passes_to_uv("UV_PUBLISH_TOKEN")
    (True, False)
    """
    return name in _COMMON | _UV or name.lower() in _PROXIES


def passes_to_own_uv(name: str) -> bool:
    """Return whether uv may see a variable of its own user: where the user's settings lie, too.

    >>> passes_to_own_uv("HOME"), passes_to_own_uv("GITHUB_TOKEN")
    (True, False)
    """
    return passes_to_uv(name) or name in _OWN_PLACES


def passes_to_tools(name: str) -> bool:
    """Return whether other languages' tools may see a variable: uv's settings too, for entries that call it.

    >>> passes_to_tools("GOPROXY"), passes_to_tools("GOOGLE_API_KEY")
    (True, False)
    """
    return passes_to_uv(name) or name in _CARGO | _GO or name.lower() in _NPM
