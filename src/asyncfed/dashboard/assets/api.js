// Questions to the server. A page that was saved has the answers in itself: `<script id="snapshot">` holds
// {"made": seconds since 1970, "answers": {"/api/…": answer}}, by address, with its query or, for any query, without.

import { selectSaved } from "./saved_lists.js";

const savedPage = document.getElementById("snapshot");
const snapshot = savedPage ? JSON.parse(savedPage.textContent) : null;

export const isSnapshot = snapshot !== null;
export const snapshotTime = snapshot?.made ?? null;

export class ServerError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function getJson(path, signal) {
  if (isSnapshot) return savedAnswer(path);
  return readAnswer(() => fetch(path, { signal }));
}

export async function postJson(path, body) {
  const headers = { "Content-Type": "application/json", "X-AsyncFed": "1" };
  return readAnswer(() => fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

export function runPath(id, rest = "", query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(known).toString();
  return `/api/runs/${encodeURIComponent(id)}${rest}${text ? `?${text}` : ""}`;
}

function savedAnswer(path) {
  const [address, query] = path.split("?");
  const answer = snapshot.answers[path] ?? selectSaved(snapshot.answers, address, new URLSearchParams(query));
  if (answer === undefined) throw new ServerError(404, "This was not saved with the page.");
  return structuredClone(answer);
}

async function readAnswer(send) {
  let answer;
  try {
    answer = await send();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The dashboard's server does not answer. Is `asyncfed dashboard` still running?");
  }
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const text = body?.error ?? `The server answered ${answer.status}.`;
  throw new ServerError(answer.status, text);
}
