"""Files of embeddings as their usual programs write them, and a check of those that `akin embed` writes.

    python tests/peers/files.py write native-trainer/formats/tests/files
    python tests/peers/files.py read FILE…

`write` makes the files that native-trainer/formats/tests/peers.rs reads: 20 items of 8 numbers, with the labels `kind` and
`variety` where a format has columns. The numbers are multiples of 1/8 between -2 and 2, which every float type holds
exactly. `read` reads files with numpy, safetensors and pandas, and Parquet also with pyarrow, polars and DuckDB; it prints their
shape, type and sum.
"""

import json
import sys
from pathlib import Path

import duckdb
import ml_dtypes
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import safetensors.numpy

ROWS, COLUMNS = 20, 8
# The same rule stands in the test that reads the files.
EMBEDDINGS = np.array(
    [[((7 * row + 3 * column) % 33 - 16) / 8 for column in range(COLUMNS)] for row in range(ROWS)], dtype=np.float32
)
KINDS = ["Apple" if row % 2 == 0 else "Pear" for row in range(ROWS)]
VARIETIES = [f"{kind} {row % 6}" for row, kind in enumerate(KINDS)]


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    bits = EMBEDDINGS > 0
    # One step for each column, as sentence-transformers makes int8: value = (number + 128) * step + start.
    start, end = EMBEDDINGS.min(axis=0), EMBEDDINGS.max(axis=0)
    step = (end - start) / 255
    int8 = ((EMBEDDINGS - start) / step - 128).astype(np.int8)
    offset = start + 128 * step
    arrays = {
        "float64": EMBEDDINGS.astype(np.float64),
        "float32": EMBEDDINGS,
        "float32-big-endian": EMBEDDINGS.astype(">f4"),
        "float16": EMBEDDINGS.astype(np.float16),
        "bfloat16": EMBEDDINGS.astype(ml_dtypes.bfloat16),
        "int8": (EMBEDDINGS * 8).astype(np.int8),
        "fortran": np.asfortranarray(EMBEDDINGS),
        "fortran-float16": np.asfortranarray(EMBEDDINGS.astype(np.float16)),
        "bool": bits,
        "bits": np.packbits(bits, axis=1),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "stored.npz", embeddings=EMBEDDINGS, ids=np.arange(ROWS))
    np.savez_compressed(folder / "deflated.npz", embeddings=EMBEDDINGS.astype(np.float64), ids=np.arange(ROWS))
    np.savez(folder / "int8.npz", embeddings=int8, scale=step, offset=offset)
    np.savetxt(folder / "savetxt.csv", EMBEDDINGS, delimiter=",")
    np.savetxt(folder / "vectors.tsv", EMBEDDINGS, delimiter="\t", fmt="%g")
    np.savetxt(folder / "savetxt.txt", EMBEDDINGS)

    tensors = {
        name: np.ascontiguousarray(arrays[name])
        for name in ["float64", "float32", "float16", "bfloat16", "bool", "bits"]
    }
    for name, array in tensors.items():
        safetensors.numpy.save_file({"embeddings": array}, folder / f"{name}.safetensors")
    safetensors.numpy.save_file(
        {"embeddings": int8, "scale": step, "offset": offset, "classes": np.arange(3)}, folder / "int8.safetensors"
    )
    per_item = np.abs(EMBEDDINGS).max(axis=1, keepdims=True) / 127
    np.savez(folder / "int8-per-item.npz", embeddings=np.rint(EMBEDDINGS / per_item).astype(np.int8), scale=per_item)

    lists = EMBEDDINGS.tolist()
    labels = {"kind": KINDS, "variety": VARIETIES}
    frame = pandas.DataFrame({"embedding": list(EMBEDDINGS), **labels})
    frame.to_parquet(folder / "pandas.parquet", index=False)
    columns = {
        "list": pyarrow.array(lists, pyarrow.list_(pyarrow.float32())),
        "fixed": pyarrow.array(lists, pyarrow.list_(pyarrow.float32(), COLUMNS)),
        "float64": pyarrow.array(lists, pyarrow.large_list(pyarrow.float64())),
        "float16": pyarrow.array(
            [[np.float16(number) for number in row] for row in lists], pyarrow.list_(pyarrow.float16())
        ),
        "int8": pyarrow.array((EMBEDDINGS * 8).astype(np.int8).tolist(), pyarrow.list_(pyarrow.int8())),
        "bool": pyarrow.array(bits.tolist(), pyarrow.list_(pyarrow.bool_())),
        "bytes": pyarrow.array(np.packbits(bits, axis=1).tolist(), pyarrow.list_(pyarrow.uint8())),
        "bits": pyarrow.array([row.tobytes() for row in np.packbits(bits, axis=1)], pyarrow.binary(1)),
    }
    for name, column in columns.items():
        table = pyarrow.table({"embedding": column, **labels})
        # Pages and groups of few rows, so that a block of rows spans several.
        pyarrow.parquet.write_table(
            table, folder / f"pyarrow-{name}.parquet", row_group_size=9, data_page_size=64, write_batch_size=2
        )
    many = [[((7 * row + 3 * column) % 33 - 16) / 8 for column in range(COLUMNS)] for row in range(4096)]
    many = pyarrow.table({"embedding": pyarrow.array(many, pyarrow.list_(pyarrow.float32()))})
    pyarrow.parquet.write_table(
        many,
        folder / "pyarrow-many.parquet",
        row_group_size=1500,
        data_page_size=1024,
        write_batch_size=64,
        compression="none",
    )
    table = pyarrow.table({"embedding": columns["list"], **labels})
    pyarrow.parquet.write_table(
        table,
        folder / "pyarrow-split.parquet",
        use_dictionary=False,
        column_encoding={"embedding.list.element": "BYTE_STREAM_SPLIT", "kind": "PLAIN", "variety": "PLAIN"},
        data_page_version="2.0",
        compression="zstd",
    )
    uneven = lists[:-1] + [lists[-1][:-1]]
    pyarrow.parquet.write_table(pyarrow.table({"embedding": uneven, **labels}), folder / "uneven.parquet")
    holes = lists[:5] + [None] + lists[6:]
    pyarrow.parquet.write_table(pyarrow.table({"embedding": holes, **labels}), folder / "holes.parquet")

    polars_frame = polars.DataFrame({"embedding": lists, **labels}).with_columns(
        polars.col("embedding").cast(polars.Array(polars.Float32, COLUMNS))
    )
    polars_frame.write_parquet(folder / "polars.parquet")
    polars_frame.write_ndjson(folder / "polars.jsonl")

    # A column for each number: an array as it is, and names with the number.
    frame = pandas.DataFrame(EMBEDDINGS)
    frame.columns = frame.columns.astype(str)
    frame.assign(**labels).to_parquet(folder / "pandas-wide.parquet", index=False)
    doubles = polars.DataFrame(EMBEDDINGS.astype(np.float64), schema=[f"embedding_{c}" for c in range(COLUMNS)])
    doubles.with_columns(kind=polars.Series(KINDS), variety=polars.Series(VARIETIES)).write_parquet(
        folder / "polars-wide.parquet"
    )

    wide = pandas.DataFrame(EMBEDDINGS, columns=[f"e{column}" for column in range(COLUMNS)]).assign(**labels)
    wide.to_csv(folder / "semicolons.csv", index=False, sep=";", encoding="utf-8-sig")
    wide.to_csv(folder / "tabs.tsv", index=False, sep="\t")
    # As a spreadsheet writes Unicode text.
    wide.to_csv(folder / "utf16.tsv", index=False, sep="\t", encoding="utf-16")
    pandas.DataFrame(EMBEDDINGS).assign(**labels).to_csv(folder / "index.csv")
    pandas.DataFrame({"embedding": lists, **labels}).to_csv(folder / "lists.csv", index=False)
    pandas.DataFrame({"embedding": lists, **labels}).to_json(folder / "pandas.jsonl", orient="records", lines=True)

    connection = duckdb.connect()
    connection.register("items", table)
    for query, file in [
        ("SELECT embedding, kind, variety FROM items", "duckdb-list.parquet"),
        (f"SELECT embedding::FLOAT[{COLUMNS}] AS embedding, kind, variety FROM items", "duckdb-array.parquet"),
    ]:
        connection.execute(f"COPY ({query}) TO '{folder / file}' (FORMAT parquet)")
    connection.execute(f"COPY (SELECT * FROM items) TO '{folder / 'duckdb.csv'}' (FORMAT csv, HEADER)")
    connection.execute(f"COPY (SELECT * FROM items) TO '{folder / 'duckdb.jsonl'}' (FORMAT json)")


