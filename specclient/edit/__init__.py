"""Regenerate a file with an edit, and give back its bytes but for the edit.

`edit_file` (async: `edit_file_async`, both behind `client.edit`) sends the file and the instruction with the
file as the prediction, reads the answer as a stream, takes off what the model put around the file, and
puts the file's own encoding, byte order mark, line endings, final newline and untouched lines back. An
answer that was cut off never becomes a file; one that looks wrong is written only with `force`.

Options of both, beside those of `chat.completions.create` (all but `messages`, `prediction`, `stream` and
`n`, which an edit sets itself):

- `write` replace the file in one step; without it nothing on the disk changes
- `force` write although a warning blocks
- `exact` take blanks, quotes and dashes as the model wrote them, in untouched lines too
- `predict` False sends no prediction
- `encoding` of the file, where it is neither UTF-8, nor marked, nor declared in its first lines
- `temperature` 0 unless given, and where the endpoint refuses that, its own; None leaves it to the endpoint
- `on_text` called with each piece of the answer as it arrives
"""

from specclient.edit.checks import EditWarning
from specclient.edit.result import FileEdit
from specclient.edit.run import EditRun, OnText, edit_file, edit_file_async

__all__ = ["EditRun", "EditWarning", "FileEdit", "OnText", "edit_file", "edit_file_async"]
