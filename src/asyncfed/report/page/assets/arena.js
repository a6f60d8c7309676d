// Filters, sorts and draws the arena's results, which are in the page itself.

const data = JSON.parse(document.getElementById("arena-data").textContent);
const MEASURES = { time: "Time", bytes: "Bytes", energy: "Energy", worst_time: "Worst clients" };
const MOST = 4; // the logarithm to base 2 of the ratio that is drawn darkest

// ---- rows -------------------------------------------------------------------------------------------------------

const rows = data.rows.map(([cell, strategy, verdict, reason, left, rate, steps, toml, times, ...measures]) => ({
  cell, strategy, verdict: data.texts[verdict], reason: data.texts[reason], left, rate, steps, toml, times,
  ...Object.fromEntries(data.measures.map((name, i) => {
    const [reached, mean, low, high, ratio, ratioLow, ratioHigh, toBest, rank, group] = measures[i];
    return [name, { reached, mean, low, high, ratio, ratioLow, ratioHigh, toBest, rank, group }];
  })),
}));
const at = new Map(rows.map((row) => [row.cell * data.strategies.length + row.strategy, row]));
const rowOf = (cell, strategy) => at.get(cell * data.strategies.length + strategy);

// ---- state ------------------------------------------------------------------------------------------------------

const OPTIONS = {
  measure: data.measures,
  problem: distinct(data.cells.map((cell) => cell.problem)),
  delays: distinct(data.cells.map((cell) => cell.delays)),
  split: distinct(data.cells.map((cell) => cell.split)),
  timing: distinct(data.strategies.map((one) => one.timing)),
  family: distinct(data.strategies.map((one) => one.family)),
};
const everything = () => Object.fromEntries(Object.entries(OPTIONS).map(([name, all]) => [name, new Set(name === "measure" ? [all[0]] : all)]));
let state = { ...everything(), sort: "rank", down: false, cellSort: "rank", cellDown: false, cell: 0, strategy: null };
const measure = () => [...state.measure][0];

const shownCells = () => data.cells.map((cell, i) => ({ ...cell, i })).filter((cell) => ["problem", "delays", "split"].every((name) => state[name].has(cell[name])));
const shownStrategies = () => data.strategies.map((one, i) => ({ ...one, i })).filter((one) => state.timing.has(one.timing) && state.family.has(one.family));

// ---- numbers ----------------------------------------------------------------------------------------------------

