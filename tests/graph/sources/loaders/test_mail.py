from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

from graph.sources.documents import read_documents
from graph.sources.loaders.mail import ATTACHMENTS_LEFT
from tests.graph.sources.loaders.files import docx, paragraph, passage_of_file, write

HEAD = {"subject": "Offer", "from": "Ida Berg <ida@ex.org>", "to": "Bo <bo@ex.org>, Eva <eva@ex.org>"}


def mail(text: str = "", page: str = "", **attachments: bytes) -> EmailMessage:
    """Return a mail; names of attachments have a double underscore for the point."""
    message = EmailMessage()
    for key, value in HEAD.items():
        message[key] = value
    message["Date"] = "Tue, 04 Mar 2025 10:00:00 +0100"
    if text:
        message.set_content(text)
    if page:
        message.add_alternative(page, subtype="html")
    for name, content in attachments.items():
        file = name.replace("__", ".")
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=file)
    return message


def test_its_text_has_the_subject_people_and_date_as_metadata(tmp_path: Path) -> None:
    passage = passage_of_file(write(tmp_path / "a.eml", mail("Dear Bo,\n\nit costs 3 EUR.\n").as_bytes()))
    assert (passage.title, passage.text, passage.source) == ("Offer", "Dear Bo,\n\nit costs 3 EUR.", "a.eml")
    assert {**HEAD, "date": "2025-03-04T10:00:00+01:00", "file": "a.eml"}.items() <= passage.metadata.items()


def test_its_plain_text_is_taken_else_that_of_its_page(tmp_path: Path) -> None:
    page = "<p>It costs <b>3</b> EUR, see <a href='https://ex.org/a'>here</a>.</p>"
    for text, expected in (("Plain.", "Plain."), ("", "It costs 3 EUR, see here.")):
        passage = passage_of_file(write(tmp_path / "a.eml", mail(text, page).as_bytes()))
        assert (passage.text, passage.source) == (expected, "a.eml")


def test_attachments_are_read_with_the_metadata_of_the_mail(tmp_path: Path) -> None:
    content = docx(paragraph("A pump."))
    message = mail("See there.", Install_pump__docx=content, prices__csv=b"Part,Price\nbolt,3\n", logo__png=b"x")
    documents = read_documents([write(tmp_path / "a.eml", message.as_bytes())])
    found = {str(each.metadata.get("attachment", "")): each for each in documents.passages.values()}
    assert {name: (each.title, each.text) for name, each in found.items()} == {
        "": ("Offer", "See there."),
        "Install_pump.docx": ("Install pump", "A pump."),
        "prices.csv": ("bolt", "Part: bolt; Price: 3"),
    }
    assert {each.source for each in found.values()} == {"a.eml"}
    assert {each.metadata["from"] for each in found.values()} == {HEAD["from"]}
    assert found["prices.csv"].metadata["Price"] == 3
    assert documents.notes == {ATTACHMENTS_LEFT: 1}


def test_an_attachment_that_cannot_be_read_is_refused_by_name_and_the_rest_is_read(tmp_path: Path) -> None:
    message = mail("Text.", a__docx=b"none", b__txt=b"good")
    documents = read_documents([write(tmp_path / "a.eml", message.as_bytes())])
    assert [each.text for each in documents.passages.values()] == ["Text.", "good"]
    (refused,) = documents.refused
    assert refused.source == f"{tmp_path / 'a.eml'}, item 1"
    assert refused.reason.startswith(f"{tmp_path / 'a.eml'}, attachment a.docx cannot be read as DOCX")
