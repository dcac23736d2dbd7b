from __future__ import annotations

import httpx
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.endpoints.openai_protocol import as_mara_error, retry_after_s, timeout_s
from graph.errors import BadInput, MaraError, ModelUnavailable, TransportFault

ENDLESS_DATE = "Fri, 31 Dec 100000000000000 23:59:59 GMT"
REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/embeddings")


HEADER_VALUES = st.text(st.characters(codec="latin-1")) | st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(("Fri", "Frix", "")),
    st.integers(-1, 10**15),
    st.sampled_from(("Dec", "Mai")),
    *(st.integers(-1, 10**15) for _ in range(4)),
    st.sampled_from(("GMT", "+0200", "-9999", f"+{10**15}")),
)


def status_error(status: int, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    return openai.APIStatusError("no", response=httpx.Response(status, request=REQUEST, headers=headers), body=None)


class TestTimeout:
    def test_it_is_a_minute_unless_the_environment_says_otherwise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert timeout_s() == 60
        monkeypatch.setenv("MARA_TIMEOUT_S", "2.5")
        assert timeout_s() == 2.5

    @pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "1e999"])
    def test_what_is_no_positive_number_is_refused_by_name(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("MARA_TIMEOUT_S", value)
        with pytest.raises(BadInput, match=rf"MARA_TIMEOUT_S is '{value}'.*positive number of seconds"):
            timeout_s()


class TestFaults:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
    def test_what_may_pass_is_worth_another_try(self, status: int) -> None:
        error = as_mara_error(status_error(status), "chat")
        assert isinstance(error, TransportFault)
        assert str(status) in str(error)

    @pytest.mark.parametrize(
        ("status", "role", "advice"),
        [
            (401, "chat", "OPENAI_API_KEY"),
            (403, "embedding", "OPENAI_API_KEY"),
            (404, "chat", "MARA_CHAT_MODEL"),
            (404, "embedding", "MARA_EMBEDDING_MODEL"),
            (400, "chat", "limits"),
            (422, "embedding", "limits"),
        ],
    )
    def test_what_will_not_pass_says_what_to_set(self, status: int, role: str, advice: str) -> None:
        error = as_mara_error(status_error(status), role)
        assert type(error) is ModelUnavailable
        assert role in str(error)
        assert advice in str(error)

    @pytest.mark.parametrize(
        ("role", "named", "hint"),
        [
            ("chat", {}, "Check the network and the model's server"),
            ("chat", {"OPENAI_BASE_URL": "http://a"}, "Check OPENAI_BASE_URL and the server"),
            ("chat", {"MARA_EXTRACTION_URLS": "http://a"}, "Check MARA_EXTRACTION_URLS and the server"),
            ("chat", {"MARA_EMBEDDING_BASE_URL": "http://a"}, "Check the network and the model's server"),
            ("embedding", {"MARA_EMBEDDING_BASE_URL": "http://a"}, "Check MARA_EMBEDDING_BASE_URL and the server"),
        ],
    )
    def test_the_hint_names_only_settings_that_are_set(
        self, monkeypatch: pytest.MonkeyPatch, role: str, named: dict[str, str], hint: str
    ) -> None:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "MARA_EXTRACTION_URLS", "MARA_EMBEDDING_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in named.items():
            monkeypatch.setenv(name, value)
        assert as_mara_error(openai.APIConnectionError(request=REQUEST), role).hint == hint

    def test_no_connection_and_no_answer_are_told_apart(self) -> None:
        unreachable = as_mara_error(openai.APIConnectionError(request=REQUEST), "chat")
        silent = as_mara_error(openai.APITimeoutError(request=REQUEST), "chat")
        assert isinstance(unreachable, TransportFault)
        assert "cannot be reached" in str(unreachable)
        assert isinstance(silent, TransportFault)
        assert "did not answer within 60 s" in str(silent)

    def test_anything_else_is_a_reply_that_is_not_the_protocols(self) -> None:
        error = as_mara_error(KeyError("choices"), "chat")
        assert isinstance(error, TransportFault)
        assert "KeyError" in str(error)
        assert "/v1" in str(error)

    def test_errors_of_our_own_stay_what_they_are(self) -> None:
        ours = BadInput("MARA_TIMEOUT_S is 'soon'")
        assert as_mara_error(ours, "chat") is ours

    @pytest.mark.parametrize("fault", [status_error(500), status_error(401), ValueError("x")])
    def test_each_ends_a_command_with_exit_code_3(self, fault: Exception) -> None:
        error: MaraError = as_mara_error(fault, "chat")
        assert error.exit_code == 3

    @pytest.mark.parametrize(
        ("fault", "cause", "status"),
        [
            (status_error(429), "rate limit", 429),
            (status_error(503), "server error", 503),
            (status_error(409), "server error", 409),
            (status_error(408), "timeout", 408),
            (openai.APITimeoutError(request=REQUEST), "timeout", 0),
            (openai.APIConnectionError(request=REQUEST), "connection", 0),
            (KeyError("choices"), "broken reply", 0),
        ],
    )
    def test_what_may_pass_says_what_it_was(self, fault: Exception, cause: str, status: int) -> None:
        error = as_mara_error(fault, "chat")
        assert isinstance(error, TransportFault)
        assert (error.cause, error.status, error.retry_after_s) == (cause, status, None)

    def test_a_refusal_says_its_status_and_the_servers_own_words(self) -> None:
        error = as_mara_error(status_error(413), "chat", "too long by far")
        assert isinstance(error, ModelUnavailable)
        assert error.status == 413
        assert "(413): too long by far" in str(error)

    def test_a_busy_endpoint_says_how_long_to_wait(self) -> None:
        error = as_mara_error(status_error(503, {"Retry-After": "7"}), "embedding")
        assert isinstance(error, TransportFault)
        assert error.retry_after_s == 7


class TestRetryAfter:
    DATE = "Tue, 05 May 2026 10:00:00 GMT"

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"retry-after": "20"}, 20.0),
            ({"retry-after": " 0.5 "}, 0.5),
            ({"retry-after": "-3"}, 0.0),
            ({"retry-after": "20", "retry-after-ms": "1500"}, 1.5),
            ({"retry-after": "20", "retry-after-ms": "soon"}, 20.0),
            ({"retry-after": "Tue, 05 May 2026 10:00:30 GMT", "date": DATE}, 30.0),
            ({"retry-after": "Tue, 05 May 2026 12:00:30 +0200", "date": DATE}, 30.0),
            ({"retry-after": "Tue, 05 May 2026 09:00:00 GMT", "date": DATE}, 0.0),
            ({"retry-after": "Tue, 05 May 2020 09:00:00 GMT"}, 0.0),
        ],
    )
    def test_it_is_seconds_or_a_date(self, headers: dict[str, str], seconds: float) -> None:
        assert retry_after_s(headers) == seconds

    def test_a_date_is_compared_with_the_clock_where_the_reply_has_no_date(self) -> None:
        wait = retry_after_s({"retry-after": "Tue, 05 May 2099 09:00:00 GMT"})
        assert wait is not None
        assert wait > 1e6

    @pytest.mark.parametrize(
        "value", ["", ENDLESS_DATE, "soon", "nan", "inf", "1e999", "Tue, 05 Mai 10:00", "5 minutes"]
    )
    def test_what_cannot_be_read_is_nothing(self, value: str) -> None:
        assert retry_after_s({"retry-after": value}) is None

    @settings(max_examples=100)
    @given(HEADER_VALUES, HEADER_VALUES)
    def test_no_header_breaks_it(self, value: str, date: str) -> None:
        wait = retry_after_s({"retry-after": value, "date": date})
        assert wait is None or 0 <= wait < float("inf")
