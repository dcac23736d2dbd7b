"""Mails, .eml: a document of the text, and those of the attachments, with the subject, people and date as metadata."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory

from graph.errors import BadInput
from graph.schema import MetadataValue, stable_id
from graph.sources.loaders import kinds, load
from graph.sources.loaders.document import Document, Loaded, Refused, file_title, sane_title, short_spaced
from graph.sources.loaders.fields import FieldMap, within_limits
from graph.sources.loaders.files import read_bytes, readable_path
from graph.sources.loaders.html import parse_html
from graph.text import without_controls

ATTACHMENTS_LEFT = "attachments of kinds that are not read"
"""The note that counts them."""

_PEOPLE = ("from", "to", "cc")


def load_mail(path: Path, source: str) -> Loaded:
    """Read a mail: its plain text, else that of its web page, and its attachments.

    All of it has the mail's metadata; what is of an attachment also has its name, ``attachment``. One that cannot be
    read is refused, and the others are read.
    """
    where, loaded = readable_path(path), Loaded()
    message = message_from_bytes(read_bytes(path, None), policy=policy.default)
    assert isinstance(message, EmailMessage)
    if not message.keys():
        raise BadInput(f"{where} is no mail: it has no subject, sender or date", "Leave it out")
    metadata = within_limits([*_envelope(message), ("file", source)], loaded.notes)
    loaded.documents.append(replace(_body(message, where, source), metadata=metadata))
    for number, (name, content) in enumerate(_attachments(message), start=1):
        if Path(name).suffix.lower() not in kinds():
            loaded.notes[ATTACHMENTS_LEFT] += 1
            continue
        try:
            _take(loaded, load_attachment(name, content, source), metadata, name)
        except BadInput as fault:
            loaded.refused.append(Refused(f"{where}, item {number}", f"{where}, attachment {fault}"))
    return loaded


def load_attachment(name: str, content: bytes, source: str) -> Document | Loaded:
    """Return what an attachment holds. Raises BadInput, which begins with its name, where it cannot be read."""
    with TemporaryDirectory() as folder:
        file = Path(folder, f"attachment{Path(name).suffix.lower()}")
        file.write_bytes(content)
        try:
            return load(file, source, FieldMap())
        except BadInput as fault:
            raise BadInput(fault.message.replace(readable_path(file), name), fault.hint) from fault


def _take(loaded: Loaded, part: Document | Loaded, metadata: dict[str, MetadataValue], name: str) -> None:
    """Add what an attachment holds to what its mail holds."""
    if isinstance(part, Document):
        part = Loaded([replace(part, title=part.title or file_title(Path(name)))])
    own = {**metadata, "attachment": name}
    loaded.documents += [
        replace(each, source=loaded.documents[0].source, metadata={**each.metadata, **own}) for each in part.documents
    ]
    for each in part.passages:
        # Mails are sent again with newer tables of the same ids.
        key = stable_id("passage", each.source, f"{name}\n{each.id}")
        loaded.passages.append(replace(each, id=key, metadata={**each.metadata, **own}))
    loaded.refused += part.refused
    loaded.identical += part.identical
    loaded.notes += part.notes


def _envelope(message: EmailMessage) -> Iterator[tuple[str, MetadataValue]]:
    """Yield the subject, the people and the date, as far as the mail has them."""
    for key in ("subject", *_PEOPLE):
        if text := _header(message, key):
            yield key, text
    with suppress(AttributeError, TypeError, ValueError):
        yield "date", message["date"].datetime.isoformat()


def _header(message: EmailMessage, key: str) -> str:
    """Return a header as one line; empty where it is missing or cannot be read."""
    with suppress(Exception):  # The library fails on some malformed headers.
        text = " ".join(str(message.get(key, "")).split())
        return without_controls(text.encode("utf-8", "replace").decode())
    return ""


def _body(message: EmailMessage, where: str, source: str) -> Document:
    """Return the text of a mail; empty where it has none."""
    title = sane_title(_header(message, "subject"))
    for kind in ("plain", "html"):
        part = message.get_body((kind,))
        text = part.get_content() if part is not None else ""
        if text.strip():
            page = (
                parse_html(text, where, source)
                if kind == "html"
                else Document("", short_spaced(text.replace("\r\n", "\n")), source)
            )
            return replace(page, title=title or page.title, source=source)
    return Document(title, "", source)


def _attachments(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each attachment; a mail that is attached is one, too."""
    for part in message.iter_attachments():
        kind, content = part.get_content_type(), part.get_payload(decode=True)
        name = without_controls(part.get_filename() or f"attachment{mimetypes.guess_extension(kind) or ''}")
        if kind == "message/rfc822":
            yield f"{name.removesuffix('.eml')}.eml", part.get_content().as_bytes()
        elif isinstance(content, bytes):
            yield name, content
