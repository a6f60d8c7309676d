"""The command that uses a model: predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asyncfed.cli.output import print_line


def predict(
    model: Annotated[Path, typer.Argument(help="A model's file, as `asyncfed export RUN FILE --to model` wrote it.")],
    table: Annotated[str, typer.Argument(help="The rows to predict: a table's file or folder.")],
    out: Annotated[Path, typer.Option(help="The file of predictions, .csv or .parquet.", dir_okay=False)] = Path(
        "predictions.csv"
    ),
    client: Annotated[
        str | None, typer.Option(help="Use this client's own model (exported with --personalize).")
    ] = None,
) -> None:
    """Predict new rows of a table with an exported model."""
    from asyncfed.analysis.table_model import TableModel, predicted_columns, read_rows
    from asyncfed.report.export import write_table

    columns = predicted_columns(TableModel.load(model), read_rows(table), client)
    write_table(columns, out)
    print_line(f"predictions of {len(columns['row']):,} rows: {out}")
