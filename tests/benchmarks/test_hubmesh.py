from __future__ import annotations

from benchmarks.hubmesh import measure, table

QUESTIONS = [{"question": f"q{number}", "gold_ids": ["a", "b"]} for number in range(12)]


class TestMeasure:
    def test_asks_in_turns_of_ten_after_one_question_to_warm_up(self) -> None:
        asked: list[str] = []

        def system(name: str) -> list[str]:
            asked.append(name)
            return ["a", "x", "b"]

        def other(name: str) -> list[str]:
            asked.append(f"other {name}")
            return ["b", "a"]

        rows = measure(QUESTIONS, {"one": system, "other": other}, lambda: asked.append("forget"))
        names = [each["question"] for each in QUESTIONS]
        assert asked == [
            *("q0", "other q0"),
            *("forget", *names[:10], "forget", *(f"other {name}" for name in names[:10])),
            *("forget", *names[10:], "forget", *(f"other {name}" for name in names[10:])),
        ]
        assert [row["2"] for row in rows["one"]] == [0.5] * 12
        assert [row["5"] for row in rows["other"]] == [1.0] * 12


class TestTable:
    def test_gives_mean_recall_and_median_time(self) -> None:
        rows = {"mara": [{"2": 1.0, "5": 1.0, "10": 1.0, "ms": 4.0}, {"2": 0.5, "5": 1.0, "10": 1.0, "ms": 6.0}]}
        assert table(rows).splitlines()[2] == "| mara | 0.750 / 1.000 / 1.000 | 5.0 |"
