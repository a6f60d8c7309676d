// Numbers, times and sizes as people read them. What is not known is a dash.

export const UNKNOWN = "–";

const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

export function formatCount(value) {
  return isKnown(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

export function formatNumber(value, digits = 4) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(Math.max(digits - 2, 1));
  return value.toLocaleString("en-US", { maximumSignificantDigits: digits });
}

export function formatShare(value) {
  if (!isKnown(value)) return UNKNOWN;
  const percent = 100 * value;
  return `${percent.toLocaleString("en-US", { maximumFractionDigits: percent < 10 ? 1 : 0 })} %`;
}

export function formatSeconds(value) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${formatNumber(value * 1e6, 3)} µs`;
  if (size < 1) return `${formatNumber(value * 1e3, 3)} ms`;
  if (size < 60) return `${formatNumber(value, 3)} s`;
  if (size < 3600) return twoUnits(value, 60, "min", 1, "s");
  if (size < 86400) return twoUnits(value, 3600, "h", 60, "min");
  return twoUnits(value, 86400, "d", 3600, "h");
}

function twoUnits(value, large, largeName, small, smallName) {
  const units = Math.round(value / small), ratio = large / small;
  const first = Math.trunc(units / ratio), rest = Math.abs(units % ratio);
  return rest ? `${first} ${largeName} ${rest} ${smallName}` : `${first} ${largeName}`;
}

function withPrefix(value, unit, prefixes) {
  if (!isKnown(value)) return UNKNOWN;
  let place = 0, size = value;
  while (Math.abs(size) >= 999.5 && place < prefixes.length - 1) [size, place] = [size / 1000, place + 1];
  return `${formatNumber(size, 3)} ${prefixes[place]}${unit}`;
}

export const formatBytes = (value) => withPrefix(value, "B", ["", "k", "M", "G", "T", "P"]);
export const formatJoules = (value) => withPrefix(value, "J", ["", "k", "M", "G", "T"]);

export function formatAgo(since, now = Date.now() / 1000) {
  if (!isKnown(since) || since === 0) return UNKNOWN;
  const seconds = now - since;
  return seconds < 5 ? "now" : `${formatSeconds(Math.round(seconds)).split(" ").slice(0, 2).join(" ")} ago`;
}

export function formatClock(since) {
  return isKnown(since) ? new Date(since * 1000).toLocaleString() : UNKNOWN;
}

const METRIC_NAMES = {
  objective: "Loss (objective)", pooled_loss: "Loss, all rows pooled", first_client_loss: "Loss of the first client",
  distance: "Distance to the optimum", validation_loss: "Validation loss", test_loss: "Test loss",
  validation_accuracy: "Validation accuracy", test_accuracy: "Test accuracy", accuracy: "Accuracy", loss: "Loss",
};

export function metricName(name) {
  const words = name.replaceAll("_", " ");
  return METRIC_NAMES[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

// The four things a curve can be drawn against.
export const AXES = {
  round: { button: "Rounds", label: "rounds", format: formatCount, whole: true },
  elapsed: { button: "Time", label: "time", format: formatSeconds },
  bytes: { button: "Bytes", label: "bytes sent", format: formatBytes },
  energy: { button: "Energy", label: "energy", format: formatJoules },
};
