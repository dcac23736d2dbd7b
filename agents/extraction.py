"""Extraction of many passages: each is asked for until it is done or failed for a reason; and what that would take."""

from __future__ import annotations

import contextvars
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import fmean
from typing import Literal, TypeVar

from agents.chat.reply_cache import KeptReply, ReplyCache
from agents.chat.throttle import Throttle
from agents.chat.usage import Prices, Usage
from agents.extractor import ChatExtractor, Extractor, estimate_chat_tokens
from agents.roles import Feedback
from graph.errors import MalformedReply, ModelUnavailable, TransportCause, TransportFault
from graph.schema import Extraction, Passage

FailureKind = Literal["malformed reply", "refused request"] | TransportCause

REFUSED_REQUESTS = frozenset({400, 413, 422})
"""Statuses that may be about one passage (too long, a content filter); any other refusal stops the run."""


@dataclass(frozen=True, slots=True)
class Retries:
    """The limits of retries: how often a passage is asked again, and how long to wait before.

    Attributes:
        malformed: after replies that cannot be used, with the reason fed back; at once.
        transport: after timeouts, lost connections, server errors and broken replies, taken together.
        rate_limit: after status 429; more patient, since it says nothing of the passage.
        first_wait_s: before the first retry after a fault; doubled each time, less a random part of up to half.
        longest_wait_s: the most that is waited, whatever the server asks for.
        give_up_after: passages in a row without a reply that stop the run. Once a reply came, refused passages do not
            count.
    """

    malformed: int = 2
    transport: int = 4
    rate_limit: int = 12
    first_wait_s: float = 1.0
    longest_wait_s: float = 120.0
    give_up_after: int = 10

    def wait_s(self, faults: int, retry_after_s: float | None) -> float:
        """Return the seconds to wait after so many faults, no less than the server asks for."""
        backoff = self.first_wait_s * 2.0 ** min(max(faults - 1, 0), 30) * random.uniform(0.5, 1.0)
        return min(self.longest_wait_s, max(backoff, retry_after_s or 0.0))


