"""A file regenerated through the library, looked at, and only then written.

python examples/editing.py                                        a copy of the demo's file
python examples/editing.py FILE "rename foo to bar" --write
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import specclient

DEMO = Path(__file__).parent / "demo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("instruction", nargs="?", default=(DEMO / "instruction.txt").read_text())
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--target", help="a target of your configuration (default: the embedded engine)")
    parser.add_argument("--model", help="another model of the target")
    options = parser.parse_args()

    path = options.file or Path(shutil.copy(DEMO / "inventory.py", tempfile.mkdtemp()))
    where = {"target": options.target} if options.target else {"provider": "local"}
    with specclient.Client(**where, model=options.model) as client:
        edit = client.edit(path, options.instruction)
    print(edit.diff() or "unchanged")
    for warning in edit.warnings:
        print("warning:" if warning.blocks else "note:", warning)
    if options.write and not any(warning.blocks for warning in edit.warnings):
        edit.write()  # atomic; refused if the file was changed meanwhile
        print("written:", path)


if __name__ == "__main__":
    main()
