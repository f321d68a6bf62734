"""The table of fields is what tests/tools/schema_table.py makes of the definitions. Costs half a second."""

from __future__ import annotations

from tests.tools import schema_table


def test_the_table_is_current() -> None:
    assert schema_table.TABLE.read_text() == schema_table.written(), "run python -m tests.tools.schema_table"


def test_text_is_cut_after_commas_outside_of_quotation_marks_only() -> None:
    text = '{"pattern":"a{1,3}\\",b"},{"type":"object"}'
    assert list(schema_table.pieces(text)) == ['{"pattern":"a{1,3}\\",b"},', '{"type":"object"}']
    assert "".join(schema_table.wrapped(text)) == text
