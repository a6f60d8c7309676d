// How stale updates were when they were merged.

import { getJson, runPath } from "./api.js";
import { barChart } from "./bar_chart.js";
import { element, emptyState, panel } from "./elements.js";
import { formatCount, formatNumber } from "./format.js";

export function stalenessPanel(id) {
  const section = panel("Staleness", "How many versions of the model passed while an update was made.");
  const body = element("div");
  section.append(body);
  const drawn = stalenessChart(body);
  return { section, load: async () => drawn(await getJson(runPath(id, "/staleness"))) };
}

export function stalenessChart(body) {
  const line = element("p", { class: "chart-line" }), host = element("div");
  const nothing = emptyState("Nothing was merged yet", "The chart begins with the first merged update.");
  body.append(line, host, nothing);
  const show = barChart(host);
  return ({ values, counts, mean, max, limit }) => {
    nothing.hidden = mean !== null;
    host.hidden = line.hidden = mean === null;
    if (mean === null) return;
    const limitText = limit === null ? "" : `; the strategy's limit is ${formatCount(limit)}`;
    line.textContent = `Mean ${formatNumber(mean, 3)}, at most ${formatCount(max)}${limitText}.`;
    const step = values.length > 1 ? values[1] - values[0] : 1;
    const bars = values.map((value, index) => ({
      label: step > 1 ? `${formatCount(value)} to ${formatCount(value + step - 1)} versions`
        : `${formatCount(value)} ${value === 1 ? "version" : "versions"}`,
      short: formatCount(value), count: counts[index],
    }));
    const marks = limit === null ? [] : [{ at: limit / step + 1, text: "limit" }];
    show({ bars, marks, unit: "updates", name: `Staleness of merged updates, mean ${formatNumber(mean, 3)}` });
  };
}
