"""Where `alone` was; see `graph.storage.lock`."""

from __future__ import annotations

from graph.storage.lock import alone as alone
