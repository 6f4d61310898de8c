"""From how an app fails its probe to what its user can do: one table, the most particular row first. Pure.

>>> hint_for(Refusal("", status=404, path="/")).name
'nothing at the path'
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an app fails. ``text``: why there is no reply, the body's begin and the log's end, a line each.

    ``status`` null: there is no reply; ``location``: where a reply redirects. ``user``: the one that servers
    run as; ``folder``: the app's; ``requirements``: the file that declares what it needs, or empty.
    """

    text: str
    status: int | None = None
    path: str = "/"
    location: str = ""
    user: str = ""
    folder: str = ""
    requirements: str = ""


@dataclass(frozen=True, slots=True)
class Hint:
    """What can be done; ``name``: the row of the table."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class _Row:
    """Fits a symptom with one of ``statuses`` (empty: any, also none) whose text matches."""

    name: str
    hint: str
    pattern: str = ""
    statuses: tuple[int, ...] = ()
    location: str = ""
    more: Callable[[Mapping[str, str]], Mapping[str, str]] = dict


def _debian_name(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return Debian's name for a Perl module. *Source*: Debian Perl Policy, 4.2, Module package names."""
    module = found["module"].replace("/", "::")
    return {**found, "module": module, "package": f"lib{module.lower().replace('::', '-')}-perl"}


