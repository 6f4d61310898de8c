"""What all tests share: the option that rewrites golden files."""

import pytest

import histograms

histograms.stand_in_for_the_engine()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected files of tests/golden"
    )


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")