function scaled(value, units) {
  if (value === null) return "";
  const [factor, unit] = units.find(([factor]) => Math.abs(value) >= factor) || units[units.length - 1];
  return `${digits(value / factor)} ${unit}`;
}
const UNITS = {
  time: [[86400 * 3, "d"], [7200, "h"], [300, "min"], [1, "s"]].map(([factor, unit]) => [factor, unit]),
  bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  energy: [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"]],
};
const SECONDS = { d: 86400, h: 3600, min: 60, s: 1 };
function shown(name, value) {
  if (value === null) return "";
  if (name !== "time" && name !== "worst_time") return scaled(value, UNITS[name]);
  const [, unit] = UNITS.time.find(([from]) => value >= from) || [0, "s"];
  return `${digits(value / SECONDS[unit])} ${unit}`;
}
const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// ---- over all cells ---------------------------------------------------------------------------------------------

function overall() {
  const cells = shownCells(), name = measure();
  const all = data.strategies.map((one, i) => {
    const own = cells.map((cell) => rowOf(cell.i, i)).filter(Boolean);
    const ratio = own.length ? median(own.map((row) => row[name].toBest ?? Infinity)) : Infinity;
    return {
      ...one, i,
      rank: own.length ? own.reduce((sum, row) => sum + row[name].rank, 0) / own.length : NaN,
      ratio: Number.isFinite(ratio) ? ratio : null,
      reached: own.filter((row) => row[name].mean !== null).length,
      first: own.filter((row) => row[name].group === 1).length,
      cells: own.length,
    };
  });
  const critical = data.critical / Math.sqrt(Math.max(cells.length, 1));
  const best = Math.min(...all.map((one) => one.rank));
  all.forEach((one) => { one.together = one.rank <= best + critical; });
  $("critical").textContent = cells.length ? ` (${digits(critical)} for ${cells.length} cells)` : "";
  return all.filter((one) => state.timing.has(one.timing) && state.family.has(one.family));
}

const COLUMNS = [
  ["name", "Strategy", "", (one) => one.name],
  ["rank", "Mean rank", "number", (one) => one.rank],
  ["ratio", "Times the best, median", "number", (one) => one.ratio ?? Infinity],
  ["reached", "Cells reached", "number", (one) => -one.reached],
  ["first", "In the first group", "number", (one) => -one.first],
  ["timing", "Timing", "", (one) => one.timing],
  ["family", "Family", "", (one) => one.family],
  ["year", "Year", "number", (one) => one.year],
];

function sorted(list, columns, key, down) {
  const [, , , value] = columns.find(([name]) => name === key);
  const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
  return [...list].sort((a, b) => (down ? order(b, a) : order(a, b)));
}

function head(columns, key, down) {
  return columns.map(([name, title, kind, value]) => {
    const sort = name === key ? ` aria-sort="${down ? "descending" : "ascending"}"` : "";
    return `<th scope="col" class="${kind}"${sort}>${value ? `<button type="button" data-sort="${name}">${title}</button>` : title}</th>`;
  }).join("");
}

function drawOverall() {
  const list = sorted(overall(), COLUMNS, state.sort, state.down), most = data.strategies.length;
  const body = list.map((one) => `<tr data-strategy="${one.i}"${one.i === state.strategy ? ' class="chosen"' : ""}>
    <th scope="row"><button type="button" class="name" title="${html(one.summary)}">${html(one.name)}</button></th>
    <td class="number">${Number.isNaN(one.rank) ? "" : `<span class="bar" style="width:${(5 * one.rank / most).toFixed(2)}rem"></span>${one.rank.toFixed(1)}`} <span class="dot" title="cannot be told from the best">${one.together ? "●" : "&nbsp;&nbsp;"}</span></td>
    <td class="number">${times(one.ratio)}</td><td class="number">${one.reached} / ${one.cells}</td><td class="number">${one.first} / ${one.cells}</td>
    <td>${html(one.timing)}</td><td>${html(one.family)}</td><td class="number">${one.year}</td></tr>`).join("");
  $("ranking").innerHTML = `<table><thead><tr>${head(COLUMNS, state.sort, state.down)}</tr></thead><tbody>${body}</tbody></table>`;
  return list;
}

// ---- cell by cell -----------------------------------------------------------------------------------------------

const darkness = matchMedia("(prefers-color-scheme: dark)");
const LIGHT = [[226, 245, 236], [127, 205, 176], [44, 150, 178], [45, 88, 152], [42, 28, 88]];
const DARK = [[214, 248, 190], [88, 190, 140], [33, 130, 142], [40, 78, 120], [48, 34, 70]];
function colour(share) {
  const stops = darkness.matches ? DARK : LIGHT, place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2), part = place - low;
  return `rgb(${stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * part)).join(" ")})`;
}

function drawHeat(list) {
  const cells = shownCells(), name = measure();
  const spans = (keys) => {
    const found = [];
    for (const cell of cells) {
      const key = keys.map((part) => cell[part]).join("/");
      if (found.length && found[found.length - 1].key === key) found[found.length - 1].count += 1;
      else found.push({ key, word: cell[keys[keys.length - 1]], count: 1 });
    }
    return found.map((one) => `<th colspan="${one.count}" class="edge" title="${html(words(one.word))}">${html(one.count > 1 || keys.length > 1 ? words(one.word) : words(one.word).slice(0, 5))}</th>`).join("");
  };
  const heads = `<tr><td></td>${spans(["problem"])}</tr><tr class="delays"><td></td>${spans(["problem", "delays"])}</tr><tr class="splits"><td></td>${cells.map((cell) => `<th title="${html(cell.split)}">${html(cell.split[0])}</th>`).join("")}</tr>`;
  const body = list.map((one) => `<tr${one.i === state.strategy ? ' class="chosen"' : ""}><th scope="row">${html(one.name)}</th>${cells.map((cell) => {
    const row = rowOf(cell.i, one.i), ratio = row && row[name].toBest;
    const look = ratio === null || ratio === undefined ? ' class="missed"' : ` style="background:${colour(Math.log2(Math.max(ratio, 1)) / MOST)}"`;
    return `<td data-cell="${cell.i}" data-strategy="${one.i}"${look}></td>`;
  }).join("")}</tr>`).join("");
  $("heat").innerHTML = `<table><thead>${heads}</thead><tbody>${body}</tbody></table>`;
  $("ramp").style.background = `linear-gradient(to right, ${[0, .25, .5, .75, 1].map(colour).join(", ")})`;
}

