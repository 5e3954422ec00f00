"""``duologue doctor``: say what is missing for a call on this machine, and how to get it."""

from __future__ import annotations

import argparse
from typing import Any

from duologue.commands.doctor.findings import Finding, Severity, can_run_demo, examine
from duologue.commands.doctor.probes import look

_MARKS = {Severity.FINE: "ok     ", Severity.HINT: "hint   ", Severity.BLOCKED: "MISSING"}


def register(subparsers: Any) -> None:
    """Add ``doctor`` to the commands."""
    parser = subparsers.add_parser(
        "doctor", help="say what is missing for a call, and how to get it", description=__doc__
    )
    parser.add_argument(
        "--verify", action="store_true", help="hash the weights, too (reads all of them)"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="the port to look at (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings; returns 1 where ``duologue demo`` could not run, else 0."""
    findings = examine(look(verify=args.verify, port=args.port))
    for line in lines(findings):
        print(line)
    if can_run_demo(findings):
        print("\nNothing is in the way of: duologue demo")
        return 0
    print("\nduologue demo cannot run yet: see MISSING above")
    return 1


def lines(findings: list[Finding]) -> list[str]:
    """Return the findings as text."""
    width = max(len(finding.what) for finding in findings)
    shown = []
    for finding in findings:
        shown.append(f"{_MARKS[finding.severity]}  {finding.what:<{width}}  {finding.saw}")
        if finding.fix:
            shown.append(f"{'':>{width + 11}}-> {finding.fix}")
    return shown
