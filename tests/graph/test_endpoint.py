from __future__ import annotations

import httpx
import openai
import pytest

from graph.endpoint import as_mara_error, timeout_s
from graph.errors import BadInput, MaraError, ModelUnavailable, TransportFault

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/embeddings")


def status_error(status: int) -> openai.APIStatusError:
    return openai.APIStatusError("no", response=httpx.Response(status, request=REQUEST), body=None)


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
