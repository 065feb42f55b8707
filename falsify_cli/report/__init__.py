"""A Judgement -> text: one module a format."""
