from __future__ import annotations

import subprocess
import sys

from graph.schema import Fact, RelationType, entity_id, stable_id


def test_ids_are_the_same_in_every_process_and_on_every_machine() -> None:
    program = "from graph.schema import stable_id; print(stable_id('passage', 'a.txt', 'Nissan'))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == stable_id("passage", "a.txt", "Nissan") == "passage-c49cb2f8b194d0df6da51c30"


def test_the_parts_of_an_id_are_kept_apart() -> None:
    assert stable_id("passage", "ab", "c") != stable_id("passage", "a", "bc") != stable_id("fact", "a", "bc")
    assert stable_id("passage", "\ud800") != stable_id("passage", "\ud801"), "text that is no Unicode has one too"


def test_spellings_of_one_name_are_one_entity_and_accents_make_another() -> None:
    assert entity_id("  NISSAN ") == entity_id("Nissan") != entity_id("Nissán")


def test_a_facts_id_depends_on_the_normal_form_of_its_parts_and_on_its_type() -> None:
    fact = Fact("Nissan", "founded", "1933", RelationType.TEMPORAL)
    assert fact.text == "Nissan founded 1933"
    assert fact.id == Fact("NISSAN", " Founded", "1933.", RelationType.TEMPORAL).id
    assert fact.id != Fact("Nissan", "founded", "1933", RelationType.ATTRIBUTION).id
    assert fact.id != Fact("1933", "founded", "Nissan", RelationType.TEMPORAL).id
