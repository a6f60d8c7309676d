// All runs of the folder: what they are doing, how far they are, and which are to be compared.

import { compareAddress } from "./addresses.js";
import { getJson, isSnapshot } from "./api.js";
import { followChanges } from "./change_stream.js";
import { choice, element, emptyState, replaceIfNew, select } from "./elements.js";
import { keepFresh } from "./refresh.js";
import { runRow } from "./run_row.js";

const STATES = ["running", "finished", "interrupted", "diverged", "starved", "unreadable"];
const MOST_COMPARED = 20;
const MOST_SHOWN = 300;
const COLUMNS = ["", "Run", "State", "Progress", "Loss", "Strategy", "Rounds", "Clients", "Changed"];

export function openRunsPage(main, shell) {
  shell.setTrail(["Runs"]);
  const filter = { text: "", state: "", strategy: "" }, ticked = new Set();
  let answer = null, shown = MOST_SHOWN;

  const folder = element("p", { class: "quiet path" });
  const chips = element("div"), strategies = element("div"), list = element("div", { class: "runs" });
  const search = element("input", {
    type: "search", placeholder: "Find a run", "aria-label": "Find a run by name or file", autocomplete: "off",
    oninput: () => { filter.text = search.value.toLowerCase(); draw(); },
  });
  const compareBar = element("div", { class: "compare-bar", hidden: true });
  const head = element("div", { class: "page-head" }, element("div", {}, element("h1", { text: "Runs" }), folder));
  main.append(head, element("div", { class: "filters" }, search, chips, strategies), list, compareBar);

  function matches(run) {
    if (filter.state && run.state !== filter.state) return false;
    if (filter.strategy && run.strategy !== filter.strategy) return false;
    return `${run.name} ${run.file} ${run.id} ${run.strategy ?? ""}`.toLowerCase().includes(filter.text);
  }

  function drawFilters() {
    const counts = Object.fromEntries(STATES.map((state) => [state,
      answer.runs.filter((run) => run.state === state).length]));
    const present = STATES.filter((state) => counts[state]);
    replaceIfNew(chips, [counts, filter.state], () => choice("State",
      [["", `All ${answer.runs.length}`], ...present.map((state) => [state, `${state} ${counts[state]}`])],
        filter.state,
      (state) => { filter.state = state; draw(); }));
    const names = [...new Set(answer.runs.map((run) => run.strategy).filter(Boolean))].sort();
    replaceIfNew(strategies, names, () => names.length < 2 ? element("span") : select("Strategy",
      [["", "All strategies"], ...names.map((name) => [name, name])], filter.strategy,
      (name) => { filter.strategy = name; draw(); }));
  }

  function draw() {
    if (!answer) return;
    folder.textContent = answer.folder ?? "";
    drawFilters();
    const runs = answer.runs.filter(matches).sort(latestFirst);
    if (!answer.runs.length) {
      list.replaceChildren(emptyState("No runs here yet",
        "Start one in another terminal, for example `asyncfed run regression`. It appears here by itself."));
    } else if (!runs.length) {
      list.replaceChildren(emptyState("No run matches", "Change the words or choose another state or strategy."));
    } else {
      drawRows(runs);
    }
    drawCompareBar();
  }

  function drawRows(runs) {
    let table = list.querySelector("table");
    if (!table) {
      const names = COLUMNS.map((text) => element("th", { scope: "col", text, "aria-label": text || "Compare" }));
      table = element("table", { class: "runs-table" }, element("thead", {}, element("tr", {}, names)),
        element("tbody"));
      list.replaceChildren(table);
    }
    const body = table.tBodies[0], known = new Map([...body.rows].map((row) => [row.dataset.id, row]));
    const rows = runs.slice(0, shown).map((run) => {
      const text = JSON.stringify(run), old = known.get(run.id);
      if (old?.shownRun === text) {
        old.refreshAge();
        return old;
      }
      const row = runRow(run, ticked.has(run.id), isSnapshot ? null : tick);
      row.shownRun = text;
      return row;
    });
    body.replaceChildren(...rows);
    list.querySelector(".more")?.remove();
    if (runs.length > shown) {
      list.append(element("button", {
        class: "more", type: "button", text: `Show more (${runs.length - shown} are not shown)`,
        onclick: () => { shown += MOST_SHOWN; draw(); },
      }));
    }
  }

  function tick(id, isTicked) {
    if (isTicked) ticked.add(id);
    else ticked.delete(id);
    drawCompareBar();
  }

  function drawCompareBar() {
    const ids = [...ticked].filter((id) => answer.runs.some((run) => run.id === id)).slice(0, MOST_COMPARED);
    compareBar.hidden = ids.length === 0;
    const text = ids.length === 1 ? "1 run ticked. Tick another one to compare." : `${ids.length} runs ticked`;
    compareBar.replaceChildren(element("span", { text }),
      element("button", { type: "button", class: "plain", text: "Clear", onclick: () => {
        ticked.clear();
        for (const box of list.querySelectorAll("input:checked")) box.checked = false;
        drawCompareBar();
      } }),
      element("button", { type: "button", class: "main-action", text: "Compare", disabled: ids.length < 2,
        onclick: () => {
        location.hash = compareAddress(ids);
      } }));
  }

  const fresh = keepFresh(null, async () => {
    answer = await getJson("/api/runs");
    draw();
  }, (error) => error && !answer && shell.fail(error));
  const ages = setInterval(draw, 15_000);
  const unfollow = followChanges([], {
    folder: () => fresh.changed(), alert: (fired) => shell.alert(fired),
    connected: (isConnected) => {
      shell.connected(isConnected);
      if (isConnected) fresh.changed();
    },
  });
  return () => {
    unfollow();
    fresh.close();
    clearInterval(ages);
  };
}

function latestFirst(one, other) {
  const running = (run) => (run.state === "running" ? 1 : 0);
  return running(other) - running(one) || other.changed - one.changed || one.id.localeCompare(other.id);
}