function describe(row) {
  const cell = data.cells[row.cell], one = data.strategies[row.strategy], name = measure(), found = row[name];
  const lines = [`<b>${html(one.name)}</b> in ${html([cell.problem, cell.delays, cell.split].map(words).join(", "))}`];
  if (found.mean !== null) lines.push(`${MEASURES[name]}: ${shown(name, found.mean)}${found.low === null ? "" : ` (${shown(name, found.low)} to ${shown(name, found.high)})`}`);
  if (found.ratio !== null && row.strategy !== data.strategies.findIndex((s) => s.name === data.baseline)) lines.push(`${times(found.ratio)} ${html(data.baseline)}${found.ratioLow === null ? "" : ` (${digits(found.ratioLow)} to ${digits(found.ratioHigh)})`}`);
  if (found.toBest !== null) lines.push(`${times(found.toBest)} the best of the cell`);
  lines.push(`rank ${digits(found.rank)}${found.group === null ? "" : `, group ${found.group}`}; reached on ${found.reached} of ${data.seeds.length} seeds`);
  if (row.verdict !== "reached") lines.push(`${html(row.verdict)}${row.left === null ? "" : `; ${digits(100 * row.left)} % of the way left`}${row.reason ? `: ${html(row.reason)}` : ""}`);
  lines.push(`rate ${row.rate}, ${row.steps} local step${row.steps === 1 ? "" : "s"}`);
  return lines.join("<br>");
}

