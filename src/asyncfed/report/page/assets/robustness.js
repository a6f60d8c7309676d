// Filters and draws the robustness study's results, which are in the page itself.

const data = JSON.parse(document.getElementById("study-data").textContent);

// ---- rows -------------------------------------------------------------------------------------------------------

const interval = ([mean, low, high]) => ({ mean, low, high });
const rows = data.rows.map(([scenario, defence, attack, share, verdict, reason, ratio, points, arrived, merged, precision, recall, filtered, seeds]) => ({
  scenario, defence, attack, share, verdict: data.texts[verdict], reason: data.texts[reason], ratio: interval(ratio), points: interval(points),
  arrived, merged, precision, recall, filtered, seeds,
}));
const keyOf = (scenario, defence, attack, share) => [scenario, defence, attack, share].join(" ");
const at = new Map(rows.map((row) => [keyOf(row.scenario, row.defence, row.attack, row.share), row]));

// ---- what is chosen ---------------------------------------------------------------------------------------------

const OPTIONS = {
  problem: distinct(data.scenarios.map((one) => one.problem)),
  split: distinct(data.scenarios.map((one) => one.split)),
  delays: distinct(data.scenarios.map((one) => one.delays)),
  share: distinct(rows.map((row) => row.share)).filter((share) => share > 0).sort((a, b) => a - b),
};
const nearest = (values, wanted) => values.reduce((best, value) => (Math.abs(value - wanted) < Math.abs(best - wanted) ? value : best), values[0]);
const state = {
  problem: OPTIONS.problem[0],
  split: OPTIONS.split[0],
  delays: OPTIONS.delays.includes("stragglers") ? "stragglers" : OPTIONS.delays[0],
  share: nearest(OPTIONS.share, 0.3),
};
const scenarioNow = () => data.scenarios.findIndex((one) => ["problem", "split", "delays"].every((name) => one[name] === state[name]));
const sharesOf = (scenario) => distinct(rows.filter((row) => row.scenario === scenario && row.share > 0).map((row) => row.share));
const percent = (share, count = 2) => `${digits(100 * share, count)} %`;
const optionText = (name, option) => (name === "share" ? percent(option) : name === "split" && option === "iid" ? "IID" : words(option));

// ---- a cell -----------------------------------------------------------------------------------------------------

