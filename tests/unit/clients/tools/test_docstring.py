from __future__ import annotations

from duologue.clients.tools.docstring import Docstring, read_docstring


def test_a_function_that_says_nothing_has_no_description() -> None:
    assert read_docstring(None) == read_docstring("") == Docstring()


def test_the_lines_of_a_paragraph_flow_together() -> None:
    said = read_docstring("Tell the weather.\n\n    Of any city\n    of the world.\n    ")
    assert said.summary == "Tell the weather.\n\nOf any city of the world."


def test_each_argument_has_its_own_words() -> None:
    said = read_docstring(
        """Move.

        Args:
            where: A place, or
                an address: both will do.
            fast (bool, optional): At any price.
            *rest: What is left.

        Returns:
            where: it got to.
        """
    )
    assert said.summary == "Move."
    assert said.arguments == {
        "where": "A place, or an address: both will do.",
        "fast": "At any price.",
        "rest": "What is left.",
    }


def test_another_form_is_all_description() -> None:
    said = read_docstring("Move.\n\n:param where: a place")
    assert said.summary == "Move.\n\n:param where: a place"
    assert said.arguments == {}


def test_words_before_the_first_argument_are_passed_by() -> None:
    assert read_docstring("Move.\n\nArgs:\n    all of them are needed\n").arguments == {}
