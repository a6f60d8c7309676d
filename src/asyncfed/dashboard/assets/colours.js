// The colours and dashes of lines: those of report/figures/colours.py, held together by a test.

export const LINE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
export const LINE_DASHES = [[], [6, 1.5], [1.2, 1.2], [6, 1.5, 1.2, 1.5], [3, 1], [8, 3], [1, 3]];

export function seriesStyle(index) {
  const place = index % LINE_COLOURS.length;
  const dash = LINE_DASHES[index % LINE_DASHES.length].map((length) => 2 * length).join(" ");
  return { colour: `var(--series-${place})`, dash };
}

// A canvas knows no variables of a style sheet: their values as they are in this theme.
export function readColours(host, names) {
  const probe = document.createElement("span");
  host.append(probe);
  const found = {};
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}
