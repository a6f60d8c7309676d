// Where an axis has its marks, and how values become places on it.

export function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(count, 1), size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= rough * 0.999);
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) {
    ticks.push(Number((place * step).toPrecision(12)));
  }
  return ticks;
}

// Seconds are counted in sixties and twenty-fours.
export function timeTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const step = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find((size) => size >= rough);
  if (rough < 30 || step === undefined) return linearTicks(low, high, count);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value);
  return ticks;
}

export function logTicks(low, high, count) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) {
    const ticks = linearTicks(low, high, count).filter((value) => value > 0);
    return ticks.length ? ticks : [low];
  }
  const step = Math.max(1, Math.ceil((last - first) / Math.max(count, 1)));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  return ticks;
}

// A function from values to places; null for what a logarithmic axis cannot show.
export function scale(low, high, from, to, isLog) {
  const [first, last] = isLog ? [Math.log10(low), Math.log10(high)] : [low, high];
  const span = last - first || 1;
  return (value) => {
    if (value === null || value === undefined || (isLog && !(value > 0))) return null;
    return from + (((isLog ? Math.log10(value) : value) - first) / span) * (to - from);
  };
}

export function extent(lists, isLog) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (value === null || (isLog && !(value > 0))) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}
