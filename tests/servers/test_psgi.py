"""PSGI: the entries' own adapters pass Plack's tests of servers, and the apps keep their contract."""

import os
import re
import shutil
import subprocess

import pytest

from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.catalog.schema.loader import BUILT_IN_SERVERS, load_catalog, load_server
from prony.model.subject import Interface

PERL = shutil.which("perl") or "perl"

# Plack's tests start a server themselves: here the entry's script, with arguments as the entry gives it.
SUITE = """\
use strict;
use warnings;
use Test::More;
use Plack::Middleware::Lint;
use Plack::Test::Suite;

our $APP;
my ($script, $file, @arguments) = @ARGV;
Plack::Test::Suite->run_server_tests(sub {
    my ($port, $app) = @_;
    $APP  = Plack::Middleware::Lint->wrap($app);
    @ARGV = ('127.0.0.1', $port, @arguments, $file);
    do $script;
    die $@ if $@;
});
done_testing;
"""

ASK = """\
use strict;
use warnings;
use HTTP::Request;
use Plack::Middleware::Lint;
use Plack::Test;
use Plack::Util;

my ($file, $method, $path) = @ARGV;
my $body  = do { local $/; <STDIN> };
my $app   = Plack::Middleware::Lint->wrap(Plack::Util::load_psgi($file));
my @told  = ('Content-Length' => length $body, 'Content-Type' => 'text/plain');
my $reply = Plack::Test->create($app)->request(HTTP::Request->new($method, $path, \\@told, $body));
printf "%d %s %s\\n", $reply->code, $reply->content_type, $reply->content_length // 'none';
print $reply->content;
"""

ARGUMENTS = {"anyevent-httpd": ["128", "60"], "net-server-coro": ["4096", "5"], "poe": ["true"]}

# What the library under it makes of a reply without a body, and of a path that starts with two slashes.
KNOWN = {"poe": ["No Content-Type", ""]}

CATALOG = load_catalog()
APPS = [app for app in CATALOG.apps.values() if Interface.PSGI in app.targets]


def need(*command):
    """Skip the test unless this succeeds; nothing is skipped where CI runs."""
    there = shutil.which(command[0]) and subprocess.run(command, capture_output=True, check=False)
    if not os.environ.get("CI") and (not there or there.returncode):
        pytest.skip(f"`{' '.join(command)}` fails here")


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_an_adapter_passes_placks_tests_of_servers(name, tmp_path):
    entry = load_server(BUILT_IN_SERVERS / f"{name}.toml")
    need(*(word.replace("{perl}", PERL) for word in entry.install.version))
    (tmp_path / "serve.pl").write_text(entry.files["serve.pl"])
    (tmp_path / "suite.pl").write_text(SUITE)
    (tmp_path / "app.psgi").write_text("$main::APP;\n")
    done = subprocess.run(
        [PERL, "suite.pl", f"{tmp_path}/serve.pl", f"{tmp_path}/app.psgi", *ARGUMENTS[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    results = re.findall(r"^(ok|not ok) \d+(?: - (.*))?$", done.stdout, re.MULTILINE)
    assert len(results) > 100, done.stderr
    assert [text for verdict, text in results if verdict == "not ok"] == KNOWN.get(name, []), done.stderr


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_an_app_keeps_its_contract(app, tmp_path):
    need(PERL, "-MPlack::Test", "-MHTTP::Request", "-e", "1")
    (tmp_path / "ask.pl").write_text(ASK)
    (file,) = BUILT_IN_APPS.glob(f"*/{app.targets[Interface.PSGI]}")
    for check in app.contract.checks:
        request = check.request
        done = subprocess.run(
            [PERL, "ask.pl", file, request.method, request.path],
            cwd=tmp_path,
            input=request.body or b"",
            capture_output=True,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\n")
        length = "none" if request.path == "/stream" else len(check.body)
        assert head.decode() == f"{check.status} text/plain {length}"
        assert body == check.body
