// In a saved page lists are whole: what the server would have ordered, searched and cut off is done here.

const KEYS = {
  slowest: (row) => -(row.mean_duration ?? -1), merged: (row) => -row.merged, weight: (row) => -row.weight_share,
  refused: (row) => -row.refused, number: (row) => row.client,
};

export function selectSaved(answers, address, query) {
  const answer = answers[address];
  const list = /^(.*)\/(clients|lanes)$/.exec(address);
  if (!list || answer === undefined) return answer;
  const first = Number(query.get("first") ?? 0), count = Number(query.get("count") ?? 200);
  if (query.get("order") === "number" && count === 1) { // one client, by its number
    return { ...answer, total: 1, clients: answer.clients.filter((row) => row.client === first) };
  }
  const key = KEYS[query.get("order")], find = (query.get("find") ?? "").toLowerCase();
  const known = new Map(answers[`${list[1]}/clients`].clients.map((row) => [row.client, row]));
  const found = answer.clients.filter((row) => row.name.toLowerCase().includes(find) && known.has(row.client));
  if (key) found.sort((one, other) => key(known.get(one.client)) - key(known.get(other.client))
    || one.client - other.client);
  return { ...answer, total: found.length, clients: found.slice(first, first + count) };
}