def read(file):
    match file.suffix:
        case ".npy":
            array = np.load(file)
        case ".npz":
            array = np.load(file)["embeddings"]
        case ".safetensors":
            array = safetensors.numpy.load_file(file)["embeddings"]
        case ".parquet":
            array = np.stack(pandas.read_parquet(file)["embedding"].to_numpy())
            others = [
                pyarrow.parquet.read_table(file)["embedding"].to_pylist(),
                polars.read_parquet(file)["embedding"].to_list(),
                [row for (row,) in duckdb.sql(f"SELECT embedding FROM '{file}'").fetchall()],
            ]
            assert all((array == np.array(other, dtype=np.float32)).all() for other in others)
        case ".jsonl":
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            array = np.array([line["embedding"] for line in lines], dtype=np.float32)
        case ".csv" | ".tsv":
            frame = pandas.read_csv(file, sep="\t" if file.suffix == ".tsv" else ",")
            array = frame[[name for name in frame if name.startswith("e") and name[1:].isdigit()]].to_numpy(np.float32)
        case other:
            sys.exit(f"{other} is no format of embeddings")
    print(file.name, array.shape, array.dtype, float(array.astype(np.float64).sum()))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    elif len(sys.argv) > 2 and sys.argv[1] == "read":
        for name in sys.argv[2:]:
            read(Path(name))
    else:
        sys.exit(__doc__)