@dataclass(frozen=True, slots=True)
class Extracted:
    """The outcome of one passage.

    Attributes:
        extraction: what was found; None where the passage failed.
        kind: of the failure; None where there is none.
        failure: the reason, in words.
        attempts: how often the extractor was asked; 0 where another passage's reply or a kept one served.
        cached: whether the extraction comes from a kept reply, or from that to another passage of the same content.
        retries: how often it was asked again, by what had gone wrong.
        usage: what was spent in this run, failed attempts included.
    """

    passage_id: str
    extraction: Extraction | None
    kind: FailureKind | None = None
    failure: str = ""
    attempts: int = 0
    cached: bool = False
    retries: Mapping[FailureKind, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ExtractionTotals:
    """The outcome of many passages: ``done`` (``cached`` among them) and all ``failed`` add up to ``passages``."""

    passages: int = 0
    done: int = 0
    cached: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    retries: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @staticmethod
    def of(results: Sequence[Extracted]) -> ExtractionTotals:
        """Return the totals of some passages."""
        failed = Counter(str(one.kind) for one in results if one.kind)
        retries = Counter[str]()
        for one in results:
            retries.update({str(kind): count for kind, count in one.retries.items()})
        cached, usage = sum(one.cached for one in results), sum((one.usage for one in results), Usage())
        return ExtractionTotals(len(results), len(results) - failed.total(), cached, dict(failed), dict(retries), usage)


class ExtractionRun:
    """One run of an extractor over many passages: what its workers share, for the length of a ``with`` block.

    Leaving the block waits for the requests that are on their way (their replies are kept) and sends no others.
    """

    def __init__(
        self,
        extractor: Extractor,
        *,
        concurrency: int = 1,
        cache: ReplyCache | None = None,
        throttle: Throttle | None = None,
        retries: Retries | None = None,
    ) -> None:
        """``concurrency`` requests are on their way at most; with 1, all happens in the caller's thread."""
        self.extractor = extractor
        self.concurrency = max(1, concurrency)
        self.cache = cache
        self.throttle = throttle or Throttle()
        self.retries = retries or Retries()
        self._pool = ThreadPoolExecutor(self.concurrency, "extract") if self.concurrency > 1 else None
        self._at_once = 2 * self.concurrency if self._pool else 1
        self._worked = cache is not None and cache.knows(extractor.name)
        self._failed_in_a_row = 0
        self._lock = threading.Lock()

    def __enter__(self) -> ExtractionRun:
        return self

    def __exit__(self, *exception: object) -> None:
        self.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def cancel(self) -> None:
        """Stop the run, from any thread: a passage that waits to be asked for raises Cancelled, and none is sent."""
        self.throttle.cancel()

    def extract_all(
        self, passages: Sequence[Passage], on_done: Callable[[Extracted], None] | None = None
    ) -> list[Extracted]:
        """Return what became of each passage, in their order; ``on_done`` is told of each as it ends, in this thread.

        Workers run in copies of the caller's context, so that traces of the model calls nest. Any error, an
        interruption by the user included, stops the run.

        Raises:
            ModelUnavailable: the endpoint refuses the key or the model, or fails every passage.
            Cancelled: the run was stopped.
        """
        results: dict[int, Extracted] = {}
        running: dict[Future[Extracted], int] = {}
        waiting = iter(enumerate(passages))
        try:
            while True:
                for place, passage in islice(waiting, self._at_once - len(running)):
                    running[self._start(passage)] = place
                if not running:
                    return [results[place] for place in range(len(passages))]
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = results[running.pop(future)] = future.result()
                    if on_done is not None:
                        on_done(result)
        except BaseException:
            for future in running:
                future.cancel()
            self.cancel()
            raise

    def extract(self, passage: Passage) -> Extracted:
        """Return what became of a passage. Raises as `extract_all`."""
        if not isinstance(self.extractor, ChatExtractor):
            return self._ask_until_done(passage, b"")
        key = self.extractor.key(passage)
        return self._kept(self.extractor, passage, key) or self._ask_until_done(passage, key)

    def _start(self, passage: Passage) -> Future[Extracted]:
        if self._pool is not None:
            return self._pool.submit(contextvars.copy_context().run, self.extract, passage)
        done: Future[Extracted] = Future()
        done.set_result(self.extract(passage))
        return done

    def _kept(self, extractor: ChatExtractor, passage: Passage, key: bytes) -> Extracted | None:
        """The extraction of a kept reply, read again; None where none can be read."""
        if self.cache is None or (reply := self.cache.get(key)) is None:
            return None
        try:
            return Extracted(passage.id, extractor.read(reply.raw, passage), cached=True)
        except MalformedReply:
            self.cache.reject(key)
            return None

    def _ask_until_done(self, passage: Passage, key: bytes) -> Extracted:
        attempts = _Attempts(passage.id, self.retries)
        feedback: Feedback | None = None
        while True:
            self.throttle.acquire()
            try:
                extraction, raw = self._ask(passage, feedback, attempts)
            except MalformedReply as reply:
                self._answered()
                if not attempts.may_retry("malformed reply"):
                    return attempts.result("malformed reply", reply)
                feedback = Feedback(reply.reason, reply.raw)
            except TransportFault as fault:
                will_retry = attempts.may_retry(fault.cause)
                self._wait(fault, attempts, will_retry)
                if not will_retry:
                    self._failed(fault)
                    return attempts.result(fault.cause, fault)
            except ModelUnavailable as refusal:
                if refusal.status not in REFUSED_REQUESTS:
                    raise
                self._failed(refusal)
                return attempts.result("refused request", refusal)
            else:
                self._answered()
                if raw is not None and self.cache is not None:
                    self.cache.put(key, self.extractor.name, KeptReply(raw, attempts.usage))
                return replace(attempts.result(), extraction=extraction)

    def _ask(self, passage: Passage, feedback: Feedback | None, attempts: _Attempts) -> tuple[Extraction, str | None]:
        """Ask once; return the extraction, and the reply where a model gave it. ``attempts`` gets what it took."""
        attempts.count += 1
        if not isinstance(self.extractor, ChatExtractor):
            return self.extractor.extract(passage, feedback), None
        start = self.throttle.clock.now()
        usage = Usage(requests=1)
        try:
            reply = self.extractor.ask(passage, feedback)
            usage = reply.usage
        finally:
            attempts.usage += usage + Usage(seconds=self.throttle.clock.now() - start)
        if self.throttle.tokens_per_minute is not None:
            guess = self.extractor.estimate_prompt_tokens(passage) + estimate_chat_tokens(reply.raw)
            self.throttle.spend(guess if usage.unknown else usage.prompt_tokens + usage.completion_tokens)
        return self.extractor.read(reply.text(), passage), reply.raw

    def _answered(self) -> None:
        with self._lock:
            self._worked, self._failed_in_a_row = True, 0

    def _failed(self, error: ModelUnavailable) -> None:
        """Count a passage that was refused or could not be asked for; raise ModelUnavailable where that is too many.

        Once a reply came, if in an earlier run, what is refused is refused for what it is.
        """
        with self._lock:
            is_its_own = self._worked and not isinstance(error, TransportFault)
            self._failed_in_a_row = 0 if is_its_own else self._failed_in_a_row + 1
            if self._failed_in_a_row >= self.retries.give_up_after > 0:
                message = f"{self._failed_in_a_row} passages in a row failed: {error.message}"
                raise ModelUnavailable(message, error.hint, status=error.status)

    def _wait(self, fault: TransportFault, attempts: _Attempts, will_retry: bool) -> None:
        """Wait before the next attempt; where the server asks for time, all workers do, whatever they ask next."""
        seconds = self.retries.wait_s(attempts.faults, fault.retry_after_s)
        if fault.cause == "rate limit" or fault.retry_after_s is not None:
            self.throttle.pause(seconds)
        elif will_retry:
            self.throttle.sleep(seconds)


class _Attempts:
    """The attempts at one passage so far."""

    def __init__(self, passage_id: str, retries: Retries) -> None:
        self.usage = Usage()
        self.count = 0
        self._passage_id = passage_id
        self._limits = retries
        self._retries: Counter[FailureKind] = Counter()

    @property
    def faults(self) -> int:
        """How often the endpoint failed."""
        return self._retries.total() - self._retries["malformed reply"]

    def may_retry(self, kind: FailureKind) -> bool:
        """Whether another attempt is due after this kind of failure; if so, it is counted."""
        limits = {"malformed reply": self._limits.malformed, "rate limit": self._limits.rate_limit}
        if kind in limits:
            left = limits[kind] - self._retries[kind]
        else:
            left = self._limits.transport - (self.faults - self._retries["rate limit"])
        if left > 0:
            self._retries[kind] += 1
        return left > 0

    def result(self, kind: FailureKind | None = None, reason: Exception | None = None) -> Extracted:
        """The outcome of the passage so far, without its extraction."""
        failure = "" if reason is None else str(reason)
        retries = dict(self._retries)
        return Extracted(self._passage_id, None, kind, failure, self.count, retries=retries, usage=self.usage)


T = TypeVar("T")

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """The passages still to ask for, and their cost; ``kept``, ``repeated`` and ``to_ask`` make up ``passages``.

    Attributes:
        kept: passages that a kept reply serves, those of the sample included.
        repeated: passages of the same title and text as one that is asked for.
        to_ask: passages that a model would be asked for.
        sample: what became of the sample, and what asking it has just cost.
        requests: expected, with as many retries as the sample needed.
        prompt_tokens: expected; without a sample, counted by a rule of thumb from the text.
        completion_tokens: expected; None where nothing tells it.
        seconds: expected, at the run's concurrency and limits; None where nothing tells it.
        cost: of what is expected, without the sample's; None without prices or tokens.
    """

    passages: int
    kept: int
    repeated: int
    to_ask: int
    sample: ExtractionTotals
    requests: int
    prompt_tokens: int
    completion_tokens: int | None
    seconds: float | None
    cost: float | None


def estimate_extraction(
    run: ExtractionRun, passages: Sequence[Passage], *, sample: int = 5, prices: Prices | None = None
) -> Estimate:
    """Return what the extraction of some passages would take.

    The sample, spread evenly over the passages, is asked through the run, so its replies are kept; kept ones are not
    asked again and tell what they took then: what is left takes as much a passage. An extractor that asks no model is
    only timed.

    Args:
        run: its extractor is asked, with its cache and at its concurrency.
        passages: all of them, those already extracted left out by the caller.
        sample: how many to ask; 0 asks nothing, and then only kept replies and the texts tell anything.
        prices: the user's.

    Raises:
        ModelUnavailable: the endpoint refuses the key or the model.
    """
    if isinstance(run.extractor, ChatExtractor):
        return _estimate_asking(run, run.extractor, passages, sample, prices)
    start = run.throttle.clock.now()
    timed = ExtractionTotals.of(run.extract_all(_spread(passages, sample)))
    each = (run.throttle.clock.now() - start) / timed.passages if timed.passages else None
    seconds = each * len(passages) if each is not None else None
    return Estimate(len(passages), 0, 0, 0, timed, 0, 0, 0, seconds, 0.0 if prices else None)


def _estimate_asking(
    run: ExtractionRun, extractor: ChatExtractor, passages: Sequence[Passage], sample: int, prices: Prices | None
) -> Estimate:
    keys = [extractor.key(passage) for passage in passages]
    distinct = dict(zip(keys, passages, strict=True))
    sampled = _spread(list(distinct), sample)
    results = run.extract_all([distinct[key] for key in sampled])
    took = [_took(run, key, result) for key, result in zip(sampled, results, strict=True)]
    known = run.cache.known(distinct) if run.cache is not None else set()
    left = [passage for key, passage in distinct.items() if key not in known]
    cached = sum(key in known for key in keys)

    told = [usage for usage in took if usage.prompt_tokens and not usage.unknown]
    prompt = sum(map(extractor.estimate_prompt_tokens, left))
    completion, seconds, requests = (None if left else 0), None, len(left)
    if told:
        prompt = round(len(left) * fmean(usage.prompt_tokens for usage in told))
        completion = round(len(left) * fmean(usage.completion_tokens for usage in told))
    if took:
        requests = round(len(left) * fmean(usage.requests for usage in took))
        seconds = len(left) * fmean(usage.seconds for usage in took) / run.concurrency
        seconds = max(seconds, _least_seconds(run.throttle, requests, prompt + (completion or 0)))
    return Estimate(
        passages=len(passages),
        kept=cached,
        repeated=len(passages) - cached - len(left),
        to_ask=len(left),
        sample=ExtractionTotals.of(results),
        requests=requests,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=seconds,
        cost=prices.cost(prompt, completion) if prices and completion is not None else None,
    )


def _took(run: ExtractionRun, key: bytes, result: Extracted) -> Usage:
    """The cost of asking for a passage: just now, or when its kept reply was asked for."""
    reply = run.cache.get(key) if run.cache is not None and result.cached else None
    return reply.usage if reply is not None else result.usage


def _least_seconds(throttle: Throttle, requests: float, tokens: float) -> float:
    """How long the user's limits a minute alone make it take."""
    by_requests = requests / throttle.requests_per_minute if throttle.requests_per_minute else 0.0
    by_tokens = tokens / throttle.tokens_per_minute if throttle.tokens_per_minute else 0.0
    return _MINUTE_S * max(by_requests, by_tokens)


def _spread(items: Sequence[T], count: int) -> list[T]:
    """So many of the items, at even distances."""
    count = min(count, len(items))
    return [items[(2 * i + 1) * len(items) // (2 * count)] for i in range(count)]
