"use strict";

// Shows what the walk was given: the facts that the filter judged and β; `marks` are those of relation types.
function showReasons(DATA, { relationSwatch, colourOf, relationWord }) {
  function showFacts() {
    const outcome = DATA.fact_outcome ? `Outcome: ${clean(DATA.fact_outcome)}. ` : "";
    byId("facts-part").hidden = !DATA.facts.length && !outcome;
    const words = DATA.facts.length ? "The number tells how close a fact is to the question." : "No fact was close to the question.";
    byId("fact-outcome").textContent = outcome + words;
    for (const kept of [true, false]) {
      const facts = DATA.facts.filter((fact) => fact.kept === kept);
      const list = make("ul", { class: `facts ${kept ? "kept" : "rejected"}` }, ...facts.map(factRow));
      if (facts.length) byId("facts").append(list);
    }
  }

  function factRow(fact) {
    const relation = make("span", { class: "relation" }, relationSwatch(fact.relation), ` ${relationWord(fact.relation)}`);
    const words = isolated(`${fact.subject} — ${fact.predicate} — ${fact.object}`);
    const statement = make("span", { class: "statement" }, words, " ", relation);
    return make("li", {}, make("span", { class: "verdict" }, fact.kept ? "kept" : "rejected"), statement,
      make("span", { class: "number" }, fact.score.toFixed(2)));
  }

  function showBeta() {
    byId("beta-part").hidden = !DATA.beta;
    for (const [name, shares] of Object.entries(DATA.beta || {})) {
      const words = name === "entity_entity" ? "between names" : "from names to passages";
      const uniform = 1 / Object.keys(shares).length;
      const rows = Object.entries(shares).flatMap(([relation, share]) => betaRow(relation, share, uniform));
      byId("beta").append(make("div", { class: "bars" }, make("h3", {}, words), ...rows));
    }
  }

  function betaRow(relation, share, uniform) {
    const [bar, line] = [make("i"), make("b")];
    bar.style.width = `${share * 100}%`;
    bar.style.background = colourOf(relation);
    line.style.left = `${uniform * 100}%`;
    const words = `${share.toFixed(2)}; an even share is ${uniform.toFixed(2)}`;
    return [make("span", {}, relationSwatch(relation), ` ${relationWord(relation)}`),
      make("span", { class: "bar", role: "img", "aria-label": words, title: words }, bar, line),
      make("span", { class: "number" }, share.toFixed(2))];
  }

  showFacts();
  showBeta();
}