const byAccuracy = (scenario) => data.scenarios[scenario].judged === "accuracy";
const pointsText = (value) => `${value > 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
function cellText(row) {
  if (row.verdict !== "held" && row.verdict !== "not held") return `✗ ${row.verdict}`;
  const mark = row.verdict === "held" ? "✓" : "✗";
  if (byAccuracy(row.scenario)) return row.points.mean === null ? mark : `${mark} ${pointsText(row.points.mean)}`;
  if (row.ratio.mean === null) return mark;
  return `${mark} ${row.ratio.mean >= 1000 ? row.ratio.mean.toExponential(0).replace("e+", "e") : digits(row.ratio.mean, 2)} ×`;
}
function cellLook(row) {
  if (row.verdict === "held") return "held";
  if (row.verdict !== "not held") return "missed";
  const far = byAccuracy(row.scenario) ? row.points.mean > 5 * data.most_points : row.ratio.mean > 5 * data.most_ratio;
  return far ? "worse" : "broken";
}
const range = (one, write) => (one.mean === null ? "" : `${write(one.mean)}${one.low === null ? "" : ` (${write(one.low)} to ${write(one.high)})`}`);
function cellLines(row) {
  const lines = [];
  if (row.points.mean !== null) lines.push(`accuracy against the honest run, in points: ${range(row.points, pointsText)}`);
  if (row.ratio.mean !== null) lines.push(`${byAccuracy(row.scenario) ? "loss" : "excess loss"} over the honest run's: ${range(row.ratio, (v) => `${digits(v)} ×`)}`);
  if (row.reason) lines.push(row.reason);
  lines.push(`liars sent ${percent(row.arrived)} of the updates that arrived${row.merged === null ? "" : `, and ${percent(row.merged)} of those that were merged`}`);
  if (row.precision === null) lines.push("no update was filtered");
  else lines.push(`filtered: ${row.recall === null ? "" : `${percent(row.recall)} of the liars' updates (recall), `}${percent(row.filtered)} of the honest ones; ${percent(row.precision)} of what was filtered was liars' (precision)`);
  return lines;
}
const title = (row) => {
  const one = data.scenarios[row.scenario], attack = row.attack < 0 ? "nobody lying" : `${words(data.attacks[row.attack].name)} by ${percent(row.share)}`;
  return `${words(data.defences[row.defence].name)} against ${attack}: ${one.problem}, ${optionText("split", one.split)}, ${one.delays}`;
};

// ---- tables -----------------------------------------------------------------------------------------------------

const GROUPS = distinct(data.defences.map((one) => one.group));
function gridHead() {
  const groups = GROUPS.map((group) => `<th colspan="${data.defences.filter((one) => one.group === group).length}">${html(group)}</th>`).join("");
  const names = data.defences.map((one) => `<th scope="col" title="${html(one.summary)}">${html(words(one.name))}</th>`).join("");
  return `<thead><tr class="groups"><td></td>${groups}</tr><tr><td></td>${names}</tr></thead>`;
}
function grid(cell) {
  const line = (name, summary, attack) => `<tr><th scope="row" title="${html(summary)}">${html(words(name))}</th>${data.defences.map((_, defence) => `<td>${cell(attack, defence)}</td>`).join("")}</tr>`;
  return `<table class="grid">${gridHead()}<tbody>${line("nobody lies", "no client lies", -1)}${data.attacks.map((one, i) => line(one.name, one.summary, i)).join("")}</tbody></table>`;
}

function drawMatrix(scenario) {
  $("matrix").innerHTML = grid((attack, defence) => {
    const row = at.get(keyOf(scenario, defence, attack, attack < 0 ? 0 : state.share));
    if (!row) return `<span class="plain">–</span>`;
    return `<button type="button" class="${cellLook(row)}" data-row="${rows.indexOf(row)}" aria-label="${html(`${title(row)}: ${cellText(row)}`)}">${html(cellText(row))}</button>`;
  });
  $("unit").textContent = byAccuracy(scenario)
    ? `Points of accuracy against the honest run; held up to ${data.most_points} points below. Click a cell for its numbers and to run it yourself.`
    : `Excess loss over that of the honest run; held up to ${data.most_ratio} ×. Click a cell for its numbers and to run it yourself.`;
  const own = rows.filter((row) => row.scenario === scenario && row.share === state.share);
  const sent = own.map((row) => row.arrived);
  const low = Math.min(...sent), high = Math.max(...sent);
  $("updates").textContent = own.length === 0 ? "This share was not run with this problem. Choose another." :
    `${percent(state.share)} of the clients lie. They sent ${percent(low)}${percent(high) === percent(low) ? "" : ` to ${percent(high)}`} of the updates that arrived: what a rule has to withstand is their share of updates, and fast clients speak more often.`;
}

function drawBreaks(scenario) {
  const found = new Map(data.breaks.filter((one) => one[0] === scenario).map(([, defence, attack, share, most]) => [`${defence} ${attack}`, { share, most }]));
  $("breaks").innerHTML = grid((attack, defence) => {
    const one = found.get(`${defence} ${attack}`);
    if (!one) return `<span class="plain">–</span>`;
    if (one.share === null) return `<span class="missed">never</span>`;
    const text = one.share === one.most ? `≥ ${percent(one.share)}` : percent(one.share);
    return `<span class="${one.share >= 0.3 ? "held" : one.share > 0 ? "broken" : "worse"}">${text}</span>`;
  });
}

function whiskers(found, low, high) {
  if (found.mean === null) return "";
  const x = (value) => (2 + 196 * Math.log(Math.min(Math.max(value, low), high) / low) / Math.log(high / low)).toFixed(1);
  const line = found.low === null ? "" : `<line class="range" x1="${x(found.low)}" x2="${x(found.high)}" y1="10" y2="10"/>`;
  return `<svg class="whiskers" viewBox="0 0 200 20" preserveAspectRatio="none" aria-hidden="true"><line class="one" x1="${x(1)}" x2="${x(1)}" y1="0" y2="20"/>${line}<circle cx="${x(found.mean)}" cy="10" r="4"/></svg>`;
}
function drawCosts(scenario) {
  const body = data.costs.filter((one) => one[0] === scenario).map(([, defence, time, level, points, filtered]) => {
    const [spent, left, lost] = [time, level, points].map(interval), one = data.defences[defence];
    return `<tr><th scope="row" title="${html(one.summary)}">${html(words(one.name))}</th><td>${whiskers(spent, 0.5, 4)}</td>
      <td class="number${spent.mean === null || spent.mean > 1.1 ? " over" : ""}">${spent.mean === null ? "target not reached" : `${digits(spent.mean)} ×`}${spent.low === null ? "" : `<small>${digits(spent.low, 2)} to ${digits(spent.high, 2)}</small>`}</td>
      <td class="number">${left.mean === null ? "–" : `${digits(left.mean)} ×`}</td>
      ${byAccuracy(scenario) ? `<td class="number">${lost.mean === null ? "–" : pointsText(lost.mean)}</td>` : ""}
      <td class="number">${percent(filtered)}</td><td>${html(words(one.base))}</td></tr>`;
  }).join("");
  const heads = ["Defence", "", "Time to the target", "Level at the end", ...(byAccuracy(scenario) ? ["Accuracy, points"] : []), "Filtered", "Against"];
  $("costs").innerHTML = `<table><thead><tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr></thead><tbody>${body}</tbody></table>`;
}

function drawSentences(scenario) {
  const own = data.findings.filter((one) => one[0] === scenario && one[2] === state.share);
  $("sentences").innerHTML = `<ul>${own.map(([, , , text]) => `<li>${html(data.texts[text]).replace("no defence holds", '<b class="none">no defence holds</b>')}</li>`).join("")}</ul>`;
}

// ---- run it yourself --------------------------------------------------------------------------------------------

function tomlOf(row) {
  const one = data.scenarios[row.scenario], attack = row.attack < 0 ? [] : [data.attacks[row.attack].toml.replace("@SHARE@", row.share)];
  return [data.texts[one.toml], data.texts[one.strategies[row.defence]], ...attack].join("\n");
}
function openRun(row) {
  const value = row.seeds[0], accuracy = byAccuracy(row.scenario);
  $("run-numbers").innerHTML = cellLines(row).map((line) => `<p>${html(line)}</p>`).join("");
  showRun(title(row), `Save this as cell.toml and type: asyncfed run cell.toml. It is the run of seed ${data.seeds[0]}, which ended ` +
    (value === null ? "badly." : accuracy ? `with an accuracy of ${digits(100 * value)} %, a mean over its last part.` : `with an excess loss of ${digits(value)}, a mean over its last part.`), tomlOf(row));
}

function csv() {
  const columns = ["problem", "split", "delays", "defence", "attack", "share", "verdict", "ratio", "ratio_low", "ratio_high", "points", "points_low", "points_high",
    "lying_arrived", "lying_merged", "precision", "recall", "filtered_honest"];
  const lines = rows.filter((row) => row.scenario === scenarioNow() && (row.share === state.share || row.share === 0)).map((row) => {
    const one = data.scenarios[row.scenario];
    return [one.problem, one.split, one.delays, data.defences[row.defence].name, row.attack < 0 ? data.honest : data.attacks[row.attack].name, row.share, row.verdict,
      row.ratio.mean, row.ratio.low, row.ratio.high, row.points.mean, row.points.low, row.points.high, row.arrived, row.merged, row.precision, row.recall, row.filtered].map(quoted).join(",");
  });
  return [columns.join(","), ...lines].join("\n") + "\n";
}

// ---- controls ---------------------------------------------------------------------------------------------------

function drawFilters(scenario) {
  const run = sharesOf(scenario);
  for (const box of document.querySelectorAll(".filter")) {
    const name = box.dataset.filter;
    box.querySelectorAll("button").forEach((button) => button.remove());
    for (const option of OPTIONS[name]) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.textContent = optionText(name, option);
      chip.disabled = name === "share" && !run.includes(option);
      chip.setAttribute("aria-pressed", state[name] === option);
      chip.addEventListener("click", () => { state[name] = option; draw(); });
      box.append(chip);
    }
  }
}
function draw() {
  const scenario = scenarioNow(), run = sharesOf(scenario);
  if (!run.includes(state.share) && run.length) state.share = nearest(run, state.share);
  drawFilters(scenario);
  drawMatrix(scenario);
  drawSentences(scenario);
  drawBreaks(scenario);
  drawCosts(scenario);
  const own = rows.filter((row) => row.scenario === scenario && row.share === state.share);
  $("count").textContent = `${own.filter((row) => row.verdict === "held").length} of ${own.length} cells hold`;
}
function point(event) {
  const cell = event.target.closest("[data-row]"), tip = $("tip");
  if (!cell || event.pointerType !== "mouse") { tip.hidden = true; return; }
  const row = rows[Number(cell.dataset.row)];
  tip.innerHTML = [`<b>${html(title(row))}</b>`, ...cellLines(row).map(html)].join("<br>");
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), margin = 12;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + margin, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + margin + box.height > innerHeight ? Math.max(4, event.clientY - box.height - margin) : event.clientY + margin}px`;
}
$("matrix").addEventListener("pointermove", point);
$("matrix").addEventListener("pointerleave", () => { $("tip").hidden = true; });
$("matrix").addEventListener("click", (event) => {
  const cell = event.target.closest("[data-row]");
  if (cell) { $("tip").hidden = true; openRun(rows[Number(cell.dataset.row)]); }
});
$("download").addEventListener("click", () => saveFile("robustness.csv", csv(), "text/csv"));
addEventListener("scroll", () => { $("tip").hidden = true; }, { passive: true });
draw();
document.body.dataset.drawn = "all";
