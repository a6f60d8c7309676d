// The privacy that was spent.

import { element, panel, replaceIfNew } from "./elements.js";
import { formatNumber } from "./format.js";

export function privacyPanel() {
  const section = panel("Privacy spent");
  const body = element("dl", { class: "facts" });
  section.append(body);
  section.hidden = true;
  return {
    section,
    show({ privacy }) {
      section.hidden = !privacy;
      if (!section.hidden) replaceIfNew(body, privacy, () => factRows(privacy));
    },
  };
}

// A table of plain values, each under its name; tables in it are shown with the names joined.
function factRows(values, prefix = "") {
  return Object.entries(values).flatMap(([name, value]) => {
    const label = prefix + name.replaceAll("_", " ");
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return factRows(value, `${label}, `);
    const text = typeof value === "number" ? formatNumber(value) : Array.isArray(value) ? value.join(", ")
      : String(value ?? "–");
    return [element("div", {}, element("dt", { text: label }), element("dd", { text }))];
  });
}
