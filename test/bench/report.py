"""Figures as a table: one row a figure, one column an implementation, ratios to the reference."""

from __future__ import annotations

from tunnel import REFERENCE

Figures = dict[str, dict[str, float]]  # by implementation, by figure


def ratios(figures: Figures, reference: str = REFERENCE) -> Figures:
    """Every figure divided by the reference's of the same name."""
    base = figures.get(reference, {})
    return {name: {figure: value / base[figure] for figure, value in found.items()
                   if base.get(figure)}
            for name, found in figures.items()}


def table(title: str, figures: Figures, reference: str = REFERENCE) -> str:
    """Lines for people; a cell is the value and, but for the reference, its ratio to it."""
    names = list(figures)
    rows = list(dict.fromkeys(figure for found in figures.values() for figure in found))
    shares = ratios(figures, reference)

    def cell(name: str, row: str) -> str:
        if row not in figures[name]:
            return "-"
        text = f"{figures[name][row]:.4g}"
        return text if name == reference or row not in shares[name] else (
            f"{text} ({shares[name][row]:.2f}x)")

    cells = [[title, *names], *([row, *(cell(name, row) for name in names)] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names) + 1)]
    return "\n".join(
        "  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                  for i, (text, width) in enumerate(zip(line, widths)))
        for line in cells)
