"""Makes the last line of a test run ``N passed, N failed``: load it with ``-p tests.tally``."""

from __future__ import annotations

import sys

import pytest


class Tally:
    """Counts tests by their end; one that breaks while it is set up has failed too."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
        elif report.passed and report.when == "call":
            self.passed += 1

    def pytest_unconfigure(self) -> None:
        sys.stdout.write(f"{self.passed} passed, {self.failed} failed\n")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # of pytest-xdist: what workers ran is reported to us
        config.pluginmanager.register(Tally())