function point(event) {
  const square = event.target.closest("td[data-cell]"), tip = $("tip");
  if (!square) { tip.hidden = true; return; }
  const row = rowOf(Number(square.dataset.cell), Number(square.dataset.strategy));
  tip.innerHTML = row ? describe(row) : "";
  tip.hidden = !row;
  const box = tip.getBoundingClientRect(), margin = 12;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + margin, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + margin + box.height > innerHeight ? Math.max(4, event.clientY - box.height - margin) : event.clientY + margin}px`;
}

// ---- one cell ---------------------------------------------------------------------------------------------------

const CELL_COLUMNS = [
  ["name", "Strategy", "", (row) => data.strategies[row.strategy].name],
  ["rank", "Rank", "number", (row) => row[measure()].rank],
  ["group", "Group", "number", (row) => row[measure()].group ?? Infinity],
  ["ratio", "To the baseline", "", (row) => row[measure()].ratio ?? Infinity],
  ["times", "", "number", null],
  ...data.measures.map((name) => [name, MEASURES[name], "number", (row) => row[name].mean ?? Infinity]),
  ["reached", "Reached", "number", (row) => -row[measure()].reached],
  ["left", "Left, %", "number", (row) => row.left ?? Infinity],
  ["rate", "Rate", "number", (row) => row.rate],
  ["steps", "Steps", "number", (row) => row.steps],
  ["run", "Run it", "", null],
];

function whiskers(found, low, high) {
  if (found.ratio === null) return "";
  const x = (value) => (2 + 196 * Math.log(value / low) / Math.log(high / low)).toFixed(1);
  const ends = found.ratioLow === null ? "" : `<line class="range" x1="${x(Math.max(found.ratioLow, low))}" x2="${x(Math.min(found.ratioHigh, high))}" y1="10" y2="10"/>`;
  return `<svg class="whiskers" viewBox="0 0 200 20" preserveAspectRatio="none" aria-hidden="true"><line class="one" x1="${x(1)}" x2="${x(1)}" y1="0" y2="20"/>${ends}<circle cx="${x(Math.min(Math.max(found.ratio, low), high))}" cy="10" r="4"/></svg>`;
}

function drawCell() {
  const name = measure(), chosen = new Set(shownStrategies().map((one) => one.i));
  const own = rows.filter((row) => row.cell === state.cell && chosen.has(row.strategy));
  const ratios = own.map((row) => row[name].ratio).filter((ratio) => ratio !== null);
  const low = Math.min(.5, ...ratios) / 1.5, high = Math.max(2, ...ratios) * 1.5;
  const body = sorted(own, CELL_COLUMNS, state.cellSort, state.cellDown).map((row) => {
    const found = row[name], one = data.strategies[row.strategy];
    const missed = row.verdict === "reached" ? "" : `<small title="${html(row.reason)}">${html(row.verdict)}</small>`;
    return `<tr${row.strategy === state.strategy ? ' class="chosen"' : ""}><th scope="row" title="${html(one.summary)}">${html(one.name)}${missed}</th>
      <td class="number">${digits(found.rank)}</td><td class="number">${found.group === null ? "–" : `<span class="group${found.group === 1 ? " first" : ""}">${found.group}</span>`}</td>
      <td>${whiskers(found, low, high)}</td>
      <td class="number">${found.ratio === null ? "–" : `${times(found.ratio)}${found.ratioLow === null ? "" : `<small>${digits(found.ratioLow, 2)} to ${digits(found.ratioHigh, 2)}</small>`}`}</td>
      ${data.measures.map((key) => `<td class="number">${shown(key, row[key].mean) || "–"}</td>`).join("")}
      <td class="number">${found.reached} / ${data.seeds.length}</td><td class="number">${row.left === null ? "" : digits(100 * row.left, 2)}</td>
      <td class="number">${row.rate}</td><td class="number">${row.steps}</td>
      <td>${row.toml === null ? "" : `<button type="button" data-run="${row.strategy}" aria-label="Run ${html(one.name)} yourself">TOML</button>`}</td></tr>`;
  }).join("");
  $("cell-table").innerHTML = `<table><thead><tr>${head(CELL_COLUMNS, state.cellSort, state.cellDown)}</tr></thead><tbody>${body}</tbody></table>`;
  const cell = data.cells[state.cell];
  $("cell-note").textContent = cell.limit === null ? "" : `runs may take ${shown("time", cell.limit)}`;
  $("choose-cell").value = state.cell;
}

// ---- run it yourself --------------------------------------------------------------------------------------------

function tomlOf(row) {
  const own = data.texts[row.toml].replaceAll("@RATE@", rateText(row.rate)).replaceAll("@STEPS@", row.steps);
  return data.texts[data.cells[row.cell].toml] + "\n" + own;
}
const rateText = (rate) => (Number.isInteger(rate) ? rate.toFixed(1) : String(rate));

function openRun(row) {
  const cell = data.cells[row.cell], one = data.strategies[row.strategy], time = row.times[0];
  showRun(`${one.name} in ${[cell.problem, cell.delays, cell.split].map(words).join(", ")}`,
    `Save this as cell.toml and type: asyncfed run cell.toml. It is the run of seed ${data.seeds[0]}, ` +
    (time === null ? "which did not reach the target." : `which reached the target after ${digits(time, 5)} virtual seconds.`),
    tomlOf(row));
}

function csv() {
  const cells = new Set(shownCells().map((cell) => cell.i)), strategies = new Set(shownStrategies().map((one) => one.i));
  const columns = ["problem", "delays", "split", "strategy", "family", "timing", "verdict", "left", "learning_rate", "local_steps",
    ...data.measures.flatMap((name) => ["", "_low", "_high", "_to_baseline", "_to_baseline_low", "_to_baseline_high", "_to_best", "_reached", "_rank", "_group"].map((end) => name + end))];
  const lines = rows.filter((row) => cells.has(row.cell) && strategies.has(row.strategy)).map((row) => {
    const cell = data.cells[row.cell], one = data.strategies[row.strategy];
    return [cell.problem, cell.delays, cell.split, one.name, one.family, one.timing, row.verdict, row.left, row.rate, row.steps,
      ...data.measures.flatMap((name) => ["mean", "low", "high", "ratio", "ratioLow", "ratioHigh", "toBest", "reached", "rank", "group"].map((key) => row[name][key]))].map(quoted).join(",");
  });
  return [columns.join(","), ...lines].join("\n") + "\n";
}

// ---- controls ---------------------------------------------------------------------------------------------------

function drawFilters() {
  for (const box of document.querySelectorAll(".filter")) {
    const name = box.dataset.filter;
    box.querySelectorAll("button").forEach((button) => button.remove());
    for (const option of OPTIONS[name]) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.textContent = name === "measure" ? MEASURES[option] : words(option);
      chip.setAttribute("aria-pressed", state[name].has(option));
      chip.addEventListener("click", () => choose(name, option));
      box.append(chip);
    }
  }
}

function choose(name, option) {
  const chosen = state[name], all = OPTIONS[name];
  if (name === "measure") state[name] = new Set([option]);
  else if (chosen.size === all.length) state[name] = new Set([option]); // from all, the first click chooses one
  else {
    if (chosen.has(option)) chosen.delete(option);
    else chosen.add(option);
    if (!chosen.size) state[name] = new Set(all);
  }
  draw();
}

function draw() {
  drawFilters();
  const cells = shownCells(), list = drawOverall();
  drawHeat(list);
  if (cells.length && !cells.some((cell) => cell.i === state.cell)) state.cell = cells[0].i;
  drawCell();
  $("count").textContent = `${list.length} of ${data.strategies.length} strategies, ${cells.length} of ${data.cells.length} cells`;
}

function sortBy(key, of, downOf) {
  state[downOf] = state[of] === key ? !state[downOf] : false;
  state[of] = key;
}

data.cells.forEach((cell, i) => $("choose-cell").append(new Option([cell.problem, cell.delays, cell.split].map(words).join(", "), i)));
$("choose-cell").addEventListener("change", (event) => { state.cell = Number(event.target.value); drawCell(); });
$("reset").addEventListener("click", () => { state = { ...state, ...everything(), strategy: null }; draw(); });
$("download").addEventListener("click", () => saveFile("arena.csv", csv(), "text/csv"));
$("ranking").addEventListener("click", (event) => {
  const button = event.target.closest("[data-sort]"), row = event.target.closest("tr[data-strategy]");
  if (button) { sortBy(button.dataset.sort, "sort", "down"); draw(); }
  else if (row) { const one = Number(row.dataset.strategy); state.strategy = state.strategy === one ? null : one; draw(); }
});
$("heat").addEventListener("pointermove", point);
$("heat").addEventListener("pointerdown", point);
$("heat").addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") $("tip").hidden = true; });
$("heat").addEventListener("click", (event) => {
  const square = event.target.closest("td[data-cell]");
  if (!square) return;
  state.cell = Number(square.dataset.cell);
  state.strategy = Number(square.dataset.strategy);
  drawOverall();
  drawCell();
  if (matchMedia("(pointer: fine)").matches) $("cell").scrollIntoView({ behavior: "smooth" });
});
$("cell-table").addEventListener("click", (event) => {
  const sort = event.target.closest("[data-sort]"), run = event.target.closest("[data-run]");
  if (sort) { sortBy(sort.dataset.sort, "cellSort", "cellDown"); drawCell(); }
  if (run) openRun(rowOf(state.cell, Number(run.dataset.run)));
});
addEventListener("scroll", () => { $("tip").hidden = true; }, { passive: true });
darkness.addEventListener("change", draw);
if (matchMedia("(max-width: 46rem)").matches) $("more-filters").open = false;
draw();
document.body.dataset.drawn = "all";
