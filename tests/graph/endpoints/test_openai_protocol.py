from __future__ import annotations

import httpx
import openai
import pytest

from graph.endpoints.openai_protocol import as_mara_error, retry_after_s, timeout_s
from graph.errors import BadInput, ModelUnavailable, TransportFault

ENDLESS_DATE = "Fri, 31 Dec 100000000000000 23:59:59 GMT"
REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/embeddings")


def status_error(status: int, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    return openai.APIStatusError("no", response=httpx.Response(status, request=REQUEST, headers=headers), body=None)


def test_the_timeout_is_a_minute_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timeout_s() == 60
    monkeypatch.setenv("MARA_TIMEOUT_S", "2.5")
    assert timeout_s() == 2.5
    for value in ("soon", "0", "nan"):
        monkeypatch.setenv("MARA_TIMEOUT_S", value)
        with pytest.raises(BadInput, match=rf"MARA_TIMEOUT_S is '{value}'.*positive number of seconds"):
            timeout_s()


class TestFaults:
    def test_what_will_not_pass_says_what_to_set(self) -> None:
        for status, role, advice in [
            (401, "chat", "OPENAI_API_KEY"),
            (403, "embedding", "OPENAI_API_KEY"),
            (404, "embedding", "MARA_EMBEDDING_MODEL"),
            (400, "chat", "limits"),
            (413, "chat", r"(413): too long by far"),
        ]:
            error = as_mara_error(status_error(status), role, "too long by far")
            assert type(error) is ModelUnavailable
            assert (error.exit_code, error.status) == (3, status)
            assert role in str(error)
            assert advice in str(error)

    def test_what_may_pass_says_what_it_was(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for fault, cause, status, words in [
            (status_error(429), "rate limit", 429, "429"),
            *((status_error(code), "server error", code, str(code)) for code in (409, 500, 502, 503, 529)),
            (status_error(408), "timeout", 408, "408"),
            (openai.APITimeoutError(request=REQUEST), "timeout", 0, "did not answer within 60 s"),
            (openai.APIConnectionError(request=REQUEST), "connection", 0, "cannot be reached"),
            (KeyError("choices"), "broken reply", 0, "KeyError"),
            (ValueError("x"), "broken reply", 0, "/v1"),
        ]:
            error = as_mara_error(fault, "chat")
            assert isinstance(error, TransportFault)
            assert (error.cause, error.status, error.retry_after_s, error.exit_code) == (cause, status, None, 3)
            assert words in str(error)
        unreachable = openai.APIConnectionError(request=REQUEST)
        assert as_mara_error(unreachable, "chat").hint == "Check the network and the model's server"
        monkeypatch.setenv("MARA_EXTRACTION_URLS", "http://a")
        assert as_mara_error(unreachable, "chat").hint == "Check MARA_EXTRACTION_URLS and the server"
        busy = as_mara_error(status_error(503, {"Retry-After": "7"}), "embedding")
        assert isinstance(busy, TransportFault)
        assert busy.retry_after_s == 7
        ours = BadInput("MARA_TIMEOUT_S is 'soon'")
        assert as_mara_error(ours, "chat") is ours


class TestRetryAfter:
    def test_it_is_a_number_of_seconds(self) -> None:
        for headers, seconds in [
            ({"retry-after": "20"}, 20.0),
            ({"retry-after": "-3"}, 0.0),
            ({"retry-after": "20", "retry-after-ms": "1500"}, 1.5),
        ]:
            assert retry_after_s(headers) == seconds

    def test_what_cannot_be_read_is_nothing(self) -> None:
        for value in ["", ENDLESS_DATE, "soon", "nan", "inf", "1e999", "Tue, 05 Mai 10:00", "5 minutes"]:
            assert retry_after_s({"retry-after": value}) is None
