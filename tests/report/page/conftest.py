from cli.conftest import said  # noqa: F401 - a fixture
from commands import cache, folder, prony  # noqa: F401 - fixtures
