"""What a build sees of the caller's environment: settings, by their names, and no secret."""

from dataclasses import replace

import pytest

from commands import passable_folder
from prony.catalog.install.child import Children
from prony.catalog.install.uv import build_environment, open_uv, probe_environment
from prony.core.users import builder_for, resolve_user

SECRETS = (
    *("AWS_SECRET_ACCESS_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOAUTH", "GO_TOKEN"),
    *("CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_MINE_TOKEN", "CARGO_REGISTRIES_MINE_CREDENTIAL_PROVIDER"),
    *("UV_PUBLISH_TOKEN", "UV_PUBLISH_PASSWORD", "UV_INDEX_MINE_PASSWORD", "UV_INDEX_MINE_USERNAME"),
    *("npm_config__authToken", "NPM_CONFIG__AUTH", "npm_config_//registry/:_password", "NODE_AUTH_TOKEN"),
    *(
        "SSL_KEY",
        "SSLKEYLOGFILE",
        "LC_SECRET",
        "GITHUB_TOKEN",
        "PGPASSWORD",
        "DATABASE_URL",
        "TWINE_PASSWORD",
    ),
)
SETTINGS = {
    "GOPROXY": "https://proxy.example",
    "CARGO_NET_RETRY": "3",
    "NPM_CONFIG_REGISTRY": "https://npm.example",
    "npm_config_cafile": "/ca.pem",
    "HTTPS_PROXY": "http://proxy.example",
    "no_proxy": "localhost",
    "UV_INDEX_URL": "https://pypi.example/simple",
    "LC_ALL": "C.UTF-8",
}


@pytest.fixture
def user():
    with passable_folder() as folder:
        yield replace(resolve_user(), cache=folder)


@pytest.fixture
def planted(monkeypatch):
    for name in SECRETS:
        monkeypatch.setenv(name, f"secret of {name}")
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


def secrets_in(environment):
    return {name for name, value in environment.items() if "secret of" in value}


@pytest.mark.usefixtures("planted")
def test_no_secret_reaches_a_build(user):
    assert len(SECRETS) >= 20
    assert secrets_in(build_environment(builder_for(user))) == set()
    assert secrets_in(probe_environment(user)) == set()
    assert secrets_in(open_uv(Children(user)).environment) == set()


@pytest.mark.usefixtures("planted")
def test_the_settings_by_which_tools_find_packages_reach_a_build(user):
    assert SETTINGS.items() <= build_environment(builder_for(user)).items()