def _with_place(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return where a module is imported too, if the traceback says so."""
    return {**found, "where": f" ({found['source']}:{found['line']})" if "source" in found else ""}


def _lacking(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return all names that settings of Pydantic lack. *Source*: its documentation, Settings Management."""
    lacking = re.findall(r"(?m)^[ \t]*(\w+)\n[ \t]+[Ff]ield required", found["fields"])
    names = list(map(str.upper, lacking))
    return {"variables": ", ".join(names), "words": " ".join(f"--env {name}=value" for name in names)}


def _asked_for(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variable, however the message names it."""
    return {"variable": next(iter(found.values()))}


_PHP_PACKAGES = {
    **{"mb_": "mbstring", "curl_": "curl", "simplexml_": "xml", "xml_": "xml", "bc": "bcmath", "image": "gd"},
    **{"mysqli_": "mysql", "pg_": "pgsql"},
}


def _of_php(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return Debian's packages of an extension. *Source*: Debian's package php-defaults."""
    begin = found.get("function", "")
    names = [_PHP_PACKAGES[begin]] if begin else ["sqlite3", "mysql", "pgsql"]
    return {"packages": " or ".join(f"php-{name}" for name in names)}


_ROWS = (
    _Row(
        "the host",
        "the app answers only for hosts that it knows: send one, such as -H 'Host: shop.example', or let it "
        "accept 127.0.0.1 (Django: ALLOWED_HOSTS)",
        r"Invalid HTTP_HOST header|DisallowedHost|Invalid host header|Host '[^']*' is not trusted"
        r"|Bad Request \(400\)",
        (400,),
    ),
    _Row(
        "the token of a form",
        "the app wants a CSRF token with this request: measure one that needs none, such as -m GET, or send "
        "the token and its cookie with -H",
        r"(?i)csrf",
        (400, 403, 419, 500),
    ),
    _Row(
        "https",
        "the app redirects to https: send what a proxy with TLS sends, -H 'X-Forwarded-Proto: https', or "
        "turn that off (Django: SECURE_SSL_REDIRECT); --expect-status {status} measures the redirection",
        location="https://",
    ),
    _Row(
        "a Perl module",
        "Perl has no `{module}`: Debian's package of it is probably {package}, apt-get install {package}",
        r"Can't locate (?P<module>[\w/:]+?)(?:\.pm)? in @INC",
        more=_debian_name,
    ),
    _Row(
        "a file that is loaded",
        "the app loads `{own}`, which is not there: bring that file back, or build it as its author does",
        r"(?:Cannot find module '|cannot load such file -- |Failed opening required ')"
        r"(?P<own>\.{0,2}/[^\s']+|[^\s']+\.php)",
    ),
    _Row(
        "gems of a lock",
        "the app wants the gems of its Gemfile, and Prony starts Ruby's servers with Debian's: start it with "
        "yours, --command 'bundle exec puma -p {{port}}'",
        r"Bundler::(?:GemNotFound|RubyVersionMismatch)|in locally installed gems|Your Ruby version is",
    ),
    _Row(
        "a gem",
        "Ruby has no `{module}`: Prony starts Ruby's servers with Debian's packages, whose name is probably "
        "ruby-{package}: apt-get install ruby-{package}",
        r"cannot load such file -- (?P<module>[\w-][\w/.-]*)",
        more=lambda found: {**found, "package": re.split(r"[/.]", found["module"])[0].replace("_", "-")},
    ),
    _Row(
        "a module of Node.js",
        "no package `{module}` is installed: name it in package.json and lock it, npm install "
        "--package-lock-only; or install it where the app is",
        r"Cannot find (?:module|package) '(?P<module>@?[\w-][^']*)'",
    ),
    _Row(
        "packages and their lock",
        "package.json and package-lock.json do not fit together: `npm install --package-lock-only` makes "
        "them fit",
        r"npm ci` can only install packages when",
    ),
    _Row(
        "a package that is not there",
        "a package that the app names, or its version, does not exist: correct package.json and its lock, or "
        "go.mod",
        r"npm (?:error|ERR!) (?:code )?(?:E404|ETARGET)|No matching version found for"
        r"|unknown revision|no matching versions for query",
    ),
    _Row(
        "packages of Go",
        "go.sum lacks what the program imports: go mod tidy writes it",
        r"missing go\.sum entry|no required module provides|updates to go\.mod needed",
    ),
    _Row(
        "another Python",
        "what the app needs wants Python{python}: --python /path/of/that/python builds environments with it",
        r"does not satisfy Python(?P<python> ?[<>=!~][\w.*,<>=!~]*\w)",
    ),
    _Row(
        "a file in /tmp",
        "servers have a /tmp of their own, without `{file}`: name it in a variable, such as --env "
        "FILE={file}, or keep it in `{folder}`",
        r"(?m)^(?=.*(?:[Nn]o such file or directory|ENOENT|[Uu]nable to open))"
        r".*?(?<![\w/])(?P<file>/(?:var/)?tmp/[^\s'\"`,:)]+)",
    ),
    _Row(
        "a module of a package",
        "`{package}` has no `{module}`{where}: bring its file back if it is the app's own; else name the "
        "version that has it in {requirements}, or in a file that --requirements names",
        r'(?:File "(?:[^"\n]*/)?(?P<source>[^"/\n]+)", line (?P<line>\d+), in .*\n.*\n(?:[ ^~]+\n)?)?'
        r"ModuleNotFoundError[:'\s(]+No module named '?(?P<module>(?P<package>\w+)(?:\.\w+)+)",
        more=_with_place,
    ),
    _Row(
        "a Python module",
        "the app imports `{module}`{where}, and no package of it is installed: name it in {requirements}, or "
        "a file that does with --requirements; the app's own folder with --dir",
        r'(?:File "(?:[^"\n]*/)?(?P<source>[^"/\n]+)", line (?P<line>\d+), in .*\n.*\n(?:[ ^~]+\n)?)?'
        r"ModuleNotFoundError[:'\s(]+No module named '?(?P<module>[\w.]+)",
        more=_with_place,
    ),
    _Row(
        "a name of its own",
        "`{place}` defines no `{wanted}`, which the app imports from it: define it, or take the import out",
        r"cannot import name '(?P<wanted>\w+)' from '[\w.]+' \((?!.*(?:-packages|/lib/python))"
        r"(?P<place>/[^)\n]+\.py)\)",
    ),
    _Row(
        "an import",
        "a package of another version lacks what the app imports: name the right one in {requirements}, or "
        "a file that does with --requirements",
        r"ImportError",
    ),
    _Row(
        "a table of the database",
        "the database has no tables yet: create them before you measure (Django: manage.py migrate)",
        r"no such table|UndefinedTable|relation \"[^\"]*\" does not exist|Table '[^']*' doesn't exist"
        r"|PendingMigrationError|Migrations are pending|Base table or view not found",
    ),
    _Row(
        "the database's file",
        "the app cannot open its database's file: create it before you measure, and name it relative to "
        "`{folder}`, or by a variable with --env",
        r"unable to open database file",
    ),
    _Row(
        "a file's permissions",
        "servers run as the user `{user}`, who may not use what the app opens: chmod -R o+rX it, or name "
        "another user with --run-as",
        r"(?i)PermissionError|permission denied|EACCES|readonly database|Read-only file system",
    ),
    _Row(
        "the account of a service",
        "a service refuses the app: make the user and the database that it asks for there, or name others "
        "with --env",
        r"(?i)(?:password|peer|ident) authentication failed|access denied for user|unknown database"
        r"|\bNOAUTH\b|(?:role|database) \"[^\"]*\" does not exist|no password supplied",
    ),
    _Row(
        "a service",
        "the app cannot reach a service that it needs, such as its database: start it, and name its address "
        "with --env; --net host lets the app reach this machine's",
        r"(?i)connection refused|could not connect to server|Can't connect to \w+ server"
        r"|Name or service not known|Temporary failure in name resolution"
        r"|\bE(?:CONNREFUSED|NOTFOUND|AI_AGAIN)\b|no such host|could not translate host name"
        r"|unknown \w+ server host|php_network_getaddresses|connection timed out|ServerSelectionTimeoutError"
        r"|ConnectionNotEstablished",
    ),
    _Row(
        "settings of Pydantic",
        "the app's settings lack {variables}: {words}, each with the prefix that the app gives them if it "
        "does; or --env-file FILE",
        r"validation errors? for \w*(?:Settings|Config|Env)\w*"
        r"(?P<fields>(?s:.*?\n[ \t]*\w+\n[ \t]+[Ff]ield required.*))",
        more=_lacking,
    ),
    _Row(
        "a variable",
        "the app needs the environment variable {variable}: --env {variable}=value, or --env {variable} to "
        "pass on your own",
        r"(?:KeyError: '|UndefinedValueError: |EnvError: Environment variable \"|KeyError: \"Config '"
        r"|ImproperlyConfigured: Set the |key not found: \")(?P<first>[A-Z][A-Z0-9_]+)\b"
        # As people write it in an error of their own.
        r"|(?i:environment variables?|env vars?)[:\s'\"`$]+(?P<second>[A-Z][A-Z0-9_]+)\b"
        r"|\b(?i:missing|set|required?|requires|needs?|without)(?i: (?:the|required|env|config))*[:\s'\"`$]+"
        r"(?P<third>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"
        r"|\b(?P<fourth>[A-Z][A-Z0-9]*_[A-Z0-9_]+)['\"`]?(?: environment| env)?(?: variable| var)?"
        r"(?: (?:is|was|are|must be|has to be|needs to be|should be))?"
        r" (?:not (?:set|defined|found|provided|given|configured)|unset|required|missing|undefined|empty"
        r"|(?<=be )(?:set|defined|provided|given|configured))\b",
        more=_asked_for,
    ),
    _Row(
        "settings",
        "the app needs its settings: name them with --env NAME=value or --env-file FILE",
        r"ImproperlyConfigured|settings are not configured|SECRET_KEY|secret_key_base",
    ),
    _Row(
        "the interface",
        "the app is called in another way than this server does: --interface asgi or --interface wsgi",
        r"missing \d+ required positional arguments?: .*'(?:send|receive|start_response)'"
        r"|takes \d+ positional arguments? but [23] (?:were|was) given|'\w+' object is not callable",
    ),
    _Row(
        "what a build makes",
        "files that the app serves are not built yet: build them as its author does (Django: manage.py "
        "collectstatic; npm run build)",
        r"Missing staticfiles manifest entry|Could not find a production build|Vite manifest not found"
        r"|pattern \S+: no matching files found|not present in the asset pipeline",
    ),
    _Row(
        "an extension of PHP",
        "PHP lacks an extension that the app calls: apt-get install {packages}",
        r"could not find driver"
        r"|undefined function \\?(?P<function>mb_|curl_|simplexml_|xml_|bc|image|mysqli_|pg_)",
        more=_of_php,
    ),
    _Row(
        "an error in the source",
        "the app's source cannot be run: see the line above",
        r"SyntaxError|IndentationError|TabError|NameError|ReferenceError|PHP (?:Parse|Fatal) error"
        r"|\.go:\d+:\d+: (?!missing)|syntax error at \S+ line \d|Global symbol \"|error TS\d+:",
    ),
    _Row(
        "another folder",
        "the app does not find a file of its own: relative paths begin at `{folder}`; name another folder "
        "with --dir",
        r"FileNotFoundError|TemplateNotFound|TemplateDoesNotExist|ENOENT|(?i:no such file or directory)"
        r"|pattern matches no files",
    ),
    _Row(
        "a port in use",
        "another program listens on port {number}, which the app wants: end that, or let the app listen on "
        "the port in the variable PORT",
        r"(?m)^(?=.*(?:EADDRINUSE|(?i:address already in use)|Connection in use))"
        r".*?[:, ](?P<number>\d{4,5})\b",
    ),
    _Row(
        "another port",
        "the program must listen on the port that it is given: {{port}} in the command, or the variable PORT",
        r"it listens on port|EADDRINUSE|Address already in use",
    ),
    _Row(
        "no reply in time",
        "a request that takes so long is measured with a longer --timeout, such as 60s, and --ready-timeout; "
        "or name another path with --path",
        r"no complete reply within|but did not answer",
    ),
    _Row(
        "a slow start",
        "if it starts slowly, wait longer: --ready-timeout 60s",
        r"was not ready within",
    ),
    _Row(
        "a hidden error",
        "the app hides its error: let it write errors to standard error while you look for it (Django: "
        "DEBUG = True, or a handler in LOGGING)",
        r"(?i)server error(?! occurred)",
        (500,),
    ),
    _Row(
        "nothing at the path",
        "the app has nothing at `{path}`: name a path that it has with --path; or expect it, "
        "--expect-status 404",
        statuses=(404, 410),
    ),
    _Row(
        "the method",
        "the app has another method at `{path}`: -m POST, with --body if it wants one",
        statuses=(405,),
    ),
    _Row(
        "who asks",
        "the app wants to know who asks: send a session's cookie or a token with -H, or name a public --path",
        statuses=(401, 403, 407),
    ),
    _Row(
        "a limit of rate",
        "the app limits how often it may be asked: turn that off, or it is what would be measured",
        statuses=(429,),
    ),
    _Row(
        "what is sent",
        "the app does not accept the request: see the body above; -H, -m and --body change it",
        statuses=(400, 406, 411, 415, 422),
    ),
    _Row(
        "a program that is not there",
        "the app starts `{tool}`, which is not installed: name its package in what the app declares, or "
        "install it",
        r"sh: (?:line )?\d+: (?P<tool>[\w./-]+): (?:command )?not found",
    ),
    _Row(
        "an early end",
        "the program ended before it listened: what it wrote stands above; if another command serves, "
        "--current '...' names it",
        r"exited with status \d+ before it was ready",
    ),
)


def hint_for(symptom: Refusal) -> Hint:
    """Return what can be done about a symptom, by the first row that fits."""
    for row in _ROWS:
        match = re.search(row.pattern, symptom.text)
        if match is None or not _fits(row, symptom):
            continue
        found = row.more({name: text for name, text in match.groupdict().items() if text})
        if _top(found.get("file", "-")) == _top(symptom.folder):
            continue  # what the app's folder lies in stays as it is
        values = {
            "path": symptom.path,
            "status": symptom.status,
            "user": symptom.user,
            "folder": symptom.folder,
            "requirements": symptom.requirements or "a requirements.txt beside the app",
        }
        return Hint(row.name, row.hint.format(**values, **found))
    return Hint("unknown", "--dry-run shows the commands, so that you can try them by hand")


def _top(path: str) -> list[str]:
    return path.removeprefix("/var").split("/")[:3]


def _fits(row: _Row, symptom: Refusal) -> bool:
    if row.location:
        return symptom.location.startswith(row.location)
    return not row.statuses or symptom.status in row.statuses
